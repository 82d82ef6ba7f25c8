"""Who reads a mirror sees it as of now, also where its feed is idle and checkpoints seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.kvlayer.clock import Timestamp

SELDOM = "WITH min_checkpoint_frequency = '1h'"
RESOLVED = "SELECT resolved FROM _tailrace.progress"


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(database)

    asyncio.run(whole())


async def feed_of(database: AsyncDatabase, apply: str) -> int:
    await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
    created = await database.sql(
        f"CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb?apply={apply}' {SELDOM}"
    )
    job_id = created.fetchall()[0][0]
    assert isinstance(job_id, int)
    await database.sql("SELECT wait_for_changefeed($1)", [job_id])
    return job_id


async def seen(database: AsyncDatabase) -> Timestamp:
    found = await database.mirror("m.duckdb").sql(RESOLVED)
    return Timestamp(found.column(0)[0].as_py())


async def closed(database: AsyncDatabase, job_id: int) -> Timestamp:
    """Now, once the feed has heard that everything up to now is resolved."""
    now, live = await database.node.store.now(), database.feed(job_id)
    while (reached := live.reached()) is None or reached < now:
        await asyncio.sleep(0)
    return now


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_a_read_brings_an_idle_feed_up_to_date(tmp_path: Path, apply: str) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, apply)
        for _ in range(3):
            now = await closed(database, job_id)
            assert await seen(database) >= now

    on_database(tmp_path, scenario)


def test_a_read_of_a_paused_feed_sees_where_it_stands(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await feed_of(database, "row")
        await database.sql(f"PAUSE JOB {job_id}")
        while database.feed(job_id).here:
            await asyncio.sleep(0.01)
        stood = await seen(database)
        assert await seen(database) == stood

    on_database(tmp_path, scenario)
