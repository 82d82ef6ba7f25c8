"""A file of the mirrors: opening, closing, checkpoints, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.changefeed.sinks.duckdb import mirror_file
from tailrace.changefeed.sinks.protocol import SinkError
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, MirrorSink, begin, progress_of, rows_batch, run
from tests.harness.simulation import Simulation

ORDERS = table()


def test_file_is_open_while_somebody_uses_it(tmp_path: Path) -> None:
    path = tmp_path / "eu" / "mirror.duckdb"

    async def scenario(mirrors: Mirrors) -> None:
        first = await mirrors.files.acquire(path)
        second = await mirrors.files.acquire(path)
        assert first is second
        await first.release()
        assert mirrors.files.open_files == [path]
        await second.release()
        assert mirrors.files.open_files == []

    run(tmp_path, scenario)


def test_a_caller_that_is_cancelled_leaves_no_file_open(tmp_path: Path) -> None:
    """A feed that is paused while it opens its mirror would keep it from everybody else."""

    async def scenario(mirrors: Mirrors) -> None:
        for _ in range(5):
            opening = asyncio.create_task(mirrors.files.acquire(tmp_path / "m.duckdb"))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            assert mirrors.files.open_files == []

    run(tmp_path, scenario)


def test_a_file_that_another_instance_holds_is_opened_when_that_is_gone(tmp_path: Path) -> None:
    """DuckDB shares the instances of a process by path: what failed to open one lets go of it,
    whoever keeps the error."""
    path = tmp_path / "m.duckdb"
    held = duckdb.connect(str(path), config=dict(mirror_file.CONFIG))
    held.execute("SET lock_configuration = true")

    async def scenario(mirrors: Mirrors) -> None:
        with pytest.raises(SinkError) as refused:
            await mirrors.files.acquire(path)
        held.close()
        async with mirrors.files.using(path):
            assert mirrors.files.open_files == [path]
        assert "locked" in str(refused.value)

    run(tmp_path, scenario)


def test_open_files_have_no_threads(tmp_path: Path) -> None:
    """Whoever calls does the work; by itself DuckDB starts eight for each file, for its reads."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.files.using(tmp_path / "first.duckdb"):
            before = len(os.listdir("/proc/self/task"))
            others = [await mirrors.files.acquire(tmp_path / f"{n}.duckdb") for n in range(5)]
            assert len(os.listdir("/proc/self/task")) - before <= len(others)  # the node's own
            for file in others:
                await file.release()

    run(tmp_path, scenario)


def test_close_leaves_no_log(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(progress_of(ORDERS, 10))
            assert (tmp_path / "mirror.duckdb.wal").stat().st_size > 0

    run(tmp_path, scenario)
    assert [path.name for path in tmp_path.iterdir()] == ["mirror.duckdb"]
    with duckdb.connect(str(tmp_path / "mirror.duckdb"), read_only=True) as plain:
        assert plain.execute("FROM orders").fetchall() == [(1, "a")]


def test_idle_file_is_checkpointed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_file, "IDLE_COMMITS_MIN", 1)
    monkeypatch.setattr(mirror_file, "IDLE_SECONDS", 0.001)

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            sink.emit(rows_batch(ORDERS, [((1,), 10, (1, "a"))]))
            await sink.flush(None)
            wal = tmp_path / "mirror.duckdb.wal"
            async with asyncio.timeout(10):
                while wal.exists() and wal.stat().st_size:
                    await asyncio.sleep(0.001)
            assert await mirrors.read("FROM orders") == [(1, "a")]

    run(tmp_path, scenario)


def test_two_feeds_share_a_file(tmp_path: Path) -> None:
    items = table(id=105, name="items")

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as one, mirrors.open(items, job_id=8) as two:

            async def feed(sink: MirrorSink, source: TableDescriptor) -> None:
                for k in range(20):
                    sink.emit(rows_batch(source, [((k,), 10, (k, "x"))]))
                    await sink.flush(None)

            await asyncio.gather(feed(one, ORDERS), feed(two, items))
            found = await mirrors.read("SELECT count(*) FROM orders JOIN items USING (k)")
            assert found == [(20,)]

    run(tmp_path, scenario)


KILLED = """
import asyncio, sys
from pathlib import Path
from tests.harness.descriptors import table
from tests.harness.mirrors import progress_of, rows_batch, run

orders = table()

async def scenario(mirrors):
    async with mirrors.open(orders) as sink:
        for ts in range(1, 1_000_000):
            row = None if ts % 5 == 0 else (ts % 7, str(ts))
            sink.emit(rows_batch(orders, [((ts % 7,), ts, row)]))
            await sink.flush(progress_of(orders, ts))
            print(ts, flush=True)

run(Path(sys.argv[1]), scenario)
"""


@pytest.mark.system
def test_killed_process_leaves_its_last_flush(tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    with program:
        assert program.stdout is not None
        for line in program.stdout:
            if int(line) >= 200:
                program.send_signal(signal.SIGKILL)
                break
        acknowledged = int(line)

    async def scenario(mirrors: Mirrors) -> None:
        sink = mirrors.sink(epoch=2)
        saved = await begin(sink, [ORDERS])
        assert saved is not None
        assert saved.resolved >= acknowledged
        model = {ts % 7: None if ts % 5 == 0 else str(ts) for ts in range(1, saved.resolved + 1)}
        expected = sorted((k, v) for k, v in model.items() if v is not None)
        assert await mirrors.read("FROM orders ORDER BY k") == expected
        await sink.close()

    run(tmp_path, scenario)


def test_simulated_machine_can_mirror(tmp_path: Path) -> None:
    """The lanes run inline, at moments that the seed chooses, and cancelled at one of them."""
    simulation = Simulation(seed=5)

    async def feed() -> None:
        mirrors = Mirrors(tmp_path, simulation.offload, wall=simulation.wall)
        for epoch in range(1, 8):
            sink = mirrors.sink(epoch=epoch)
            saved = await begin(sink, [ORDERS])
            start = saved.resolved if saved is not None else 0
            flushing = asyncio.ensure_future(flush_all(sink, start))
            await asyncio.sleep(simulation.random.random() * 0.05)
            flushing.cancel()
            await asyncio.wait([flushing])
            await sink.close()
        (resolved,) = await mirrors.read("SELECT resolved FROM _tailrace.progress")
        assert await mirrors.read("SELECT count(*), max(k) FROM orders") == [resolved * 2]

    async def flush_all(sink: MirrorSink, start: int) -> None:
        for ts in range(start + 1, 1_000):
            sink.emit(rows_batch(ORDERS, [((ts,), ts, (ts, "x"))]))
            await sink.flush(progress_of(ORDERS, ts))

    simulation.run(feed())


@pytest.mark.parametrize("place", ["here"], indirect=True)
def test_a_failing_checkpoint_is_not_tried_with_every_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor ever after given up: it succeeds once it can."""
    monkeypatch.setattr(mirror_file, "WAL_BYTES_MAX", 1)
    monkeypatch.setattr(mirror_file, "RETRY_SECONDS_MIN", 3600.0)
    tried: list[bool] = []
    checkpoint = mirror_file.MirrorFile._checkpoint_now

    def noted(self: mirror_file.MirrorFile) -> bool:
        tried.append(checkpoint(self))
        return tried[-1]

    monkeypatch.setattr(mirror_file.MirrorFile, "_checkpoint_now", noted)

    async def scenario(mirrors: Mirrors) -> None:
        file = await mirrors.files.acquire(tmp_path / "mirror.duckdb")
        other = file.cursor()
        other.execute("BEGIN")
        other.execute("CREATE TABLE held (k INT)")  # no checkpoint passes a transaction that writes
        async with mirrors.open(ORDERS) as sink:
            for k in range(30):
                sink.emit(rows_batch(ORDERS, [((k,), 10 + k, (k, "a"))]))
                await sink.flush(None)
                await asyncio.sleep(0)
            assert tried == [False]
            other.execute("ROLLBACK")
            file._retry_at = 0.0  # the pause is over
            k = 30
            while tried[-1] is False:
                sink.emit(rows_batch(ORDERS, [((k,), 10 + k, (k, "a"))]))
                await sink.flush(None)
                await asyncio.sleep(0)
                k += 1
        file.close_cursor(other)
        await file.release()

    run(tmp_path, scenario)
