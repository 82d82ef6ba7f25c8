"""pg_cancel_backend and pg_terminate_backend: other sessions ended by a SELECT."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode, Session, Session], Awaitable[None]]) -> None:
    """With a session of root's and one of ada's, who is nobody."""
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            await node.sql("CREATE USER ada")
            root, ada = node.session(), node.session("ada")
            try:
                await scenario(node, root, ada)
            finally:
                await root.close()
                await ada.close()

    sim.run(main())


async def waits_for_a_row(node: SqlNode, session: Session) -> asyncio.Task[object]:
    await node.sql("BEGIN; UPDATE t SET k = 1 WHERE k = 1; SELECT 1")
    task: asyncio.Task[object] = asyncio.create_task(session.execute("DELETE FROM t WHERE k = 1"))
    await asyncio.sleep(0.1)
    return task


async def sqlstate_of(work: Awaitable[object]) -> str:
    with pytest.raises(SQLError) as caught:
        await work
    return caught.value.sqlstate


def test_a_cancelled_backend_goes_on_with_its_next_statement() -> None:
    async def scenario(node: SqlNode, root: Session, _: Session) -> None:
        task = await waits_for_a_row(node, root)
        pid = root.activity.process_id
        result = await node.sql("SELECT pg_cancel_backend($1) AS done", pid)
        assert (result.fetch_rows(), result.columns[0].name) == ([(True,)], "done")
        assert await sqlstate_of(task) == "57014"
        await node.sql("COMMIT")
        assert (await root.execute("SELECT k FROM t WHERE k = 1"))[0].fetch_rows() == [(1,)]

    run(scenario)


def test_each_row_of_a_query_is_one_call() -> None:
    async def scenario(node: SqlNode, root: Session, ada: Session) -> None:
        result = await node.sql(
            "SELECT a.usename AS who, pg_terminate_backend(a.pid) AS left "
            "FROM pg_stat_activity AS a WHERE a.pid <> pg_backend_pid() ORDER BY 1 LIMIT 5"
        )
        assert result.fetch_rows() == [("ada", True), ("root", True)]
        for session in (root, ada):
            assert await sqlstate_of(session.execute("SELECT 1")) == "57P01"

    run(scenario)


def test_a_terminated_statement_is_told_so() -> None:
    async def scenario(node: SqlNode, root: Session, _: Session) -> None:
        task = await waits_for_a_row(node, root)
        await node.sql(f"SELECT pg_catalog.pg_terminate_backend({root.activity.process_id})")
        assert await sqlstate_of(task) == "57P01"
        await node.sql("COMMIT")
        own = node.session()
        assert await sqlstate_of(own.execute("SELECT pg_terminate_backend(pg_backend_pid())")) == (
            "57P01"
        )
        await own.close()

    run(scenario)


def test_nobody_waits_for_a_backend_to_leave() -> None:
    async def scenario(node: SqlNode, root: Session, ada: Session) -> None:
        ends = f"SELECT pg_terminate_backend({ada.activity.process_id}, 500)"
        assert (await node.error(ends)).sqlstate == "42883"

    run(scenario)


def test_nobody_by_that_number_is_a_warning() -> None:
    async def scenario(node: SqlNode, root: Session, _: Session) -> None:
        result = await node.sql("SELECT pg_cancel_backend(4711), pg_terminate_backend(NULL)")
        assert result.fetch_rows() == [(False, None)]
        assert result.warnings == ("PID 4711 is not a PostgreSQL backend process",)
        assert (await node.sql("SELECT 1")).warnings == ()

    run(scenario)


def test_rights_are_those_of_postgres() -> None:
    async def scenario(node: SqlNode, root: Session, ada: Session) -> None:
        await node.sql("CREATE USER bea; CREATE ROLE team; GRANT team TO ada")
        bea, mine, team = node.session("bea"), node.session("ada"), node.session("team")

        async def cancels(session: Session) -> bool:
            pid = session.activity.process_id
            try:
                await ada.execute(f"SELECT pg_cancel_backend({pid})")
            except SQLError as error:
                assert error.sqlstate == "42501"
                return False
            return True

        assert [await cancels(s) for s in (mine, team, bea, root)] == [True, True, False, False]
        await node.sql("GRANT SYSTEM CANCELQUERY TO ada")
        assert [await cancels(s) for s in (bea, root)] == [True, False]
        for session in (bea, mine, team):
            await session.close()

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT k FROM t WHERE pg_cancel_backend(k)", "0A000"),
        ("SELECT DISTINCT pg_cancel_backend(k) FROM t", "0A000"),
        ("SELECT * FROM (SELECT pg_cancel_backend(k) FROM t) AS s", "0A000"),
        ("SELECT CASE WHEN k = 1 THEN pg_cancel_backend(k) END FROM t", "0A000"),
        ("INSERT INTO t SELECT pg_cancel_backend(k)::INT8 FROM t", "0A000"),
        ("UPDATE t SET k = pg_cancel_backend(k)::INT8", "0A000"),
        ("SELECT nextval('s'), pg_cancel_backend(k) FROM t", "0A000"),
        ("CREATE VIEW v AS SELECT pg_cancel_backend(k) FROM t", "0A000"),
        ("SELECT pg_cancel_backend()", "42883"),
        ("SELECT pg_cancel_backend('x')", "22P02"),
    ],
)
def test_what_might_be_evaluated_twice_or_never_is_refused(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode, root: Session, _: Session) -> None:
        await node.sql("CREATE SEQUENCE s")
        assert (await node.error(text)).sqlstate == sqlstate

    run(scenario)


def test_a_parameter_of_a_call_is_an_integer() -> None:
    async def scenario(node: SqlNode, root: Session, _: Session) -> None:
        prepared = await root.prepare("SELECT pg_cancel_backend($1)")
        assert [type.sql_name for type in prepared.parameter_types] == ["INT8"]
        (column,) = await root.describe(prepared)
        assert (column.name, column.type.sql_name) == ("pg_cancel_backend", "BOOL")
        assert (await root.run(prepared, (4711,))).fetch_rows() == [(False,)]
        prepared = await root.prepare("SELECT pg_advisory_lock($1), pg_cancel_backend(4711)")
        described = await root.describe(prepared)
        assert (await root.run(prepared, (1,))).columns == tuple(described)

    run(scenario)
