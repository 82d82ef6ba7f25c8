"""Feed workers as processes: killed, stopped, orphaned, and read from."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.worker import process
from tests.harness.worker_pids import kill_worker, worker_pid, worker_pids

pytestmark = pytest.mark.system

FILE = "m.duckdb"
ON = "SET CLUSTER SETTING changefeed.workers = 'on'"
SECONDS = 60.0


@asynccontextmanager
async def mirrored(folder: Path, uri: str = f"duckdb:///{FILE}") -> AsyncIterator[AsyncDatabase]:
    """A database with a table `t`, of which job `jobs[0]` feeds a mirror in a worker."""
    async with await aopen(folder / "data") as database:
        await database.sql(ON)
        await database.sql("CREATE TABLE t (id INT8 PRIMARY KEY, note STRING, n INT8)")
        await database.sql(f"CREATE CHANGEFEED FOR t INTO '{uri}'")
        yield database


async def job_of(database: AsyncDatabase) -> int:
    (job,) = [each.id for each in await database.node.jobs.list() if not each.state.final]
    return job


async def caught_up(database: AsyncDatabase) -> None:
    async with asyncio.timeout(SECONDS):
        feed = database.feed(await job_of(database))
        await feed.wait_until(await database.node.store.now())


async def rows(database: AsyncDatabase, sql: str) -> list[tuple[object, ...]]:
    found = await database.mirror(FILE).sql(sql)
    return [tuple(row.values()) for row in found.to_pylist()]


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await scenario()

    asyncio.run(whole())
    assert worker_pids() == []


async def replay(database: AsyncDatabase, random: Random, stop: asyncio.Event) -> int:
    """Transactions of several rows, put, changed and deleted, until told to stop."""
    written = 0
    while not stop.is_set():
        ids = random.sample(range(500), random.choice([1, 1, 3, 100]))
        values = ", ".join(f"({id}, 'note {written}', {written})" for id in ids)
        await database.sql(f"UPSERT INTO t VALUES {values}")
        if random.random() < 0.3:
            await database.sql(f"DELETE FROM t WHERE id = {random.choice(ids)}")
        written += 1
        await asyncio.sleep(random.choice([0, 0, 0.01]))
    return written


@pytest.mark.parametrize("kills", [10])
def test_workers_that_are_killed_lose_and_double_no_row(kills: int, tmp_path: Path) -> None:
    """The mirror and the log of changes, as the store has them: VERIFY compares every row."""
    random = Random(kills)

    async def scenario() -> None:
        async with mirrored(tmp_path, f"duckdb:///{FILE}?mode=both") as database:
            await caught_up(database)
            stop = asyncio.Event()
            replaying = asyncio.create_task(replay(database, random, stop))
            for _ in range(kills):
                await asyncio.sleep(random.random() * 0.7)
                await kill_worker()
                if random.random() < 0.5:
                    await caught_up(database)
            stop.set()
            assert await replaying > kills
            await caught_up(database)
            found = await database.sql(f"VERIFY CHANGEFEED {await job_of(database)}")
            assert found.fetchall() == []
            live = await database.sql("SELECT id, note, n FROM t ORDER BY id")
            assert await rows(database, "SELECT id, note, n FROM t ORDER BY id") == live.fetchall()
            doubled = "SELECT key FROM t_log GROUP BY key, commit_timestamp HAVING count(*) > 1"
            assert await rows(database, doubled) == []
            metrics = database.node.store.metrics
            assert metrics.get("changefeed_worker_deaths_total") == kills
            assert metrics.get("changefeed_worker_alive") == 1

    run(scenario)


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="Linux's kind of scheduling")
def test_a_worker_preempts_no_server(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with mirrored(tmp_path):
            assert os.sched_getscheduler(await worker_pid()) == os.SCHED_BATCH
            assert os.sched_getscheduler(0) != os.SCHED_BATCH

    run(scenario)


def test_memory_that_is_full_keeps_the_feed_waiting_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that takes nothing: commits go on, and the feed reads no further than it may."""
    monkeypatch.setattr(process, "RING_BYTES", 64 * 1024)

    async def scenario() -> None:
        async with mirrored(tmp_path) as database:
            limit = "SET CLUSTER SETTING changefeed.memory.per_changefeed_limit = 1000000"
            await database.sql(limit)
            await caught_up(database)
            pid = await worker_pid()
            os.kill(pid, signal.SIGSTOP)
            note = "x" * 1_000
            slowest = 0.0
            for first in range(0, 20_000, 500):
                values = ", ".join(f"({id}, '{note}', 0)" for id in range(first, first + 500))
                began = time.monotonic()
                await database.sql(f"INSERT INTO t VALUES {values}")
                slowest = max(slowest, time.monotonic() - began)
            assert slowest < 5
            feed = database.feed(await job_of(database))
            assert feed.rows_emitted - feed.rows_sunk < 10_000
            os.kill(pid, signal.SIGCONT)
            await caught_up(database)
            assert await rows(database, "SELECT count(*), max(id) FROM t") == [(20_000, 19_999)]

    run(scenario)


def test_a_worker_that_dies_in_a_read_is_an_error_of_that_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with mirrored(tmp_path) as database:
            await database.sql("INSERT INTO t VALUES (1, 'a', 1)")
            await caught_up(database)
            long = "SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b"
            reading = asyncio.create_task(database.mirror(FILE).sql(long))
            await asyncio.sleep(0.3)
            await kill_worker()
            with pytest.raises(SQLError, match="the worker process was killed by signal 9") as told:
                await reading
            assert told.value.sqlstate == "58030"
            assert await rows(database, "SELECT id, note FROM t") == [(1, "a")]
            await caught_up(database)

    run(scenario)


def test_a_cancelled_read_ends_in_the_worker(tmp_path: Path) -> None:
    """Five of them: four lanes are for reads, and the next one finds one free."""

    async def scenario() -> None:
        async with mirrored(tmp_path) as database:
            await database.sql("INSERT INTO t VALUES (1, 'a', 1)")
            await caught_up(database)
            long = "SELECT count(*) FROM range(1_000_000_000) a, range(1_000) b"
            for _ in range(5):
                reading = asyncio.create_task(database.mirror(FILE).sql(long))
                await asyncio.sleep(0.2)
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            async with asyncio.timeout(SECONDS):
                assert await rows(database, "SELECT id FROM t") == [(1,)]
            with pytest.raises(SQLError) as told:
                await rows(database, "COPY t TO 'elsewhere.csv'")
            assert told.value.sqlstate == "25006"
            big = "SELECT repeat('x', 1000) AS x FROM range(5000)"
            assert await rows(database, big) == [("x" * 1_000,)] * 5_000

    run(scenario)


def test_a_file_stays_where_it_is_until_nobody_has_it_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with mirrored(tmp_path) as database:
            await caught_up(database)
            job = await job_of(database)
            await database.sql("SET CLUSTER SETTING changefeed.workers = 'off'")
            await database.sql("INSERT INTO t VALUES (1, 'a', 1)")
            await caught_up(database)
            assert database.node._files.open_files == []
            await database.sql(f"PAUSE JOB {job}")
            await database.node.jobs.wait(job, JobState.PAUSED, timeout=SECONDS)
            await database.sql(f"RESUME JOB {job}")
            await caught_up(database)
            assert [path.name for path in database.node._files.open_files] == [FILE]
            await database.sql("INSERT INTO t VALUES (2, 'b', 1)")
            await caught_up(database)
            assert await rows(database, "SELECT id FROM t ORDER BY id") == [(1,), (2,)]

    run(scenario)


def test_a_worker_has_nothing_of_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its environment nor its files: two descriptors, of a socket and of memory that has
    no name."""
    monkeypatch.setenv("TAILRACE_ROOT_PASSWORD", "secret")

    async def scenario() -> None:
        async with mirrored(tmp_path) as database:
            await caught_up(database)
            folder = Path(f"/proc/{await worker_pid()}")
            assert b"secret" not in (folder / "environ").read_bytes()
            assert b"secret" not in (folder / "cmdline").read_bytes()
            held = [os.readlink(each) for each in (folder / "fd").iterdir()]
            files = [each for each in held if each.startswith(str(tmp_path))]
            assert {Path(each).name for each in files} <= {FILE, f"{FILE}.wal"}
            assert (folder / "fd").stat().st_uid == os.getuid()

    run(scenario)


SERVER = """
import asyncio, sys
from tailrace.api.embedded import aopen

async def main():
    database = await aopen(sys.argv[1])
    await database.sql("SET CLUSTER SETTING changefeed.workers = 'on'")
    await database.sql("CREATE TABLE t (id INT8 PRIMARY KEY, note STRING, n INT8)")
    await database.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    for id in range(1_000_000):
        await database.sql("INSERT INTO t VALUES ($1, 'a', 1)", (id,))
        print(id, flush=True)

asyncio.run(main())
"""


def test_a_worker_ends_with_its_server(tmp_path: Path) -> None:
    """Killed, and without a word: the next server finds the file free, and loses nothing."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path / "data")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    with server, server.stdout:
        acknowledged = 0
        while acknowledged < 300 or not worker_pids(server.pid):
            acknowledged = int(server.stdout.readline())
        (worker,) = worker_pids(server.pid)
        server.kill()
        server.wait()
        if rest := server.stdout.read().split():
            acknowledged = int(rest[-1])
    ended_by = time.monotonic() + SECONDS
    while Path(f"/proc/{worker}").exists():
        assert time.monotonic() < ended_by, "it outlives its server"
        time.sleep(0.01)

    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await caught_up(database)
            ((count, greatest),) = await rows(database, "SELECT count(*), max(id) FROM t")
            assert isinstance(greatest, int)
            assert count == greatest + 1 > acknowledged

    run(scenario)
