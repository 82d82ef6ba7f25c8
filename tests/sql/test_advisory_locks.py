"""Advisory locks: of sessions and of transactions, and who waits for whom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Result, Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode, Session], Awaitable[None]]) -> None:
    """With the node's first session, and another one."""
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            other = node.session()
            try:
                await scenario(node, other)
            finally:
                await other.close()

    sim.run(main())


async def told(session: Session, call: str) -> object:
    (result,) = await session.execute(f"SELECT {call}")
    return result.fetch_rows()[0][0]


async def waits(session: Session, call: str) -> asyncio.Task[list[Result]]:
    task = asyncio.create_task(session.execute(f"SELECT {call}"))
    await asyncio.sleep(11)  # no lock_timeout: longer than rows are waited for
    assert not task.done()
    return task


async def free(session: Session, number: int = 1) -> object:
    """Whether nobody else holds the lock."""
    locked = await told(session, f"pg_try_advisory_lock({number})")
    if locked:
        assert await told(session, f"pg_advisory_unlock({number})") is True
    return locked


def test_a_session_unlocks_as_often_as_it_locked() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        result = await node.sql("SELECT pg_advisory_lock(1), pg_try_advisory_lock(1)")
        assert result.fetch_rows() == [("", True)]
        assert [await free(other), await free(other, 2)] == [False, True]
        task = await waits(other, "pg_advisory_lock(1)")
        assert await node.rows("SELECT pg_advisory_unlock(1)") == [(True,)]
        await asyncio.sleep(1)
        assert not task.done()
        assert await node.rows("SELECT pg_advisory_unlock(1)") == [(True,)]
        await task
        result = await node.sql("SELECT pg_advisory_unlock(1)")
        assert (result.fetch_rows(), result.warnings) == (
            [(False,)], ("you don't own a lock of type ExclusiveLock",),
        )  # fmt: skip

    run(scenario)


@pytest.mark.parametrize("end", ["DISCARD ALL", "SELECT pg_advisory_unlock_all()", ""])
def test_locks_end_with_their_session(end: str) -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        ends = node.session()
        await ends.execute("SELECT pg_advisory_lock(1); SELECT pg_advisory_lock(2)")
        assert not await free(other)
        await (ends.execute(end) if end else ends.close())
        assert [await free(other), await free(other, 2)] == [True, True]
        await ends.close()

    run(scenario)


def test_a_transactions_locks_end_with_it() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        for end in ("COMMIT", "ROLLBACK"):
            await node.sql("BEGIN")
            await node.sql("SELECT pg_advisory_xact_lock(1)")
            assert not await free(other)
            await node.sql(end)
            assert await free(other)
        await node.sql("BEGIN; SAVEPOINT s")
        await node.sql("SELECT pg_try_advisory_xact_lock(1)")
        assert not await free(other)
        await node.sql("ROLLBACK TO s")
        assert await free(other)
        await node.sql("COMMIT")
        assert await node.rows("SELECT pg_try_advisory_xact_lock(1)") == [(True,)]
        assert await free(other)

    run(scenario)


def test_a_sessions_locks_outlive_its_transactions() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("BEGIN")
        await node.sql("SELECT pg_advisory_lock(1)")
        await node.sql("ROLLBACK")
        assert not await free(other)
        await node.sql("BEGIN")
        assert (await node.error("SELECT pg_advisory_xact_lock(1)")).sqlstate == "0A000"
        await node.sql("ROLLBACK; BEGIN")
        await node.sql("SELECT pg_advisory_xact_lock(2)")
        assert (await node.error("SELECT pg_advisory_lock(2)")).sqlstate == "0A000"
        await node.sql("ROLLBACK")

    run(scenario)


def test_who_waited_sees_what_was_done_meanwhile() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("CREATE TABLE versions (v INT8 PRIMARY KEY)")
        await node.sql("BEGIN")
        await node.sql("SELECT pg_advisory_xact_lock(1)")
        await other.execute("BEGIN")
        task = await waits(other, "pg_advisory_xact_lock(1)")
        await node.sql("INSERT INTO versions VALUES (7)")
        await node.sql("COMMIT")
        await task
        assert await told(other, "max(v) FROM versions") == 7
        await other.execute("ROLLBACK")

    run(scenario)


def test_waits_end_by_timeouts_cancelling_and_deadlocks() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("SELECT pg_advisory_lock(1)")
        await other.execute("SET lock_timeout = '1s'")
        with pytest.raises(SQLError) as caught:
            await told(other, "pg_advisory_lock(1)")
        assert caught.value.sqlstate == "55P03"
        await other.execute("RESET lock_timeout")

        task = await waits(other, "pg_advisory_lock(1)")
        await node.sql(f"SELECT pg_cancel_backend({other.activity.process_id})")
        with pytest.raises(SQLError) as caught:
            await task
        assert caught.value.sqlstate == "57014"

        await told(other, "pg_advisory_lock(2)")
        task = await waits(other, "pg_advisory_lock(1)")
        assert (await node.error("SELECT pg_advisory_lock(2)")).sqlstate == "40P01"
        await node.sql("SELECT pg_advisory_unlock(1)")
        await task

    run(scenario)


def test_a_held_lock_holds_no_closed_timestamp() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("SELECT pg_advisory_lock(1)")
        await asyncio.sleep(0.1)
        drawn = await node.store.now()
        await asyncio.sleep(0.1)
        assert node.store.closed_timestamps.close() > drawn

    run(scenario)


def test_numbers_and_databases_are_told_apart() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("CREATE DATABASE shop; SELECT pg_advisory_lock(-1)")
        assert [await free(other, -1), await free(other, 1)] == [False, True]
        await other.execute("USE shop")
        assert await free(other, -1)
        assert (await node.error("SELECT pg_advisory_lock(1, 2)")).sqlstate == "42883"
        assert (await node.error("SELECT pg_advisory_lock_shared(1)")).sqlstate == "0A000"
        assert await node.rows("SELECT pg_advisory_lock(NULL)") == [(None,)]

    run(scenario)


def test_each_row_locks_once_and_conditions_do_not_lock() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await node.sql("CREATE TABLE jobs (id INT8 PRIMARY KEY); INSERT INTO jobs VALUES (1), (2)")
        await told(other, "pg_advisory_lock(1)")
        assert await node.rows("SELECT id, pg_try_advisory_lock(id) FROM jobs ORDER BY id") == [
            (1, False), (2, True),
        ]  # fmt: skip
        error = await node.error("SELECT id FROM jobs WHERE pg_try_advisory_lock(id) LIMIT 1")
        assert error.sqlstate == "0A000"
        error = await node.error("BEGIN READ ONLY; SELECT pg_advisory_xact_lock(1)")
        assert error.sqlstate == "25006"

    run(scenario)


def test_a_session_whose_locks_are_lost_is_over() -> None:
    async def scenario(node: SqlNode, other: Session) -> None:
        await told(other, "pg_advisory_lock(1)")
        locks = other._transactions.advisory_locks
        assert locks._holder is not None
        await locks._holder.rollback()  # as where the connection to the store is lost
        with pytest.raises(SQLError) as caught:
            await told(other, "1")
        assert caught.value.sqlstate == "08006"
        assert await free(node.first)

    run(scenario)
