"""Rows and progress commit together, and a replay changes nothing."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.changefeed.sinks.protocol import SinkError, SinkProgress
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.span import Span
from tests.harness.descriptors import table
from tests.harness.mirrors import Mirrors, MirrorSink, Row, begin, progress_of, rows_batch, run

ORDERS = table()
Change = tuple[tuple[int], int, Row | None]

TOMBSTONES = "SELECT count(*) FROM _tailrace.tombstones"


def upsert(key: int, ts: int) -> Change:
    return (key,), ts, (key, f"{key}@{ts}")


def delete(key: int, ts: int) -> Change:
    return (key,), ts, None


async def feed(sink: MirrorSink, *changes: Change, resolved: int | None = None) -> None:
    if changes:
        sink.emit(rows_batch(ORDERS, changes))
    await sink.flush(None if resolved is None else progress_of(ORDERS, resolved))


def test_progress_comes_back_whole(tmp_path: Path) -> None:
    span = ORDERS.primary_span
    middle = span.start + b"\x80"
    uneven = SinkProgress(
        frontier=((Span(span.start, middle), Timestamp(70)), (Span(middle, span.end), ZERO)),
        resolved=ZERO,
        scan_complete=False,
    )

    async def scenario(mirrors: Mirrors) -> None:
        sink = mirrors.sink()
        assert await begin(sink, [ORDERS]) is None
        await sink.close()
        for epoch, saved in ((2, uneven), (3, progress_of(ORDERS, 90))):
            async with mirrors.open(ORDERS, epoch=epoch) as sink:
                await sink.flush(progress_of(ORDERS, 60))
                await sink.flush(saved)
            again = mirrors.sink(epoch=epoch + 10)
            if epoch == 2:
                again = mirrors.sink(epoch=epoch)
            assert await begin(again, [ORDERS]) == saved
            await again.close()

    run(tmp_path, scenario)


def test_replay_changes_nothing(tmp_path: Path) -> None:
    history = [upsert(1, 10), upsert(2, 11), upsert(1, 12), delete(2, 13), upsert(3, 14)]

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await feed(sink, *history, resolved=9)
        async with mirrors.open(ORDERS, epoch=2) as sink:
            for length in range(len(history) + 1):
                await feed(sink, *history[:length])
                expected = [(1, "1@12"), (3, "3@14")]
                assert await mirrors.read("FROM orders ORDER BY k") == expected

    run(tmp_path, scenario)


def test_deleted_row_stays_deleted_after_restart(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await feed(sink, *(upsert(key, 10) for key in range(50)), resolved=9)
            await feed(sink, *(delete(key, 20) for key in range(50)), resolved=15)
        async with mirrors.open(ORDERS, epoch=2) as sink:
            for key in range(50):
                await feed(sink, upsert(key, 16 + key % 4))
            await feed(sink, *(upsert(key, 17) for key in range(50)))
            assert await mirrors.read("FROM orders") == []
            await feed(sink, upsert(7, 21))
            assert await mirrors.read("FROM orders") == [(7, "7@21")]

    run(tmp_path, scenario)


def test_frontier_prunes_tombstones(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await feed(sink, upsert(1, 10), upsert(2, 10), resolved=10)
            await feed(sink, delete(1, 20), delete(2, 30), resolved=10)
            assert await mirrors.read(TOMBSTONES) == [(2,)]
            await feed(sink, resolved=20)
            await feed(sink, resolved=25)
            assert await mirrors.read(TOMBSTONES) == [(1,)]
            await feed(sink, delete(1, 27), resolved=40)
            await feed(sink, resolved=41)
            assert await mirrors.read(TOMBSTONES) == [(0,)]

    run(tmp_path, scenario)


def test_feed_without_progress_starts_anew(tmp_path: Path) -> None:
    """Rows flushed before the first progress may be gone from the source by now."""

    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await feed(sink, upsert(1, 10), delete(2, 50))
        async with mirrors.open(ORDERS, epoch=2) as sink:
            assert await mirrors.read("FROM orders") == []
            await feed(sink, upsert(2, 20))
            assert await mirrors.read("FROM orders") == [(2, "2@20")]

    run(tmp_path, scenario)


def test_failed_flush_leaves_the_one_before(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            await feed(sink, upsert(1, 10), delete(2, 11), resolved=9)
            file = await mirrors.files.acquire(mirrors.root / "mirror.duckdb")
            cursor = file.cursor()
            cursor.execute("ALTER TABLE _tailrace.progress RENAME TO hidden")
            with pytest.raises(SinkError, match=r"mirror\.duckdb"):
                await feed(sink, upsert(1, 20), upsert(3, 20), resolved=20)
            with pytest.raises(SinkError):
                await feed(sink, resolved=30)
            cursor.execute("ALTER TABLE _tailrace.hidden RENAME TO progress")
            file.close_cursor(cursor)
            await file.release()
        again = mirrors.sink(epoch=2)
        assert await begin(again, [ORDERS]) == progress_of(ORDERS, 9)
        await feed(again, upsert(2, 10), upsert(1, 20), resolved=20)
        assert await mirrors.read("FROM orders") == [(1, "1@20")]
        await again.close()

    run(tmp_path, scenario)


def test_broken_instance_is_opened_anew(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        items = table(id=105, name="items")
        async with mirrors.open(ORDERS) as sink, mirrors.open(items, job_id=8) as other:
            await feed(sink, upsert(1, 10), resolved=10)
            file = await mirrors.files.acquire(mirrors.root / "mirror.duckdb")
            file.note_error(duckdb.FatalException("the disk is gone"))
            await file.release()
            async with mirrors.open(ORDERS, epoch=2) as again:
                assert await mirrors.read("FROM orders") == [(1, "1@10")]
                with pytest.raises(SinkError):
                    await other.flush(progress_of(items, 10))
                await feed(again, upsert(1, 12))

    run(tmp_path, scenario)


def test_cancelled_flush_ends_before_its_caller_goes_on(tmp_path: Path) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        async with mirrors.open(ORDERS) as sink:
            flush = asyncio.ensure_future(feed(sink, upsert(1, 10), resolved=10))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            flush.cancel()
            with pytest.raises(asyncio.CancelledError):
                await flush
        async with mirrors.open(ORDERS, epoch=2):
            rows = await mirrors.read("FROM orders")
            resolved = await mirrors.read("SELECT resolved FROM _tailrace.progress")
            assert (rows, resolved) in (([], [(None,)]), ([(1, "1@10")], [(10,)]))

    run(tmp_path, scenario)


class FlushKind(Enum):
    ROWS = "rows"
    COLUMNS = "columns"
    ROWS_ALONE = "rows without progress"
    THEN_RESTART = "rows, then a restart"


class Replaying:
    """A feed that restarts at any flush and replays what is above the progress it finds."""

    def __init__(self, mirrors: Mirrors) -> None:
        self._mirrors = mirrors
        self._history: list[Change] = []
        self._sink = mirrors.sink()
        self._epoch = 1
        self._resolved = self._emitted = self._highest = 0

    async def start(self) -> None:
        assert await begin(self._sink, [ORDERS]) is None

    def commit(self, key: int, *, deletes: bool) -> None:
        ts = len(self._history) + 1
        self._history.append(delete(key, ts) if deletes else upsert(key, ts))

    async def flush(self, *, upto: int, behind: int | None, columnar: bool) -> None:
        """Emits `upto` more changes; saves progress `behind` them, or none."""
        part = self._history[self._emitted : self._emitted + upto]
        if part:
            self._sink.emit(rows_batch(ORDERS, part, columnar=columnar))
        self._emitted += len(part)
        self._highest = max(self._highest, self._emitted)
        progress = None
        if behind is not None:
            self._resolved = max(self._resolved, self._emitted - behind)
            progress = progress_of(ORDERS, self._resolved)
        await self._sink.flush(progress)

    @property
    def replays(self) -> bool:
        return self._emitted < self._highest

    async def restart(self) -> None:
        await self._sink.close()
        self._epoch += 1
        self._sink = self._mirrors.sink(epoch=self._epoch)
        saved = await begin(self._sink, [ORDERS])
        if saved is None:
            self._highest = 0
        self._resolved = self._emitted = saved.resolved if saved is not None else 0

    async def check(self) -> None:
        """The mirror holds all that was ever flushed, however much of it was replayed since."""
        model = {key[0]: row for key, _, row in self._history[: self._highest]}
        expected = sorted(row for row in model.values() if row is not None)
        assert await self._mirrors.read("FROM orders ORDER BY k") == expected

    async def close(self) -> None:
        await self._sink.close()


HISTORIES = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=20)
FLUSHES = st.lists(st.tuples(st.sampled_from(FlushKind), st.integers(0, 6)), max_size=12)


@settings(max_examples=60)
@given(HISTORIES, FLUSHES, st.integers(0, 8))
def test_any_history_of_replays_equals_the_model(
    history: list[tuple[int, bool]], flushes: list[tuple[FlushKind, int]], behind: int
) -> None:
    async def scenario(mirrors: Mirrors) -> None:
        feed = Replaying(mirrors)
        await feed.start()
        for key, deletes in history:
            feed.commit(key, deletes=deletes)
        for kind, upto in flushes:
            await feed.flush(
                upto=upto,
                behind=behind if kind is not FlushKind.ROWS_ALONE else None,
                columnar=kind is FlushKind.COLUMNS,
            )
            if kind is FlushKind.THEN_RESTART:
                await feed.restart()
        await feed.flush(upto=len(history), behind=behind, columnar=False)
        await feed.check()
        await feed.restart()
        while feed.replays:
            await feed.flush(upto=1, behind=behind, columnar=False)
            await feed.check()
        await feed.close()

    with TemporaryDirectory() as folder:
        run(Path(folder), scenario)
