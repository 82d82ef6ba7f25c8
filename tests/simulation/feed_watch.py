"""What a feed does, observed where it does it, and judged when the oracle knows everything.

watch = FeedWatch(rows, versions)
sink = WatchedSink(inner, watch, sim)        # around the sink
schema = WatchedLeasingFeed(leases, ...)     # around the schema feed
...
watch.check(scan_at)                         # at a quiet point, or after recovery
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from tailrace.catalog.descriptors.descriptor import TableDescriptor, logically_equal
from tailrace.catalog.leases import LeaseManager
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import Datum
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.sinks.protocol import Sink, SinkError, SinkProgress, SinkStand
from tailrace.kvlayer.clock import Timestamp
from tailrace.schemafeed.feed import SchemaAnswer
from tailrace.schemafeed.leasing import LeasingSchemaFeed
from tailrace.schemafeed.polling import PollingSchemaFeed
from tailrace.schemafeed.table_events import TableEvent
from tests.harness.simulation import Simulation
from tests.simulation.row_model import PrefixMaximum, RowModel, Version
from tests.simulation.version_model import VersionModel


@dataclass(frozen=True, slots=True)
class Emitted:
    """A row as it was handed to the sink."""

    key: bytes
    ts: Timestamp
    row: tuple[Datum, ...] | None
    descriptor: TableDescriptor
    kind: ChangeKind


@dataclass(frozen=True, slots=True)
class FastAnswer:
    """A proof by lease alone, for `(frontier, upto]`."""

    frontier: Timestamp
    upto: Timestamp
    answer: SchemaAnswer


class FeedWatch:
    """One feed over all its attempts and lives."""

    def __init__(self, rows: RowModel, versions: VersionModel) -> None:
        self.frozen = False
        self.fast_count = 0
        self.emitted_count = 0
        self._rows = rows
        self._versions = versions
        self._emitted: list[Emitted] = []
        self._fast: list[FastAnswer] = []
        self._unflushed: list[Version] = []
        self._flush_number = 0
        self._flushed_in: dict[Version, int] = {}
        self._claims = PrefixMaximum()

    def note_attempt(self) -> None:
        """A new sink: what an earlier one had not flushed is gone."""
        self._unflushed = []

    def note_emitted(self, batch: ChangeBatch) -> None:
        if self.frozen:
            return
        rows = zip(batch.keys, batch.timestamps, batch.decoded().iterate_rows(), strict=True)
        for key, ts, row in rows:
            self._emitted.append(Emitted(key, ts, row, batch.descriptor, batch.kind))
            self._unflushed.append((key, ts))

    def note_flush_begun(self) -> int:
        """All that was emitted is in this flush. A crash may or may not find it in the sink."""
        if self.frozen:
            return 0
        self._flush_number += 1
        for version in self._unflushed:
            self._flushed_in.setdefault(version, self._flush_number)
        self._unflushed = []
        return self._flush_number

    def note_flushed(self, number: int, progress: SinkProgress | None) -> None:
        if progress is not None and not self.frozen:
            self._claims.note(number, progress.resolved)

    def note_fast(self, answer: FastAnswer) -> None:
        if not self.frozen:
            self._fast.append(answer)

    def check(self, scan_at: Timestamp) -> None:
        """Judges all that was noted since the last check. The models know everything by now."""
        for fast in self._fast:
            self._check_fast(fast)
        for emitted in self._emitted:
            self._check_emitted(emitted)
        self._check_delivery(scan_at)
        self.fast_count += len(self._fast)
        self.emitted_count += len(self._emitted)
        self._emitted, self._fast = [], []

    def _check_emitted(self, emitted: Emitted) -> None:
        """The row is what was committed, under a version that is canonical, or equal to it."""
        canonical = self._versions.canonical_at(emitted.ts)
        used = emitted.descriptor
        assert logically_equal(used, canonical), f"{emitted} under v{used.version}, not {canonical}"
        assert abs(used.version - canonical.version) <= 1, (emitted, canonical)
        if emitted.kind is not ChangeKind.LIVE:
            found = self._rows.rows_at(emitted.ts).get(emitted.key)
            assert found is not None, f"{emitted} was not there"
            body: bytes | None = found[1]
        else:
            writes = self._rows.commits.get(emitted.ts, {})
            assert emitted.key in writes, f"{emitted} was never committed"
            body = writes[emitted.key]
        expected = None if body is None else codec_for(canonical).decode_row(emitted.key, body)
        assert emitted.row == expected, (emitted, expected)

    def _check_fast(self, fast: FastAnswer) -> None:
        """One locked version holds over all of `(frontier, upto]`: no unlock and lock in it."""
        version = fast.answer.canonical
        assert version.locked, fast
        # Below the frontier there is nothing between: then it is enough that the row is not older.
        assert version.modification_time <= min(fast.frontier, fast.upto), (
            f"answered before its version: {fast}"
        )
        beyond = self._versions.published_at(version.version + 2)
        assert fast.upto < beyond, f"answered across version {version.version + 2}: {fast}"
        assert not fast.answer.events, fast

    def _check_delivery(self, scan_at: Timestamp) -> None:
        """No flush claimed a timestamp before every version at or below it was in one."""
        for version in self._rows.versions():
            if version[1] <= scan_at:
                continue
            claimed = self._claims.first_at(version[1])
            if claimed is not None:
                flushed = self._flushed_in.get(version)
                assert flushed is not None, f"resolved passed {version}, which never came"
                assert flushed <= claimed, f"resolved passed {version} before it came"


OBSERVED_FLUSHES = 4
"""The first flushes of an attempt replay what an earlier one had applied: somebody looks."""

OBSERVED_CHANCE = 0.05


class WatchedSink:
    """A sink that is slow, and fails before its flush or after, as the seed says."""

    def __init__(
        self,
        inner: Sink,
        watch: FeedWatch,
        sim: Simulation,
        *,
        observe: Callable[[], Awaitable[None]],
    ) -> None:
        self._observe = observe
        self._flush_count = 0
        self._inner = inner
        self._watch = watch
        self._random = sim.random
        self.slowest = 0.0
        self.fail_chance = 0.0

    async def stand(self) -> SinkStand | None:
        return await self._inner.stand()

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        self._watch.note_attempt()
        await self._inner.open(tables)

    def emit(self, batch: ChangeBatch) -> None:
        self._watch.note_emitted(batch)
        self._inner.emit(batch)

    def change_schema(self, event: TableEvent) -> None:
        self._inner.change_schema(event)

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._random.random() < self.fail_chance:
            raise SinkError("the sink was away")
        number = self._watch.note_flush_begun()
        await self._dawdle()
        await self._inner.flush(progress)
        self._watch.note_flushed(number, progress)
        self._flush_count += 1
        if self._flush_count <= OBSERVED_FLUSHES or self._random.random() < OBSERVED_CHANCE:
            await self._observe()
        await self._dawdle()
        if self._random.random() < self.fail_chance:
            raise SinkError("the sink's answer was lost")

    async def emit_resolved(self, resolved: Timestamp) -> None:
        await self._inner.emit_resolved(resolved)

    async def close(self) -> None:
        await self._inner.close()

    async def _dawdle(self) -> None:
        if self.slowest:
            await asyncio.sleep(self._random.random() * self.slowest)


class WatchedPolling(PollingSchemaFeed):
    """Notes whether it was asked."""

    asked = False

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        self.asked = True
        return super().try_peek(table_id, at_or_before)


class WatchedLeasingFeed(LeasingSchemaFeed):
    """Notes what it answers without its delegate."""

    def __init__(self, leases: LeaseManager, polling: WatchedPolling, watch: FeedWatch) -> None:
        super().__init__(leases, polling)
        self._polling = polling
        self._watch = watch

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        frontier = self.frontier(table_id)
        self._polling.asked = False
        answer = super().try_peek(table_id, at_or_before)
        if answer is not None and not self._polling.asked:
            self._watch.note_fast(FastAnswer(frontier, at_or_before, answer))
        return answer
