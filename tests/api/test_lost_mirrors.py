"""A mirror that is deleted, replaced or held by others, under a running and under a paused feed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState

URI = "duckdb:///m.duckdb"
HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); sys.stdin.read()"


class Fed:
    """A table of one row, its mirror and its feed."""

    def __init__(self, database: AsyncDatabase, path: Path, job_id: int) -> None:
        self.database = database
        self.path = path
        self.job_id = job_id
        self._count = 1

    async def write(self) -> None:
        self._count += 1
        await self.database.sql(f"INSERT INTO t VALUES ({self._count})")

    async def caught_up(self) -> None:
        """The mirror has every row."""
        async with asyncio.timeout(30):
            await self.database.feed(self.job_id).wait_until(await self.database.node.store.now())
        found = await self.database.mirror(URI).sql("SELECT k FROM t ORDER BY k")
        assert found.column("k").to_pylist() == list(range(1, self._count + 1))

    async def pause(self) -> None:
        await self.database.sql(f"PAUSE JOB {self.job_id}")
        await self.database.node.jobs.wait(self.job_id, JobState.PAUSED, timeout=30)

    async def resume(self) -> None:
        await self.database.sql(f"RESUME JOB {self.job_id}")

    async def failure(self) -> str:
        async with asyncio.timeout(30):
            await self.database.sql(f"SHOW JOB WHEN COMPLETE {self.job_id}")
        ((error,),) = (
            await self.database.sql("SELECT error FROM [SHOW CHANGEFEED JOBS]")
        ).fetchall()
        return str(error)


@asynccontextmanager
async def fed(folder: Path) -> AsyncIterator[Fed]:
    async with await aopen(folder / "data") as database:
        for setting in ("initial", "max"):
            await database.sql(f"SET CLUSTER SETTING jobs.retry.{setting}_backoff = '0.05s'")
        await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await database.sql("INSERT INTO t VALUES (1)")
        created = await database.sql(f"CREATE CHANGEFEED FOR t INTO '{URI}'")
        ((job_id,),) = created.fetchall()
        assert isinstance(job_id, int)
        found = Fed(database, folder / "data" / "mirrors" / "m.duckdb", job_id)
        await found.caught_up()
        yield found


async def mirror_of_another_store(folder: Path) -> Path:
    async with fed(folder) as other:
        path = other.path
    return path


@pytest.mark.parametrize("paused", [False, True])
def test_a_mirror_that_is_deleted_is_made_anew(tmp_path: Path, paused: bool) -> None:
    async def whole() -> None:
        async with fed(tmp_path) as feed:
            if paused:
                await feed.pause()
            feed.path.unlink()
            await feed.write()
            if paused:
                await feed.resume()
            await feed.caught_up()
            assert feed.path.exists()

    asyncio.run(whole())


@pytest.mark.parametrize("paused", [False, True])
def test_a_mirror_that_is_another_stores_by_now_is_left_alone(tmp_path: Path, paused: bool) -> None:
    async def whole() -> None:
        theirs = await mirror_of_another_store(tmp_path / "other")
        async with fed(tmp_path) as feed:
            if paused:
                await feed.pause()
            copy = shutil.copy(theirs, tmp_path / "copy.duckdb")
            Path(copy).replace(feed.path)
            await feed.write()
            if paused:
                await feed.resume()
            assert "belongs to store" in await feed.failure()
            assert feed.path.read_bytes() == theirs.read_bytes()

    asyncio.run(whole())


def test_a_mirror_that_another_program_holds_is_waited_for(tmp_path: Path) -> None:
    async def whole() -> None:
        async with fed(tmp_path) as feed:
            await feed.pause()
            command = [sys.executable, "-c", HOLD, str(feed.path)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
                assert holder.stdout is not None
                assert holder.stdin is not None
                holder.stdout.readline()
                await feed.write()
                await feed.resume()
                async with asyncio.timeout(30):
                    while not feed.database.feed(feed.job_id).last_error:
                        await asyncio.sleep(0)
                assert "m.duckdb" in str(feed.database.feed(feed.job_id).last_error)
                holder.stdin.close()
            await feed.caught_up()

    asyncio.run(whole())
