"""The pipeline: one attempt of a changefeed, from its range feed to its sink.

    span feed -> memory budget -> schema gate -> decode -> sink -> frontier -> checkpoint

Four tasks share it. The *reader* scans, then takes events off the span feed and pushes them into
their tables' lanes. A lane whose schema is proven lets them go on in that same step; a *drainer*,
one a lane and only while it is needed, waits for proofs and cuts a backlog into slices. The
*writer* flushes the sink, the *checkpointer* saves progress behind it.

Whatever fails in one of them ends the attempt; the job starts another from the saved progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.access import ClockReading
from ...kvlayer.clock import Timestamp
from ...kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ...kvlayer.frontier import Frontier
from ...kvlayer.keys import table_id_of, table_span
from ...kvlayer.settings import Settings
from ...kvlayer.span import Span
from ...schemafeed.feed import TableDropped
from ...schemafeed.table_events import TableEvent
from ..contract.changes import ChangeKind
from ..contract.options import ChangefeedOptions, ScanChoice
from ..sinks.protocol import Sink, SinkProgress
from .backfill import BackfillScan
from .boundary import Boundary, SchemaChangeEnd, plan_boundary
from .budget import MEMORY_LIMIT, MemoryBudget
from .checkpointer import Checkpointer
from .crossing import OpenBackfill
from .gate import SchemaGate
from .idle_pace import IdlePace
from .initial_scan import InitialScan, RowEmitter, ScanReader
from .lane import Emission, LaneState, TableLane
from .live import FeedState, LiveFeed
from .progress import FeedProgress
from .writer import SinkWriter


class EventFeed(Protocol):
    """Events of some spans, each from its own start (exclusive): `Store.span_feed_from`'s."""

    @property
    def frontier(self) -> Frontier:
        """How far each span was resolved by the events handed out."""
        ...

    async def next(self) -> list[Event]: ...

    def space_checkpoints(self, seconds: float) -> None: ...

    def close(self) -> None: ...


class FeedSource(Protocol):
    """What the pipeline reads from: a store."""

    @property
    def clock(self) -> ClockReading: ...

    @property
    def settings(self) -> Settings: ...

    def span_feed_from(self, starts: Iterable[tuple[Span, Timestamp]]) -> EventFeed: ...

    def snapshot(self, at: Timestamp) -> ScanReader: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEnd:
    """The far end of a pipeline: an open sink, what its kind can do, and where progress goes."""

    sink: Sink
    transactional: bool
    columnar: bool
    follows_schema: bool = False
    save: Callable[[SinkProgress], Awaitable[None]]


class RangeDeletion(Exception):
    """A whole span of a table was deleted at once, which a feed of rows cannot follow."""

    def __init__(self, span: Span) -> None:
        super().__init__(f"the rows of {span} were deleted as a range")


class Pipeline:
    """Runs one feed's tables into its sink, from `start` on.

    `scan_at` is the feed's start: where the initial scan reads, and above which changes count.
    """

    def __init__(
        self,
        source: FeedSource,
        tables: Sequence[TableDescriptor],
        *,
        gate: SchemaGate,
        end: SinkEnd,
        start: SinkProgress,
        scan_at: Timestamp,
        options: ChangefeedOptions,
        live: LiveFeed,
        pace: IdlePace,
    ) -> None:
        self._source = source
        self._tables = tables
        self._gate = gate
        self._scan_at = scan_at
        self._options = options
        self._live = live
        self._columnar = end.columnar
        self.progress = FeedProgress(start)
        self.budget = MemoryBudget(lambda: source.settings.get(MEMORY_LIMIT))
        self._checkpointer = Checkpointer(
            end.sink,
            start,
            options=options,
            transactional=end.transactional,
            save=end.save,
            pace=pace,
        )
        self._writer = SinkWriter(
            end.sink,
            self.progress,
            budget=self.budget,
            live=live,
            options=options,
            pace=pace,
            on_flushed=self._checkpointer.note_flushed,
        )
        plan = partial(plan_boundary, options=options, follows_schema=end.follows_schema)
        self._lanes = {
            table.id: TableLane(
                table,
                start=_part(start.frontier, table_span(table.id)),
                gate=gate,
                budget=self.budget,
                wall=source.clock.wall,
                end=self,
                plan=plan,
                columnar=end.columnar,
            )
            for table in tables
        }
        self._drainers: dict[int, asyncio.Task[None]] = {}
        self._backfills: set[asyncio.Task[None]] = set()
        self._tasks: asyncio.TaskGroup
        self._reader: asyncio.Task[None]
        self._feed: EventFeed | None = None
        self._ended: asyncio.Future[TableDropped | SchemaChangeEnd | None]
        self._ended = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Runs until something fails, or to the end of the scan where that is all there is.

        Raises the first failure itself, whatever else failed in its wake; TableDropped when all
        that came before the drop is in the sink.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._run(tasks)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            if self._feed is not None:
                self._feed.close()

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        writer = tasks.create_task(self._writer.run())
        checkpointer = tasks.create_task(self._checkpointer.run())
        self._reader = tasks.create_task(self._read())
        ended_by = await self._ended
        self._reader.cancel()
        for helper in (*self._drainers.values(), *self._backfills):
            helper.cancel()
        self._writer.end()
        await writer
        self._checkpointer.end()
        await checkpointer
        if ended_by is not None:
            raise ended_by

    async def _read(self) -> None:
        """The initial scan where it is not complete, then the span feed for ever."""
        if not self.progress.scan_complete:
            self._live.state = FeedState.INITIAL_SCAN
            await self._scan().run(self._tables)
        if self._options.initial_scan is ScanChoice.ONLY:
            self._end(None)
            return
        self._feed = self._source.span_feed_from(self.progress.capture().frontier)
        await self._follow(self._feed)

    async def _follow(self, feed: EventFeed) -> None:
        """Takes what the span feed brings, for ever.

        It never stops for what waits at boundaries, since that may wait for what the feed has still
        to bring: beyond the limit, lanes forget it instead.
        """
        self._live.state = FeedState.CATCH_UP
        self._writer.on_spacing = feed.space_checkpoints
        while True:
            sliced = self._take(await feed.next())
            while self.budget.overheld:
                max(self._lanes.values(), key=lambda lane: lane.held_bytes).forget()
            await self.budget.wait_for_room()
            if sliced:
                await asyncio.sleep(0)

    def _scan(self) -> InitialScan:
        reader = self._source.snapshot(self._scan_at)
        return InitialScan(
            reader,
            emitter=self._emitter(reader, self._scan_at, ChangeKind.INITIAL_SCAN),
            at=self._scan_at,
            gate=self._gate,
            progress=self.progress,
            budget=self.budget,
        )

    def _emitter(self, reader: ScanReader, at: Timestamp, kind: ChangeKind) -> RowEmitter:
        return RowEmitter(
            reader,
            at=at,
            kind=kind,
            wall=self._source.clock.wall,
            budget=self.budget,
            live=self._live,
            emit=self._writer.emit,
            columnar=self._columnar,
            with_versions=self._options.mvcc_timestamp,
        )

    # What lanes ask for

    def emit(self, emission: Emission) -> None:
        self._writer.emit(emission)

    def change_schema(self, event: TableEvent) -> None:
        self._writer.change_schema(event)

    def forward(self, span: Span, resolved: Timestamp) -> None:
        self.progress.forward(span, resolved)
        self._gate.consume(self.progress.resolved)

    def open_backfill(self, boundary: Boundary) -> OpenBackfill:
        known = self.progress.open_backfill(boundary.table_id, boundary.at, boundary.kind)
        return OpenBackfill(boundary, known)

    def start_backfill(self, backfill: OpenBackfill) -> None:
        task = self._tasks.create_task(self._backfill(backfill))
        self._backfills.add(task)
        task.add_done_callback(self._backfills.discard)

    async def _backfill(self, backfill: OpenBackfill) -> None:
        reader = self._source.snapshot(backfill.at)
        emitter = self._emitter(reader, backfill.at, ChangeKind.BACKFILL)
        self._live.backfills += 1
        try:
            scan = BackfillScan(
                reader,
                emitter,
                progress=self.progress,
                budget=self.budget,
                wait_until_behind=self._writer.wait_until_behind,
            )
            await scan.run(backfill)
        finally:
            self._live.backfills -= 1
        lane = self._lanes[backfill.table.id]
        lane.backfilled()
        self._wake(lane)

    def read_again(self, table_id: int, starts: Sequence[tuple[Span, Timestamp]]) -> None:
        """Another span feed takes the place of the one that is read, in this step: of the other
        tables it goes on where that one is, and what that one would bring next, it brings."""
        assert self._feed is not None, table_id
        stands = list(self._feed.frontier.entries())
        others = [lane.span for lane in self._lanes.values() if lane.table_id != table_id]
        again = [*starts, *[stand for span in others for stand in _part(stands, span)]]
        self._reader.cancel()
        self._feed.close()
        self._feed = self._source.span_feed_from(again)
        self._reader = self._tasks.create_task(self._follow(self._feed))

    def _take(self, events: list[Event]) -> bool:
        """Pushes events into their lanes and lets go on what may; says whether a slice was done.

        All events are pushed before a lane advances: commits that became durable together are
        decoded together.
        """
        lanes = self._lanes
        for event in events:
            match event:
                case ValueBatch():
                    lanes[table_id_of(event.keys[0])].push(event)
                case Checkpoint():
                    self._push_checkpoint(event)
                case SteadyState():
                    self._live.state = FeedState.STEADY
                case DeleteRange():
                    raise RangeDeletion(event.span)
        sliced = False
        for lane in lanes.values():
            sliced = self._wake(lane) or sliced
            if not lane.resting:
                self._writer.stir()
        return sliced

    def _wake(self, lane: TableLane) -> bool:
        """Lets go on what may, unless a drainer does; says whether a slice was done."""
        if lane.table_id in self._drainers:
            return False
        state = self._advance(lane)
        if state is not LaneState.EMPTY:
            drainer = self._tasks.create_task(self._drain(lane, state))
            self._drainers[lane.table_id] = drainer
        return state is LaneState.SLICED

    def _push_checkpoint(self, checkpoint: Checkpoint) -> None:
        now = self._source.clock.wall.monotonic_ns()
        for lane in self._lanes.values():
            for span in checkpoint.spans:
                shared = lane.span.intersect(span)
                if shared is not None:
                    lane.push_checkpoint(shared, checkpoint.resolved, now_ns=now)

    async def _drain(self, lane: TableLane, state: LaneState) -> None:
        """Brings a lane that has fallen behind to its end, slice by slice, proof by proof."""
        while state is not LaneState.EMPTY:
            if state is LaneState.SLICED:
                await asyncio.sleep(0)
            elif not await self._prove(lane):
                return
            state = self._advance(lane)
        del self._drainers[lane.table_id]

    def _advance(self, lane: TableLane) -> LaneState:
        try:
            return lane.advance()
        except (TableDropped, SchemaChangeEnd) as end:
            self._end(end)
            return LaneState.BLOCKED

    async def _prove(self, lane: TableLane) -> bool:
        """Waits for the proof that the lane waits for; False when the feed has ended."""
        if self._ended.done():
            return False
        try:
            await self._gate.prove(lane.table_id, lane.blocked_on)
        except TableDropped:
            # The lane meets it too, having moved the frontier up to the drop.
            pass
        return True

    def _end(self, why: TableDropped | SchemaChangeEnd | None) -> None:
        """Nothing more is to be read: what was emitted is flushed, and the attempt ends."""
        if not self._ended.done():
            self._ended.set_result(why)


def _part(
    entries: Iterable[tuple[Span, Timestamp]], span: Span
) -> Sequence[tuple[Span, Timestamp]]:
    """Those of a frontier's entries that lie in `span`."""
    shared = [(span.intersect(part), at) for part, at in entries]
    return [(part, at) for part, at in shared if part is not None]
