"""Forms of CREATE CHANGEFEED, and the jobs that they make as SQL shows and controls them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError


def run(path: Path, scenario: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    """A scenario on a database with two tables."""

    async def opened() -> None:
        async with await aopen(path / "data") as database:
            for table in ("orders", "refunds"):
                await database.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY, v STRING)")
                await database.sql(f"INSERT INTO {table} VALUES (1, 'old'), (2, 'old')")
            await scenario(database)

    asyncio.run(opened())


async def rows(database: AsyncDatabase, text: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in (await database.sql(text)).fetchall()]


async def create(database: AsyncDatabase, text: str) -> int:
    [(job_id,)] = await rows(database, text)
    assert isinstance(job_id, int)
    return job_id


async def state(database: AsyncDatabase, job_id: int) -> object:
    [(found,)] = await rows(database, f"SELECT status FROM [SHOW JOBS] WHERE job_id = {job_id}")
    return found


async def until(database: AsyncDatabase, job_id: int, wanted: str) -> None:
    async with asyncio.timeout(30):
        while await state(database, job_id) != wanted:
            await asyncio.sleep(0.02)


async def refused(database: AsyncDatabase, text: str) -> SQLError:
    with pytest.raises(SQLError) as caught:
        await database.sql(text)
    return caught.value


def test_a_paused_feed_is_made_and_does_not_begin(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await create(
            database, "CREATE CHANGEFEED WITH paused INTO 'duckdb:///m.duckdb' FOR orders"
        )
        assert await state(database, job_id) == "paused"
        await database.sql("DELETE FROM orders WHERE k = 1")
        assert not list(tmp_path.rglob("m.duckdb"))
        error = await refused(database, "CREATE CHANGEFEED FOR orders INTO 'duckdb:///m.duckdb'")
        assert error.sqlstate == "55000", error
        await database.sql(f"RESUME JOB {job_id}")
        async with asyncio.timeout(30):
            await database.feed(job_id).wait_until(await database.node.store.now())
        assert database.feed(job_id).scanned_rows == 2, "as of the statement, not of the resumption"
        shown = (await database.mirror("m.duckdb").sql("SELECT k FROM orders")).to_pylist()
        assert shown == [{"k": 2}]

    run(tmp_path, scenario)


def test_what_cannot_be_paused_is_refused(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        error = await refused(database, "CREATE CHANGEFEED FOR orders WITH paused")
        assert (error.sqlstate, "without a sink" in error.message) == ("22023", True)
        job_id = await create(database, "CREATE CHANGEFEED FOR orders INTO 'null://'")
        error = await refused(database, f"ALTER CHANGEFEED {job_id} SET paused")
        assert (error.sqlstate, "PAUSE JOB" in str(error.hint)) == ("22023", True)

    run(tmp_path, scenario)


def test_jobs_are_controlled_by_a_query(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        ids = [
            await create(database, f"CREATE CHANGEFEED INTO 'null://' FOR {table}")
            for table in ("orders", "refunds")
        ]
        for job_id in ids:
            await until(database, job_id, "running")
        chosen = "SELECT job_id FROM [SHOW CHANGEFEED JOBS] WHERE full_table_names LIKE '%orders'"
        await database.sql(f"PAUSE JOBS ({chosen})")
        await until(database, ids[0], "paused")
        assert await state(database, ids[1]) == "running"
        await database.sql(f"RESUME JOBS {chosen}")
        await until(database, ids[0], "running")
        await database.sql("CANCEL JOBS (SELECT job_id FROM [SHOW CHANGEFEED JOBS])")
        shown = await rows(database, f"SHOW JOBS WHEN COMPLETE {ids[0]}, {ids[1]}")
        assert [(row[0], row[3]) for row in shown] == [(job_id, "canceled") for job_id in ids]
        assert (await refused(database, "PAUSE JOBS (SELECT 1, 2)")).sqlstate == "42601"
        assert (await refused(database, "PAUSE JOBS (SELECT 'a')")).sqlstate == "42804"
        assert (await refused(database, "SHOW JOBS WHEN COMPLETE 7")).sqlstate == "42704"

    run(tmp_path, scenario)


def test_watched_tables_tell_what_each_is_doing(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        job_id = await create(database, "CREATE CHANGEFEED FOR orders, refunds INTO 'null://'")
        async with asyncio.timeout(30):
            await database.feed(job_id).wait_until(await database.node.store.now())
        await database.sql(f"ALTER CHANGEFEED {job_id} PAUSE TABLE refunds")
        [row] = await rows(database, f"SHOW CHANGEFEED JOB {job_id} WITH WATCHED_TABLES")
        orders, refunds = str(row[-1]).split("; ")
        assert orders.startswith("defaultdb.public.orders running at 1"), row
        assert refunds.startswith("defaultdb.public.refunds paused at 1"), row
        [plain] = await rows(database, f"SHOW CHANGEFEED JOB {job_id}")
        assert len(plain) == len(row) - 1

    run(tmp_path, scenario)
