"""`wait_for_changefeed`: a program reads its own writes in a mirror."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path

import pytest

import tailrace
from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp, duration, format_timestamp

APPLY = ("row", "transaction")


async def feed_of(database: AsyncDatabase, apply: str = "row") -> int:
    await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
    created = await database.sql(
        f"CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb?apply={apply}'"
    )
    job_id = created.fetchall()[0][0]
    assert isinstance(job_id, int)
    return job_id


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(database)

    asyncio.run(whole())


@pytest.mark.parametrize("apply", APPLY)
def test_a_program_reads_its_own_writes(tmp_path: Path, apply: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, apply)
        mirror = database.mirror("m.duckdb")
        for number in range(100):
            await database.sql("UPSERT INTO t VALUES (1, $1)", [number])
            await database.sql("SELECT wait_for_changefeed($1)", [job_id])
            assert (await mirror.sql("SELECT v FROM t")).to_pylist() == [{"v": number}]

    on_database(tmp_path, scenario)


def test_it_returns_how_far_the_feed_is(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database)
        await database.sql("INSERT INTO t VALUES (1, 1)")
        [(at,)] = (await database.sql("SELECT cluster_logical_timestamp()")).fetchall()
        assert isinstance(at, Decimal)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        for call in (
            "wait_for_changefeed($1, $2)",
            "wait_for_changefeed($1, $2, '0s')",
            "wait_for_changefeed($1, $2, '5s')",
            "wait_for_changefeed($1, NULL, INTERVAL '5 seconds')",
            "wait_for_changefeed($1, '5s')",
        ):
            given = (job_id, str(at)) if "$2" in call else (job_id,)
            [(resolved,)] = (await database.sql(f"SELECT {call}", given)).fetchall()
            assert isinstance(resolved, Decimal)
            assert resolved >= at or "$2" not in call

    on_database(tmp_path, scenario)


def test_waits_that_cannot_end_say_why(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database)

        async def refused(call: str, *given: object) -> SQLError:
            with pytest.raises(SQLError) as caught:
                await asyncio.wait_for(database.sql(f"SELECT {call}", given), 20)
            return caught.value

        error = await refused("wait_for_changefeed(5)")
        assert (error.sqlstate, error.message) == ("42704", "job with ID 5 does not exist")
        error = await refused("wait_for_changefeed($1, 'soon')", job_id)
        assert error.sqlstate in ("22023", "22007")
        ahead = f"{int(time.time()) + 3600}000000000.0"
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])  # it runs
        error = await refused("wait_for_changefeed($1, $2, '200ms')", job_id, ahead)
        assert error.sqlstate == "57014"
        assert "within 0.2 s" in error.message
        assert error.detail is not None and "running" in error.detail

        waiting = asyncio.create_task(refused("wait_for_changefeed($1, $2)", job_id, ahead))
        await asyncio.sleep(0.1)
        async with database.session() as other:
            await other.sql(f"PAUSE JOB {job_id}")
        error = await waiting
        assert error.sqlstate == "55000"
        assert f"changefeed {job_id} is pause" in error.message
        await database.sql("UPSERT INTO t VALUES (1, 2)")
        error = await refused("wait_for_changefeed($1)", job_id)
        assert error.sqlstate == "55000"

        await database.sql(f"CANCEL JOB {job_id}")
        error = await refused("wait_for_changefeed($1)", job_id)
        assert error.sqlstate == "55000"
        assert "cancel" in error.message

    on_database(tmp_path, scenario)


@pytest.mark.parametrize(
    ("end", "told"), [("DROP TABLE t", "was dropped"), ("CANCEL JOB {job_id}", "cancel")]
)
def test_a_feed_that_ends_under_a_wait_has_not_come_so_far(
    tmp_path: Path, end: str, told: str
) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])  # it runs
        ahead = Timestamp(await database.node.store.now() + duration(seconds=3600))
        async with database.session() as other:
            waited = other.sql(f"SELECT wait_for_changefeed({job_id}, {format_timestamp(ahead)})")
            waiting = asyncio.create_task(waited)
            while database.feed(job_id).awaited is None:
                await asyncio.sleep(0)
            await database.sql(end.format(job_id=job_id))
            with pytest.raises(SQLError) as caught:
                await asyncio.wait_for(waiting, 20)
        assert caught.value.sqlstate == "55000"
        assert told in caught.value.message

    on_database(tmp_path, scenario)


def test_a_transaction_waits_for_nothing(tmp_path: Path) -> None:
    with tailrace.open(tmp_path / "data") as db:
        with pytest.raises(tailrace.Error) as caught, db.session() as session:
            session.sql("BEGIN")
            session.sql("SELECT wait_for_changefeed(1)")
        assert getattr(caught.value, "sqlstate", None) == "25001"


def test_a_feed_that_follows_no_table_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        await database.sql(f"ALTER CHANGEFEED {job_id} PAUSE TABLE t")
        await database.sql("UPSERT INTO t VALUES (1, 1)")
        with pytest.raises(SQLError) as caught:
            await asyncio.wait_for(database.sql("SELECT wait_for_changefeed($1)", [job_id]), 20)
        assert caught.value.sqlstate == "55000"
        assert "follows none of its tables" in caught.value.message
        await database.sql(f"ALTER CHANGEFEED {job_id} RESUME TABLE t")
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        shown = await database.mirror("m.duckdb").sql("SELECT v FROM t")
        assert shown.to_pylist() == [{"v": 1}]

    on_database(tmp_path, scenario)


def test_no_analytical_querys_time_ends_a_wait(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])  # it runs
        await database.sql("SET CLUSTER SETTING sql.analytics.statement_timeout = '1s'")
        ahead = Timestamp(await database.node.store.now() + duration(seconds=1.5))
        waited = "SELECT wait_for_changefeed($1, $2)"
        assert (await database.sql(waited, [job_id, format_timestamp(ahead)])).row_count == 1

    on_database(tmp_path, scenario)


def test_no_analytical_querys_time_ends_a_feed(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
        await database.sql("SET CLUSTER SETTING sql.analytics.statement_timeout = '1us'")
        created = await database.sql(
            "CREATE CHANGEFEED INTO 'duckdb:///q.duckdb' AS SELECT k, v * 2 AS w FROM t"
        )
        await database.sql("UPSERT INTO t VALUES (7, 21)")
        job_id = created.fetchall()[0][0]
        assert isinstance(job_id, int)
        await database.feed(job_id).wait_until(await database.node.store.now())
        await database.sql("RESET CLUSTER SETTING sql.analytics.statement_timeout")
        shown = await database.mirror("q.duckdb").sql("SELECT k, w FROM t")
        assert shown.to_pylist() == [{"k": 7, "w": 42}]

    on_database(tmp_path, scenario)
