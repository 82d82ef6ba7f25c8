"""Forms of CREATE CHANGEFEED, and the jobs that they make as SQL shows and controls them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.jobs.job_store import JobStore
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.jobs.details import decode_details, encode_details
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps


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


def test_a_mirror_goes_from_a_canceled_feed_to_the_next(tmp_path: Path) -> None:
    """At once: the next waits until the first, whose end was asked for, has released it."""

    async def scenario(database: AsyncDatabase) -> None:
        statement = "CREATE CHANGEFEED FOR orders INTO 'duckdb:///m.duckdb'"
        first = await create(database, statement)
        await until(database, first, "running")
        await database.sql(f"CANCEL JOB {first}")
        second = await create(database, statement)
        assert await state(database, first) == "canceled"
        async with asyncio.timeout(30):
            await database.feed(second).wait_until(await database.node.store.now())

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
        await database.sql("DROP TABLE orders")
        await database.node.jobs.wait(job_id, JobState.FAILED, timeout=30)
        [row] = await rows(database, f"SHOW CHANGEFEED JOB {job_id} WITH WATCHED_TABLES")
        orders, refunds = str(row[-1]).split("; ")
        assert orders.startswith("defaultdb.public.orders failed at 1"), row
        assert refunds.startswith("defaultdb.public.refunds paused at 1"), row

    run(tmp_path, scenario)


async def options_of_another_version(database: AsyncDatabase, job_id: int) -> None:
    """The feed's job as a version has left it whose options this one refuses."""
    jobs, transaction = JobStore(database.node.store), database.node.store.begin()
    job = await jobs.read(transaction, job_id)
    details = decode_details(job.payload)
    options = {**details.options, "compression": "lzo", "of_old": None}
    payload = encode_details(msgspec.structs.replace(details, options=options))
    await jobs.put_payload(transaction, job, payload, job.description)
    await transaction.commit()


@pytest.mark.parametrize("policy", ["pause", "fail"])
def test_a_feed_whose_options_are_refused_is_shown_altered_and_ended(
    tmp_path: Path, policy: str
) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        create_it = f"CREATE CHANGEFEED FOR orders INTO 'null://' WITH on_error = '{policy}'"
        job_id = await create(database, create_it)
        async with asyncio.timeout(30):
            await database.feed(job_id).wait_until(await database.node.store.now())
        await database.sql(f"PAUSE JOB {job_id}")
        await database.node.jobs.wait(job_id, JobState.PAUSED, timeout=30)
        await options_of_another_version(database, job_id)
        await database.sql(f"RESUME JOB {job_id}")
        ends = JobState.PAUSED if policy == "pause" else JobState.FAILED
        await database.node.jobs.wait(job_id, ends, timeout=30)
        [row] = await rows(database, f"SHOW CHANGEFEED JOB {job_id} WITH WATCHED_TABLES")
        assert f"orders {ends.value} at 1" in str(row[-1]), row
        error = (await database.node.jobs.get(job_id)).error
        assert error is not None and "unknown changefeed option 'of_old'" in error
        if policy == "pause":
            await database.sql(f"ALTER CHANGEFEED {job_id} UNSET compression, of_old")
            await database.sql(f"RESUME JOB {job_id}")
            async with asyncio.timeout(30):
                await database.feed(job_id).wait_until(await database.node.store.now())
            await options_of_another_version(database, job_id)
            await database.sql(f"CANCEL JOB {job_id}")
            await database.node.jobs.wait(job_id, JobState.CANCELED, timeout=30)
        store = database.node.store
        assert await ProtectedTimestamps(store).read_all(store.begin()) == []

    run(tmp_path, scenario)
