"""A data folder that is put back from a copy, under a mirror that has seen what came after it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import duckdb
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.node import NodeOptions
from tailrace.catalog.jobs import JobState
from tailrace.changefeed import JOB_KIND, FeedStopped

CREATE = "CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)"
INTO_MIRROR = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///mirror.duckdb'"
Use = Callable[[AsyncDatabase], Awaitable[None]]


class House:
    """A data folder, and a mirror that lies outside of it."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.copy = folder / "copy"
        self.mirrors = folder / "mirrors"
        self.mirrors.mkdir()

    async def open(self) -> AsyncDatabase:
        return await aopen(self.data, NodeOptions(mirror_roots=(self.mirrors,)))

    async def live(self, use: Use) -> None:
        """One life of the store, and of its feed."""
        async with await self.open() as database:
            await use(database)
            await settled(database)

    async def begin(self) -> None:
        """A table with two rows, and its mirror."""
        async with await self.open() as database:
            await database.sql(CREATE)
            await database.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
            await database.sql(INTO_MIRROR)
            await settled(database)

    def copy_folder(self) -> None:
        shutil.copytree(self.data, self.copy)

    def put_back(self) -> None:
        shutil.rmtree(self.data)
        shutil.copytree(self.copy, self.data)


async def job_id(database: AsyncDatabase) -> int:
    """The feed that was created last."""
    return max(job.id for job in await database.node.jobs.list() if job.kind == JOB_KIND)


async def settled(database: AsyncDatabase) -> None:
    """The mirror has reached the present, and equals its table."""
    feed = database.feed(await job_id(database))
    await asyncio.wait_for(feed.wait_until(await database.node.store.now()), 30)
    expected = (await database.sql("SELECT * FROM orders ORDER BY id")).arrow()
    found = await database.mirror("mirror.duckdb").sql("SELECT * FROM orders ORDER BY id")
    assert found.to_pylist() == expected.to_pylist()


async def nothing(database: AsyncDatabase) -> None:
    """Opens the store and does no more."""


async def write_five(database: AsyncDatabase) -> None:
    for number in range(5):
        await database.sql(f"UPSERT INTO orders VALUES ({100 + number}, 'lost')")


async def write_one(database: AsyncDatabase) -> None:
    await database.sql("UPSERT INTO orders VALUES (3, 'kept')")


@pytest.mark.parametrize("original", [nothing, write_five])
@pytest.mark.parametrize("restored", [nothing, write_one])
def test_feed_of_a_restored_store_fails_and_says_why(
    tmp_path: Path, original: Use, restored: Use
) -> None:
    async def scenario() -> None:
        house = House(tmp_path)
        await house.begin()
        house.copy_folder()
        await house.live(original)
        house.put_back()
        async with await house.open() as database:
            await restored(database)
            with pytest.raises(FeedStopped, match="put back from an older copy"):
                await settled(database)
            failed = JobState.FAILED
            job = await database.node.jobs.wait(await job_id(database), failed, timeout=30)
            assert job.error is not None
            assert "create the changefeed again" in job.error
            await database.sql(INTO_MIRROR)
            await settled(database)

    asyncio.run(scenario())


def test_a_copy_beside_the_store_takes_no_mirror_from_it(tmp_path: Path) -> None:
    """Its feed fails, and what the mirror knows of the original's stays, by which that one goes
    on."""

    async def scenario() -> None:
        house = House(tmp_path)
        await house.begin()
        house.copy_folder()
        await house.live(write_five)
        before = progress(house)
        async with await aopen(house.copy, NodeOptions(mirror_roots=(house.mirrors,))) as database:
            failed = JobState.FAILED
            job = await database.node.jobs.wait(await job_id(database), failed, timeout=30)
            assert job.error is not None and "put back from an older copy" in job.error
        assert progress(house) == before
        await house.live(write_one)

    asyncio.run(scenario())


def test_a_feed_canceled_in_a_copy_lets_no_mirror_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House(tmp_path)
        await house.begin()
        async with await house.open() as database:
            job = await job_id(database)
            await database.sql(f"PAUSE JOB {job}")
            await database.node.jobs.wait(job, JobState.PAUSED, timeout=30)
        house.copy_folder()
        async with await house.open() as database:
            await database.sql(f"RESUME JOB {await job_id(database)}")
            await write_five(database)
            await settled(database)
        before = progress(house)
        async with await aopen(house.copy, NodeOptions(mirror_roots=(house.mirrors,))) as database:
            job = await job_id(database)
            await database.sql(f"CANCEL JOB {job}")
            await database.node.jobs.wait(job, JobState.CANCELED, timeout=30)
        assert progress(house) == before
        await house.live(write_one)

    asyncio.run(scenario())


def test_a_copy_writes_no_files_beside_those_of_the_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House(tmp_path)
        async with await house.open() as database:
            await database.sql(CREATE)
            await database.sql("CREATE CHANGEFEED FOR orders INTO 'file:///changes'")
            await write_one(database)
            await reached(database)
        house.copy_folder()
        async with await house.open() as database:
            await write_five(database)
            await reached(database)
        async with await aopen(house.copy, NodeOptions(mirror_roots=(house.mirrors,))) as database:
            failed = JobState.FAILED
            job = await database.node.jobs.wait(await job_id(database), failed, timeout=30)
            assert job.error is not None and "put back from an older copy" in job.error
        async with await house.open() as database:
            await database.sql("UPSERT INTO orders VALUES (4, 'kept')")
            await reached(database)

    async def reached(database: AsyncDatabase) -> None:
        feed = database.feed(await job_id(database))
        await asyncio.wait_for(feed.wait_until(await database.node.store.now()), 30)

    asyncio.run(scenario())


def progress(house: House) -> list[tuple[object, ...]]:
    with duckdb.connect(str(house.mirrors / "mirror.duckdb"), read_only=True) as file:
        return file.execute(
            "SELECT job_id, epoch, incarnation, log_index FROM _tailrace.progress"
        ).fetchall()


def test_store_and_mirror_put_back_together_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House(tmp_path)
        await house.begin()
        house.copy_folder()
        mirror = (house.mirrors / "mirror.duckdb").read_bytes()
        await house.live(write_five)
        house.put_back()
        (house.mirrors / "mirror.duckdb").write_bytes(mirror)
        await house.live(write_one)

    asyncio.run(scenario())


def test_mirror_put_back_alone_catches_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House(tmp_path)
        await house.begin()
        mirror = (house.mirrors / "mirror.duckdb").read_bytes()
        await house.live(write_five)
        (house.mirrors / "mirror.duckdb").write_bytes(mirror)
        await house.live(write_one)

    asyncio.run(scenario())


def test_mirror_of_a_job_that_the_copy_never_had_is_free(tmp_path: Path) -> None:
    """The file names a job that no store knows any more: its tables are nobody's."""

    async def scenario() -> None:
        house = House(tmp_path)
        async with await house.open() as database:
            await database.sql(CREATE)
            await database.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        house.copy_folder()
        async with await house.open() as database:
            await database.sql(INTO_MIRROR)
            await write_five(database)
            await settled(database)
        house.put_back()
        async with await house.open() as database:
            await database.sql(INTO_MIRROR)
            await settled(database)

    asyncio.run(scenario())
