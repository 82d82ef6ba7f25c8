"""SHOW CHANGEFEED LATENCY and LAG tell where a feed's rows are, and how late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError

STAGES = ["commit", "log", "range feed", "gate", "decode", "encode", "flush", "sink"]


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(database)

    asyncio.run(whole())


async def rows_of(database: AsyncDatabase, statement: str) -> list[dict[str, Any]]:
    await asyncio.sleep(0)  # who asks again and again lets others run
    return (await database.sql(statement)).arrow().to_pylist()


async def feed_of(database: AsyncDatabase, options: str = "") -> int:
    created = await database.sql(f"CREATE CHANGEFEED FOR TABLE t INTO 'null://' {options}")
    job_id = created.fetchall()[0][0]
    assert isinstance(job_id, int)
    return job_id


def test_every_stage_is_measured(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        job_id = await feed_of(database)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        for number in range(5):
            await database.sql("INSERT INTO t VALUES ($1, 'v')", [number])
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        found = await rows_of(database, f"SHOW CHANGEFEED LATENCY {job_id}")
        assert [row["stage"] for row in found] == [*STAGES, "commit to emit", "commit to sink"]
        assert {row["commits"] for row in found} == {5}
        assert all(0 <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"] for row in found)
        means = sum(row["p50_ms"] for row in found[:8])
        assert means < 3 * found[-1]["max_ms"]
        assert [row["waiting"] for row in found if row["stage"] != "range feed"] == [None] * 9

    on_database(tmp_path, scenario)


def test_late_rows_name_the_stage_and_the_span_that_hold_them(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("SET CLUSTER SETTING changefeed.experimental_poll_interval = '1h'")
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        job_id = await feed_of(database, "WITH schema_feed = 'polling', initial_scan = 'no'")
        gate: dict[str, Any] = {}
        number = 0
        while gate.get("waiting") is None or "/1/7" not in gate["span"]:
            await database.sql("UPSERT INTO t VALUES (7, 'late')")
            found = await rows_of(database, f"SHOW CHANGEFEED LATENCY {job_id}")
            gate = found[STAGES.index("gate")]
            number += 1
            assert number < 5000, found
        assert gate["table_name"] == "t"
        assert gate["waited_ms"] >= 0
        assert gate["waits_for"].startswith("the schema as of ")

    on_database(tmp_path, scenario)


def test_a_paused_feed_falls_behind(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        job_id = await feed_of(database)
        await database.sql("SELECT wait_for_changefeed($1)", [job_id])
        (running,) = await rows_of(database, f"SHOW CHANGEFEED LAG {job_id}")
        assert (running["table_name"], running["state"]) == ("defaultdb.public.t", "running")
        assert running["catch_up_seconds"] == 0.0
        await database.sql(f"PAUSE JOB {job_id}")
        seen: list[float] = []
        while len(seen) < 5:
            (lag,) = await rows_of(database, f"SHOW CHANGEFEED LAG {job_id}")
            (job,) = await rows_of(database, f"SHOW CHANGEFEED JOB {job_id}")
            if job["status"] == "paused":
                assert (lag["state"], lag["catch_up_seconds"]) == ("paused", None)
                assert job["lag_seconds"] >= lag["lag_seconds"]
                assert job["catch_up_seconds"] is None
                seen.append(lag["lag_seconds"])
        assert seen == sorted(set(seen))
        await database.sql(f"CANCEL JOB {job_id}")
        while job["status"] != "canceled":
            (job,) = await rows_of(database, f"SHOW CHANGEFEED JOB {job_id}")
        assert job["lag_seconds"] is None
        assert await rows_of(database, f"SHOW CHANGEFEED LAG {job_id}") == []

    on_database(tmp_path, scenario)


@pytest.mark.parametrize("what", ["LATENCY", "LAG"])
def test_what_is_no_feed_is_refused(tmp_path: Path, what: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        with pytest.raises(SQLError) as caught:
            await database.sql(f"SHOW CHANGEFEED {what} 5")
        assert caught.value.sqlstate == "42704"

    on_database(tmp_path, scenario)


def test_a_breach_of_an_objective_names_its_stage(tmp_path: Path) -> None:
    """Also of rows that have not come to the sink; a feed that keeps its objective has none."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("SET CLUSTER SETTING changefeed.slo.window = '50ms'")
        await database.sql("SET CLUSTER SETTING changefeed.experimental_poll_interval = '1h'")
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        slow = await feed_of(database, "WITH slo_p99 = '1us'")
        kept = await feed_of(database, "WITH slo_p99 = '1h'")
        held = await feed_of(
            database, "WITH schema_feed = 'polling', initial_scan = 'no', slo_p99 = '20ms'"
        )
        await database.sql("SELECT wait_for_changefeed($1)", [slow])
        await database.sql("INSERT INTO t VALUES (1, 'v')")
        found: dict[int, dict[str, Any]] = {}
        async with asyncio.timeout(30):
            while not {slow, held} <= set(found):
                rows = await rows_of(database, "SELECT * FROM system.feed_breaches")
                found = {row["job_id"]: row for row in rows}
        assert set(found) == {slow, held}
        assert found[slow]["stage"] in STAGES
        assert found[held]["commits"] == 0
        assert (found[held]["stage"], found[held]["slo_ms"]) == ("gate", 20.0)
        assert all(row["p99_ms"] > row["slo_ms"] for row in found.values())
        breaches = [database.feed(each).slo_breaches for each in (slow, kept, held)]
        assert breaches[0] >= 1 and breaches[1] == 0 and breaches[2] >= 1
        await database.sql(f"CANCEL JOBS (SELECT * FROM (VALUES ({slow}), ({held})))")
        await database.sql(f"SHOW JOBS WHEN COMPLETE VALUES ({slow}), ({held})")
        assert await rows_of(database, "SELECT * FROM system.feed_breaches") == []

    on_database(tmp_path, scenario)
