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
from typing import Protocol

from ..catalog.descriptor import TableDescriptor
from ..kvlayer.access import ClockReading
from ..kvlayer.clock import Timestamp
from ..kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ..kvlayer.keys import table_id_of
from ..kvlayer.settings import Settings
from ..kvlayer.span import Span
from ..schemafeed.feed import TableDropped
from .budget import MEMORY_LIMIT, MemoryBudget
from .checkpointer import Checkpointer
from .gate import SchemaGate
from .initial_scan import InitialScan, ScanReader
from .lane import LaneState, TableLane
from .live import FeedState, LiveFeed
from .options import ChangefeedOptions, ScanChoice
from .progress import FeedProgress
from .sinks.protocol import Sink, SinkProgress
from .writer import SinkWriter


class EventFeed(Protocol):
    """Events of some spans, each from its own start (exclusive): `Store.span_feed_from`'s."""

    async def next(self) -> list[Event]: ...

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
        )
        self._writer = SinkWriter(
            end.sink,
            self.progress,
            budget=self.budget,
            live=live,
            checkpoint_seconds=options.min_checkpoint_frequency,
            on_flushed=self._checkpointer.note_flushed,
        )
        self._lanes = {
            table.id: TableLane(
                table,
                gate=gate,
                budget=self.budget,
                wall=source.clock.wall,
                emit=self._writer.emit,
                forward=self._forward,
                columnar=end.columnar,
            )
            for table in tables
        }
        self._drainers: dict[int, asyncio.Task[None]] = {}
        self._ended: asyncio.Future[TableDropped | None]
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

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        writer = tasks.create_task(self._writer.run())
        checkpointer = tasks.create_task(self._checkpointer.run())
        reader = tasks.create_task(self._read(tasks))
        ended_by = await self._ended
        reader.cancel()
        for drainer in self._drainers.values():
            drainer.cancel()
        self._writer.end()
        await writer
        self._checkpointer.end()
        await checkpointer
        if ended_by is not None:
            raise ended_by

    async def _read(self, tasks: asyncio.TaskGroup) -> None:
        """The initial scan where it is not complete, then the span feed for ever."""
        if not self.progress.scan_complete:
            self._live.state = FeedState.INITIAL_SCAN
            await self._scan().run(self._tables)
        if self._options.initial_scan is ScanChoice.ONLY:
            self._end(None)
            return
        self._live.state = FeedState.CATCH_UP
        feed = self._source.span_feed_from(self.progress.capture().frontier)
        try:
            while True:
                sliced = self._take(await feed.next(), tasks)
                if self.budget.full:
                    await self.budget.wait_for_room()
                elif sliced:
                    await asyncio.sleep(0)
        finally:
            feed.close()

    def _scan(self) -> InitialScan:
        return InitialScan(
            self._source.snapshot(self._scan_at),
            at=self._scan_at,
            wall=self._source.clock.wall,
            gate=self._gate,
            progress=self.progress,
            budget=self.budget,
            live=self._live,
            emit=self._writer.emit,
            columnar=self._columnar,
            with_versions=self._options.mvcc_timestamp,
        )

    def _take(self, events: list[Event], tasks: asyncio.TaskGroup) -> bool:
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
        for table_id, lane in lanes.items():
            if table_id not in self._drainers:
                state = self._advance(lane)
                if state is not LaneState.EMPTY:
                    sliced = sliced or state is LaneState.SLICED
                    self._drainers[table_id] = tasks.create_task(self._drain(lane, state))
        return sliced

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

    def _forward(self, span: Span, resolved: Timestamp) -> None:
        self.progress.forward(span, resolved)
        self._gate.consume(self.progress.resolved)

    def _advance(self, lane: TableLane) -> LaneState:
        try:
            return lane.advance()
        except TableDropped as dropped:
            self._end(dropped)
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

    def _end(self, why: TableDropped | None) -> None:
        """Nothing more is to be read: what was emitted is flushed, and the attempt ends."""
        if not self._ended.done():
            self._ended.set_result(why)
