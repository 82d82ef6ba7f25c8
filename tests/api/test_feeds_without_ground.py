"""Feeds whose database, protection or owner's right has gone: each says so by name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.jobs.details import decode_details
from tailrace.changefeed.jobs.reservations import PROTECTION_OWNER
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps, records
from tailrace.kvlayer.store import Store


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await database.sql("INSERT INTO t VALUES (1, 1)")
            await work(database)

    asyncio.run(whole())


async def feed(database: AsyncDatabase, statement: str) -> int:
    ((job_id,),) = (await database.sql(f"CREATE CHANGEFEED {statement}")).fetchall()
    assert isinstance(job_id, int)
    async with asyncio.timeout(30):
        await database.feed(job_id).wait_until(await database.node.store.now())
    return job_id


async def pause(database: AsyncDatabase, job_id: int) -> None:
    await database.sql(f"PAUSE JOB {job_id}")
    await database.node.jobs.wait(job_id, JobState.PAUSED, timeout=30)


async def failure(database: AsyncDatabase, job_id: int) -> str:
    async with asyncio.timeout(30):
        await database.sql(f"SHOW JOB WHEN COMPLETE {job_id}")
    query = f"SELECT error FROM [SHOW CHANGEFEED JOBS] WHERE job_id = {job_id}"
    ((error,),) = (await database.sql(query)).fetchall()
    return str(error)


def test_a_feed_ends_with_the_database_of_its_table(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE DATABASE shop; CREATE TABLE shop.public.u (k INT8 PRIMARY KEY)")
        jobs = [
            await feed(database, f"FOR TABLE shop.public.u INTO '{sink}'")
            for sink in ("null://", "duckdb:///m.duckdb")
        ]
        await pause(database, jobs[1])
        await database.sql("DROP DATABASE shop CASCADE")
        await database.sql(f"RESUME JOB {jobs[1]}")
        for job_id in jobs:
            error = await failure(database, job_id)
            assert 'table "u"' in error
            assert "was dropped" in error

    on_database(tmp_path, scenario)


def test_a_feed_that_was_paused_beyond_its_protection_fails(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        # A mirror says what to do; where progress is the job's, the store's own words are told.
        jobs = [
            await feed(database, f"FOR TABLE t INTO '{sink}' WITH gc_protect_expires_after = '1ms'")
            for sink in ("null://", "duckdb:///m.duckdb")
        ]
        for job_id in jobs:
            await pause(database, job_id)
        await database.sql("UPDATE t SET v = 2")
        node = database.node
        table = await node.services.catalog.descriptors.read_at(100, await node.store.now())
        assert isinstance(table, TableDescriptor)
        assert isinstance(node.store, Store)
        await node.store.collect_garbage(table.primary_span, await node.store.now())
        for job_id in jobs:
            await database.sql(f"RESUME JOB {job_id}")
            assert "garbage" in await failure(database, job_id)

    on_database(tmp_path, scenario)


def test_a_feed_whose_owner_lost_a_right_is_not_extended_and_not_resumed(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE u (k INT8 PRIMARY KEY); CREATE USER ada PASSWORD 'engine'")
        await database.sql("GRANT CHANGEFEED ON t, u TO ada")
        async with database.session() as ada:
            await ada.sql("SET ROLE ada")
            ((job_id,),) = (await ada.sql("CREATE CHANGEFEED FOR t INTO 'null://'")).fetchall()
        assert isinstance(job_id, int)
        await pause(database, job_id)
        await database.sql("REVOKE CHANGEFEED ON t, u FROM ada")
        for statement, why in {
            f"ALTER CHANGEFEED {job_id} ADD u": "does not have CHANGEFEED privilege on relation u",
            f"RESUME JOB {job_id}": "does not have CHANGEFEED privilege on relation t",
        }.items():
            with pytest.raises(SQLError, match=why) as caught:
                await database.sql(statement)
            assert caught.value.sqlstate == "42501"
        await database.sql(f"ALTER CHANGEFEED {job_id} SET min_checkpoint_frequency = '1s'")
        await database.sql("GRANT CHANGEFEED ON t, u TO ada")
        await database.sql(f"ALTER CHANGEFEED {job_id} ADD u; RESUME JOB {job_id}")
        async with asyncio.timeout(30):
            await database.feed(job_id).wait_until(await database.node.store.now())

    on_database(tmp_path, scenario)


def test_what_a_feed_that_is_over_protects_is_swept_when_the_store_opens(tmp_path: Path) -> None:
    """A process that dies between the end of a feed and its release leaves the record behind."""

    async def scenario() -> None:
        async with await aopen(tmp_path) as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            kept = await feed(database, "FOR TABLE t INTO 'null://'")
            store = database.node.store
            assert isinstance(store, Store)
            transaction = store.begin()
            await ProtectedTimestamps(store).protect(
                transaction,
                owner=PROTECTION_OWNER,
                spans=[table_span(100)],
                timestamp=await store.now(),
            )
            await transaction.commit()
            assert len(records(store.engine)) == 2
        async with await aopen(tmp_path) as database:
            store = database.node.store
            assert isinstance(store, Store)
            (left,) = records(store.engine)
            job = await database.node.jobs.get(kept)
            assert left.id == decode_details(job.payload).protection_id

    asyncio.run(scenario())
