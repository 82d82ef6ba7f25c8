"""A store, a schema feed and a sink small enough to be obviously right, for tests of a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from random import Random
from typing import cast

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.changefeed.pipeline.gate import SchemaGate
from tailrace.changefeed.pipeline.pipeline import TargetStart
from tailrace.changefeed.sinks import SinkError, SinkProgress, SinkStand
from tailrace.changefeed.targets import TableTarget
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.events import Checkpoint, Event, SteadyState, ValueBatch
from tailrace.kvlayer.frontier import Frontier
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.schemafeed.feed import SchemaAnswer, TableDropped
from tailrace.schemafeed.table_events import TableEvent, table_event
from tests.harness.simulation import Simulation

Row = tuple[int, str | None]

NOWHERE = StorePosition(incarnation="", index=0)


class ModelFeed:
    """A range feed over the model: what was written above the start, then what is written."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = tuple(spans)
        self.waiting: list[Event] = []
        self.closed = False
        self.spacing = 0.0
        self.taken = 0
        self.frontier = Frontier(spans)
        self._arrived = asyncio.Event()

    def put(self, *events: Event) -> None:
        self.waiting += events
        self._arrived.set()

    async def next(self) -> list[Event]:
        while not self.waiting:
            self._arrived.clear()
            await self._arrived.wait()
        events, self.waiting = self.waiting, []
        self.taken += len(events)
        for event in events:
            if isinstance(event, Checkpoint):
                for span in event.spans:
                    self.frontier.forward(span, event.resolved)
        return events

    def space_checkpoints(self, seconds: float) -> None:
        """They come when the test says so, whatever the consumer would have."""
        self.spacing = seconds

    def close(self) -> None:
        self.closed = True


class ModelStore:
    """Versions in a list. Writes and checkpoints happen when a test says so."""

    def __init__(self, sim: Simulation, *tables: TableDescriptor) -> None:
        self.clock = Clock(sim.wall, MemoryBoundStore())
        self.settings = Settings()
        self.tables = {table.id: table for table in tables}
        self.history: list[tuple[bytes, bytes | None, Timestamp]] = []
        self.feeds: list[ModelFeed] = []
        self.resolved = Timestamp(0)
        self.slice_rows = 100
        self.scans: list[Span] = []

    def write(self, *rows: Row, delete: Iterable[int] = (), table_id: int = 104) -> Timestamp:
        """One transaction."""
        codec = codec_for(self.tables[table_id])
        puts = [codec.encode_row(row) for row in rows]
        keys = [key for key, _ in puts] + [codec.encode_key((k,)) for k in delete]
        values: list[bytes | None] = [body for _, body in puts]
        values += [None] * (len(keys) - len(puts))
        ts = self.clock.now()
        self.history += [(key, value, ts) for key, value in zip(keys, values, strict=True)]
        batch = ValueBatch(
            keys=keys,
            values=values,
            timestamps=[ts] * len(keys),
            commit_called_ns=self.clock.wall.monotonic_ns(),
            durable_ns=self.clock.wall.monotonic_ns(),
        )
        self._send(batch)
        return ts

    def resolve(self) -> Timestamp:
        """Closes the present: a checkpoint at it goes to every feed."""
        self.resolved = self.clock.now()
        for feed in self.feeds:
            feed.put(Checkpoint(feed.spans, self.resolved))
        return self.resolved

    def _send(self, event: Event) -> None:
        for feed in self.feeds:
            feed.put(event)

    def span_feed_from(
        self, starts: Iterable[tuple[Span, Timestamp]], *, with_previous: bool = False
    ) -> ModelFeed:
        assert not with_previous, "the model keeps no previous values"
        stands = list(starts)
        spans = [span for span, _ in stands]
        feed = ModelFeed(spans)
        for key, value, ts in self.history:
            if any(span.contains(key) and ts > start_after for span, start_after in stands):
                feed.put(ValueBatch(keys=[key], values=[value], timestamps=[ts]))
        if self.resolved > min(start_after for _, start_after in stands):
            feed.put(Checkpoint(feed.spans, self.resolved))
        feed.put(*[SteadyState(span) for span in spans])
        self.feeds = [each for each in self.feeds if not each.closed] + [feed]
        return feed

    def snapshot(self, at: Timestamp) -> ModelSnapshot:
        return ModelSnapshot(self, at)

    def rows_at(self, at: Timestamp, table_id: int = 104) -> dict[int, str | None]:
        """The oracle: SELECT * AS OF `at`."""
        codec = codec_for(self.tables[table_id])
        span = self.tables[table_id].primary_span
        newest = {key: value for key, value, ts in self.history if ts <= at and span.contains(key)}
        rows = [codec.decode_row(key, value) for key, value in newest.items() if value is not None]
        return {row[0]: row[1] for row in rows}  # type: ignore[misc]


class ModelSnapshot:
    def __init__(self, store: ModelStore, at: Timestamp) -> None:
        self._store = store
        self._at = at

    async def scan_slices(self, span: Span) -> AsyncGenerator[list[tuple[bytes, bytes]], None]:
        self._store.scans.append(span)
        newest = {k: v for k, v, ts in self._store.history if ts <= self._at and span.contains(k)}
        rows = sorted((key, value) for key, value in newest.items() if value is not None)
        size = self._store.slice_rows
        for first in range(0, len(rows), size):
            await asyncio.sleep(0)
            yield rows[first : first + size]

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        found = [(v, ts) for k, v, ts in self._store.history if k == key and ts <= self._at]
        return found[-1] if found and found[-1][0] is not None else None  # type: ignore[return-value]


class ModelSchema:
    """A schema feed proven by hand: up to `proven`, or for ever while `fast`."""

    def __init__(self, *tables: TableDescriptor, fast: bool = True) -> None:
        self.fast = fast
        self.slow: set[int] = set()
        self.proven = Timestamp(0)
        self.dropped: dict[int, TableDropped] = {}
        self._current = {table.id: table for table in tables}
        self._events: dict[int, list[TableEvent]] = {table.id: [] for table in tables}
        self._moved = asyncio.Event()

    def prove(self, upto: Timestamp) -> None:
        """What a poll does."""
        self.proven = upto
        self._moved.set()

    def publish(self, after: TableDescriptor) -> None:
        events = self._events[after.id]
        before = events[-1].after if events else self._current[after.id]
        events.append(table_event(before, after))

    def drop(self, table: TableDescriptor, at: Timestamp) -> None:
        self.dropped[table.id] = TableDropped(table.name, table.id, at)

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        self.proven = max(self.proven, at)

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        waits = not self.fast or table_id in self.slow
        if waits and at_or_before > self.proven:
            return None
        dropped = self.dropped.get(table_id)
        if dropped is not None and at_or_before >= dropped.timestamp:
            raise dropped
        events = [e for e in self._events[table_id] if e.timestamp <= at_or_before]
        canonical = events[-1].after if events else self._current[table_id]
        return SchemaAnswer(tuple(events), canonical, canonical.modification_time)

    async def peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        while (answer := self.try_peek(table_id, at_or_before)) is None:
            self._moved.clear()
            await self._moved.wait()
        return answer

    def try_pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        answer = self.try_peek(table_id, at_or_before)
        if answer is not None:
            self._current[table_id] = answer.canonical
            self._events[table_id] = self._events[table_id][len(answer.events) :]
        return answer

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        await self.peek(table_id, at_or_before)
        answer = self.try_pop(table_id, at_or_before)
        assert answer is not None
        return answer

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        return self._current[table_id]

    def frontier(self, table_id: int) -> Timestamp:
        return self.proven

    async def close(self) -> None:
        pass


def target_of(table: TableDescriptor) -> TableTarget:
    """The table as a target of a pipeline: which is told of its descriptors by its schema feed."""
    return TableTarget(table.id, cast(DescriptorStore, None))


def starts_of(
    tables: Iterable[TableDescriptor], gate: SchemaGate, scan_at: Timestamp
) -> list[TargetStart]:
    """Tables that all begin as they are."""
    return [
        TargetStart(target=target_of(table), table=table, gate=gate, scan_at=scan_at)
        for table in tables
    ]


class Target:
    """What a transactional sink writes to; it survives the sink. Newer versions win."""

    def __init__(self) -> None:
        self.versions: dict[tuple[int, bytes], tuple[Timestamp, tuple[object, ...] | None]] = {}
        self.progress: SinkProgress | None = None
        self.applied: list[tuple[bytes, Timestamp]] = []
        self.flush_rows: list[int] = []

    def rows(self, table_id: int = 104) -> dict[int, str | None]:
        found = [row for (t, _), (_, row) in self.versions.items() if t == table_id and row]
        return {row[0]: row[1] for row in found}  # type: ignore[misc]

    def apply(self, batch: ChangeBatch) -> None:
        pairs = zip(batch.keys, batch.timestamps, batch.iterate_rows(), strict=True)
        for key, ts, row in pairs:
            known = self.versions.get((batch.descriptor.id, key))
            if known is None or known[0] < ts:
                self.versions[(batch.descriptor.id, key)] = (ts, row)
                self.applied.append((key, ts))


class TargetSink:
    """A transactional sink: rows and progress reach the target together or not at all."""

    def __init__(
        self,
        sim: Simulation,
        target: Target,
        *,
        position: StorePosition = NOWHERE,
        seconds: float = 0.0,
        fail: float = 0.0,
    ) -> None:
        """`position` is what the target is to say of the store: it keeps none of its own."""
        self._sim = sim
        self._position = position
        self._random = Random(f"{sim.seed}:sink")
        self._target = target
        self.seconds = seconds
        self.fail = fail
        self.emitted: list[ChangeBatch] = []
        self.resolved: list[Timestamp] = []
        self.changes: list[tuple[TableDescriptor, int]] = []
        """Schema changes, and how many batches came before each."""
        self._unflushed: list[ChangeBatch] = []

    async def stand(self) -> SinkStand | None:
        progress = self._target.progress
        return None if progress is None else SinkStand(progress=progress, position=self._position)

    async def open(self, tables: Sequence[TableDescriptor]) -> None: ...

    def emit(self, batch: ChangeBatch) -> None:
        self._unflushed.append(batch)
        self.emitted.append(batch)

    def change_schema(self, event: TableEvent) -> None:
        self.changes.append((event.after, len(self.emitted)))

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._unflushed = self._unflushed, []
        await asyncio.sleep(self.seconds)
        if self._random.random() < self.fail / 2:
            raise SinkError("the target is away")
        for batch in batches:
            self._target.apply(batch)
        if progress is not None:
            self._target.progress = progress
        self._target.flush_rows.append(sum(map(len, batches)))
        if self._random.random() < self.fail / 2:
            raise SinkError("the target committed, and its answer was lost")

    async def emit_resolved(self, resolved: Timestamp) -> None:
        self.resolved.append(resolved)

    async def close(self) -> None:
        pass
