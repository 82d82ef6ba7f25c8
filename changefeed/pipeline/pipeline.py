"""The pipeline: one attempt of a changefeed, from its range feed to its sink.

    span feed -> memory budget -> schema gate -> decode -> sink -> frontier -> checkpoint

Four tasks share it. The *reader* takes events off the span feed and pushes them into their targets'
lanes. A lane whose schema is proven lets them go on in that same step; a *drainer*, one a lane and
only while it is needed, waits for proofs and cuts a backlog into slices. The *writer* flushes the
sink, the *checkpointer* saves progress behind it.

A feed that begins scans its targets before there is a reader. A target that is behind the others
(it joined later, or was paused) is scanned and caught up with beside them, by a task and a reader
of its own, and the others' rows go on meanwhile.

Whatever fails in one of them ends the attempt; the job starts another from the saved progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import RowUnreadable
from ...kvlayer.access import ClockReading
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC
from ...kvlayer.events import DeleteRange
from ...kvlayer.process.background import give_way
from ...kvlayer.settings import Settings
from ...kvlayer.span import Span
from ...schemafeed.feed import TableDropped
from ...schemafeed.table_events import TableEvent
from ..contract.changes import ChangeBatch, ChangeKind, Form, StageTimes
from ..contract.options import ChangefeedOptions, ScanChoice
from ..contract.queries import FeedQuery
from ..sinks.protocol import Sink, SinkProgress
from ..targets import FeedTarget, Versions
from .arrivals import Arrivals
from .backfill import BACKFILL_ROWS_BEHIND, BACKFILL_SLICE_ROWS, BackfillScan
from .boundary import Boundary, SchemaChangeEnd, plan_boundary
from .bounded_feed import BoundedFeed
from .budget import FeedMemory, MemoryBudget
from .checkpointer import Checkpointer
from .crossing import OpenBackfill
from .decode import SLICE_ROWS_MAX, decode
from .gate import SchemaGate
from .holdup import Holdup
from .idle_pace import IdlePace
from .initial_scan import InitialScan, RowEmitter
from .lag_split import LagSplit, split_lag
from .lane import Emission, LaneState, TableLane
from .live import FeedState, LiveFeed, no_holdups, no_split, nowhere
from .progress import FeedProgress
from .reader import EventFeed, FeedReader
from .rows_before import RowsBefore
from .scan_reader import ScanReader
from .shared_decoding import SharedDecoding
from .writer import SinkWriter


class FeedSource(Protocol):
    """The source of a pipeline: a store."""

    @property
    def clock(self) -> ClockReading: ...

    @property
    def settings(self) -> Settings: ...

    def span_feed_from(
        self, starts: Iterable[tuple[Span, Timestamp]], *, with_previous: bool = False
    ) -> EventFeed: ...

    def snapshot(self, at: Timestamp) -> ScanReader: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkEnd:
    """The far end of a pipeline: an open sink, what its kind can do, and where progress goes.
    A replica's, whose form is STORED, sends its progress along with the entries."""

    sink: Sink
    transactional: bool
    form: Form
    follows_schema: bool = False
    save: Callable[[SinkProgress], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStart:
    """A target as an attempt begins with it.

    `table` is its descriptor where its part of the frontier stands, or at `scan_at` where it is
    still to be scanned: there the scan reads, and above it changes count.
    """

    target: FeedTarget
    table: TableDescriptor
    gate: SchemaGate
    scan_at: Timestamp


class TargetFailed(Exception):
    """A target of the feed cannot be followed any further. All rows before that are in the sink,
    and the other targets stand where they had come to."""

    def __init__(self, target_id: int, cause: Exception) -> None:
        super().__init__(f"target {target_id}: {cause}")
        self.target_id = target_id
        self.cause = cause


class RangeDeletion(Exception):
    """A whole span of a table was deleted at once, which a feed of rows cannot follow."""

    def __init__(self, span: Span) -> None:
        super().__init__(f"the rows of {span} were deleted as a range")


End = Exception | None
"""The error that ended an attempt: None where it has done its work, or was told to stop."""

TARGET_FAILURES = (RowUnreadable, BatchTimestampBeforeGC)
"""The error of one target's rows, where it comes from reading those."""


class Pipeline:
    """Runs one feed's targets into its sink, each from its own part of `start` on."""

    def __init__(
        self,
        source: FeedSource,
        starts: Sequence[TargetStart],
        *,
        end: SinkEnd,
        start: SinkProgress,
        options: ChangefeedOptions,
        live: LiveFeed,
        pace: IdlePace,
        decoding: SharedDecoding,
        memory: FeedMemory,
        query: FeedQuery | None = None,
        stop: asyncio.Event | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        """`query` is what the sink shows of changes. When `stop` is set, what was emitted is
        flushed, and `run` returns."""
        self._arrivals = arrivals
        self._decoding = decoding
        self._stop = stop
        self._source = source
        self._starts = {each.target.id: each for each in starts}
        self._options = options
        self._live = live
        self._form = end.form
        spans = {each.target.id: each.target.span for each in starts}
        if arrivals is not None:
            spans[arrivals.id] = arrivals.span
        self.progress = FeedProgress(start, spans, whole_transactions=options.transactions)
        self.budget = MemoryBudget(source.settings, memory)
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
            now_ns=self.now_ns,
            progress_rides=end.form is Form.STORED,
        )
        self._writer.on_spacing = self._space_checkpoints
        self._spacing = 0.0
        self._plan = partial(
            plan_boundary, options=options, follows_schema=end.follows_schema, query=query
        )
        self._lanes: dict[int, TableLane] = {}
        self._readers: list[FeedReader] = []
        self._drainers: dict[int, asyncio.Task[None]] = {}
        self._helpers: dict[int, set[asyncio.Task[None]]] = {}
        """Scans and backfills, by target."""
        self._tasks: asyncio.TaskGroup
        self._ended: asyncio.Future[End]
        self._ended = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Runs until something fails, or to the end of the scan where that is all there is.

        Raises the first failure itself, whatever else failed in its wake; TableDropped,
        SchemaChangeEnd and TargetFailed when all that came before is in the sink.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._run(tasks)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._live.send_again = self._live.send_to_log = None
            self._live.holdups = no_holdups
            self._live.lag_split = no_split
            self._live.reached = nowhere
            for table_id in self._lanes:
                self._decoding.leave(table_id)
            for reader in self._readers:
                reader.feed.close()
            self.budget.close()

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self._live.send_again = self._send_again
        self._live.send_to_log = self._send_to_log
        self._live.holdups = self._holdups
        self._live.lag_split = self._lag_split
        self._live.reached = self._reached
        writer = tasks.create_task(self._writer.run())
        checkpointer = tasks.create_task(self._checkpointer.run())
        beginning = tasks.create_task(self._begin())
        stopping = tasks.create_task(self._stop_when_told())
        following = tasks.create_task(self._follow_arrivals())
        ended_by = await self._ended
        beginning.cancel()
        stopping.cancel()
        following.cancel()
        for reader in self._readers:
            reader.stop()
        helpers = [task for each in self._helpers.values() for task in each]
        for helper in (*self._drainers.values(), *helpers):
            helper.cancel()
        self._writer.end()
        await writer
        self._checkpointer.end()
        await checkpointer
        if ended_by is not None:
            raise ended_by

    async def _stop_when_told(self) -> None:
        if self._stop is not None:
            await self._stop.wait()
            self._end(None)

    async def _follow_arrivals(self) -> None:
        """Holds the frontier below the creation of a table that is to join. The attempt ends where
        none will join any more and no target is left."""
        arrivals = self._arrivals
        if arrivals is None:
            return
        feed = self._feed_from(self.progress.part(arrivals.id))
        try:
            while True:
                events = await feed.next()
                told = feed.frontier.low_water
                if self._options.end_time is not None:
                    told = min(told, self._options.end_time)
                upto = await arrivals.take(events, told)
                self.progress.forward(arrivals.span, upto)
                self._end_in_time()
                if arrivals.ended is not None and not self._starts:
                    self._end(arrivals.ended)
                if upto < told:
                    await arrivals.join()
                    return
        finally:
            feed.close()

    async def _begin(self) -> None:
        """The initial scan where it is not complete, then the span feed of the targets in step; a
        target that is behind goes its own way at once."""
        starts = list(self._starts.values())
        apart = [each for each in starts if self.progress.behind(each.target.id)]
        together = [each for each in starts if not self.progress.behind(each.target.id)]
        for start in apart:
            self._help(start.target.id, self._catch_up(start))
        if together and not self.progress.scan_complete:
            self._live.state = FeedState.INITIAL_SCAN
            for start in together:
                await self._reading(start.target.id, self._scan(start).run())
            self.progress.complete_scan()
        if self._options.initial_scan is ScanChoice.ONLY:
            self._end(None)
            return
        self._live.state = FeedState.CATCH_UP if starts else FeedState.STEADY
        if together:
            self._read(together)
        self._end_in_time()

    async def _catch_up(self, start: TargetStart) -> None:
        """Scans a target that is behind, where it is to be, and reads on from there."""
        scan = self._scan(start, beside_others=True)
        await self._reading(start.target.id, scan.run())
        self._read([start])

    async def _reading(self, target_id: int, reading: Awaitable[None]) -> None:
        """Reads a target's rows. One that cannot be read ends the attempt, which cancels this."""
        try:
            await reading
        except TARGET_FAILURES as error:
            self._fail(target_id, error)
            await asyncio.Event().wait()

    def _read(self, starts: Sequence[TargetStart]) -> None:
        """A reader of its own for these targets, from where their progress stands."""
        for start in starts:
            self._lanes[start.target.id] = self._lane(start)
            self._decoding.enter(start.target.id)
        lanes = [self._lanes[start.target.id] for start in starts]
        entries = [each for start in starts for each in self.progress.part(start.target.id)]
        self._open_reader(lanes, entries)

    def _open_reader(
        self, lanes: Sequence[TableLane], entries: Sequence[tuple[Span, Timestamp]]
    ) -> None:
        reader = FeedReader(self._feed_from(entries), lanes, self)
        if self._spacing:
            reader.feed.space_checkpoints(self._spacing)
        reader.task = self._tasks.create_task(reader.run())
        self._readers.append(reader)

    def _feed_from(self, entries: Sequence[tuple[Span, Timestamp]]) -> EventFeed:
        feed = self._source.span_feed_from(entries, with_previous=self._options.previous)
        end = self._options.end_time
        return feed if end is None else BoundedFeed(feed, end)

    def _lane(self, start: TargetStart) -> TableLane:
        return TableLane(
            start.target,
            start.table,
            start=self.progress.part(start.target.id),
            gate=start.gate,
            budget=self.budget,
            wall=self._source.clock.wall,
            end=self,
            plan=self._plan,
            decoding=self._decoding,
            form=self._form,
        )

    def _scan(self, start: TargetStart, *, beside_others: bool = False) -> InitialScan:
        """`beside_others`: in short steps and short flushes, for live rows wait for those."""
        reader = self._source.snapshot(start.scan_at)
        return InitialScan(
            reader,
            start.target,
            emitter=self._emitter(reader, start, start.scan_at, ChangeKind.INITIAL_SCAN),
            at=start.scan_at,
            gate=start.gate,
            progress=self.progress,
            budget=self.budget,
            pause=self._give_way if beside_others else partial(asyncio.sleep, 0),
            rows_max=BACKFILL_SLICE_ROWS if beside_others else SLICE_ROWS_MAX,
        )

    async def _give_way(self) -> None:
        await give_way()
        await self._writer.wait_until_behind(BACKFILL_ROWS_BEHIND)

    def _emitter(
        self,
        reader: ScanReader,
        start: TargetStart,
        at: Timestamp,
        kind: ChangeKind,
        rows_before: RowsBefore | None = None,
    ) -> RowEmitter:
        return RowEmitter(
            reader,
            start.target,
            at=at,
            kind=kind,
            wall=self._source.clock.wall,
            budget=self.budget,
            live=self._live,
            emit=self._writer.emit,
            form=self._form,
            with_versions=self._options.mvcc_timestamp,
            rows_before=rows_before,
        )

    def _help(self, target_id: int, work: Coroutine[None, None, None]) -> None:
        """Runs a target's scan or backfill beside everything else."""
        helpers = self._helpers.setdefault(target_id, set())
        task = self._tasks.create_task(work)
        helpers.add(task)
        task.add_done_callback(helpers.discard)

    def _space_checkpoints(self, seconds: float) -> None:
        self._spacing = seconds
        for reader in self._readers:
            reader.feed.space_checkpoints(seconds)

    def _send_again(
        self,
        versions: Versions,
        descriptor: TableDescriptor,
        own: Sequence[Timestamp] | None = None,
    ) -> StageTimes | None:
        """See `LiveFeed.send_again`."""
        lane = self._lanes.get(descriptor.id)
        if lane is None or self._ended.done() or versions.timestamps[0] <= self.progress.resolved:
            return None
        current = lane.current_as(descriptor)
        if current is None:
            return None
        batch = decode(
            self._starts[lane.table_id].target.present(versions, current),
            current,
            stages=StageTimes(decoded=self.now_ns()),
            kind=ChangeKind.BACKFILL,
            form=Form.ROWS,
            versions=own,
        )
        self._writer.emit(Emission(batch, (), 0))
        return batch.stages

    def _send_to_log(self, batch: ChangeBatch) -> bool:
        """See `LiveFeed.send_to_log`."""
        assert batch.for_log, batch
        if batch.descriptor.id not in self._lanes or self._ended.done():
            return False
        self._writer.emit(Emission(batch, (), 0))
        return True

    def _holdups(self, now: Timestamp) -> list[Holdup]:
        """See `LiveFeed.holdups`."""
        now_ns = self.now_ns()
        full = self.budget.limited_by if self.budget.full else None
        reading = [reader.holdup(now_ns, now, full=full) for reader in self._readers]
        gated = [lane.holdup() for lane in self._lanes.values()]
        return [each for each in (*reading, *gated) if each is not None] + self._writer.holdups()

    def _lag_split(self, now: Timestamp) -> LagSplit | None:
        """See `LiveFeed.lag_split`."""
        if not self._readers or not self._live.resolved:  # it scans: nothing is acknowledged yet
            return None
        return split_lag(
            acknowledged=self._live.resolved,
            emitted=self.progress.resolved,
            told=min(reader.feed.frontier.low_water for reader in self._readers),
            now=now,
            sending=self._writer.sending,
        )

    def _reached(self) -> Timestamp | None:
        """See `LiveFeed.reached`."""
        return self.progress.resolved if self._writer.resting else None

    # What lanes ask for

    def emit(self, emission: Emission) -> None:
        self._writer.emit(emission)

    def change_schema(self, event: TableEvent) -> None:
        self._writer.change_schema(event)

    def forward(self, target_id: int, span: Span, resolved: Timestamp) -> None:
        self.progress.forward(span, resolved)
        start = self._starts[target_id]
        behind = self.progress.behind(target_id)
        upto = self.progress.low_water(target_id) if behind else self.progress.resolved
        start.gate.consume(target_id, upto)
        self._end_in_time()

    def open_backfill(self, boundary: Boundary) -> OpenBackfill:
        known = self.progress.open_backfill(boundary.table_id, boundary.at, boundary.kind)
        return OpenBackfill(boundary, known)

    def start_backfill(self, backfill: OpenBackfill) -> None:
        self._help(backfill.table.id, self._backfill(backfill))

    async def _backfill(self, backfill: OpenBackfill) -> None:
        start = self._starts[backfill.table.id]
        reader = self._source.snapshot(backfill.at)
        rows_before = None
        if self._options.previous:
            below = self._source.snapshot(Timestamp(backfill.at - 1))
            rows_before = RowsBefore(below, backfill.boundary.event)
        emitter = self._emitter(reader, start, backfill.at, ChangeKind.BACKFILL, rows_before)
        self._live.backfills += 1
        try:
            scan = BackfillScan(
                reader,
                start.target,
                emitter,
                progress=self.progress,
                budget=self.budget,
                wait_until_behind=self._writer.wait_until_behind,
            )
            await self._reading(start.target.id, scan.run(backfill))
        finally:
            self._live.backfills -= 1
        lane = self._lanes[backfill.table.id]
        lane.backfilled()
        self.wake(lane)

    def pass_over(self, target_id: int, below: Timestamp, whole_from: Timestamp) -> None:
        self.progress.pass_over(target_id, below, whole_from)

    def read_again(self, target_id: int, starts: Sequence[tuple[Span, Timestamp]]) -> None:
        """A reader of its own takes the target over, in this step; the others go on as they are."""
        lane = self._lanes[target_id]
        self._drop_reader(lane)
        self._open_reader([lane], starts)

    def _drop_reader(self, lane: TableLane) -> None:
        """Ends the lane's reader."""
        for reader in list(self._readers):
            if lane in reader.lanes:
                reader.remove(lane)
                if not reader.lanes:
                    self._readers.remove(reader)

    # What readers ask for

    def wake(self, lane: TableLane) -> bool:
        """Lets go on what may, unless a drainer does; says whether a slice was done."""
        state: LaneState | None = None
        if lane.table_id not in self._drainers:
            state = self._advance(lane)
            if state is not LaneState.EMPTY:
                drainer = self._tasks.create_task(self._drain(lane, state))
                self._drainers[lane.table_id] = drainer
        if not lane.resting:
            self._writer.stir()
        return state is LaneState.SLICED

    def note_steady(self) -> None:
        self._live.state = FeedState.STEADY

    def note_deletion(self, lane: TableLane, event: DeleteRange) -> None:
        self._fail(lane.table_id, RangeDeletion(event.span))

    async def wait_for_room(self) -> None:
        """Beyond the limit of what waits at boundaries, lanes forget it; beyond that of what goes
        on, the reader waits."""
        while self.budget.overheld:
            max(self._lanes.values(), key=lambda lane: lane.held_bytes).forget()
        await self.budget.wait_for_room()

    def now_ns(self) -> int:
        return self._source.clock.wall.monotonic_ns()

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
        except TARGET_FAILURES as error:
            self._fail(lane.table_id, error)
            return LaneState.BLOCKED

    async def _prove(self, lane: TableLane) -> bool:
        """Waits for the proof that the lane waits for; False when the feed has ended."""
        if self._ended.done():
            return False
        try:
            await self._starts[lane.table_id].gate.prove(lane.table_id, lane.blocked_on)
        except TableDropped:
            # The lane meets it too, having moved the frontier up to the drop.
            pass
        return True

    def _fail(self, target_id: int, error: Exception) -> None:
        """Ends the attempt, so that another goes on without the target. Raises the error where
        there is no other target."""
        if len(self._starts) == 1 and self._arrivals is None:
            raise error
        self._end(TargetFailed(target_id, error))

    def _end_in_time(self) -> None:
        """Ends the feed where it has an end and has come to it, every target of it. One that is
        paused or has failed is waited for: what it has to show is not shown."""
        end = self._options.end_time
        if end is None or self.progress.resolved < end:
            return
        if all(at >= end for _, at in self.progress.capture().frontier):
            self._end(None)

    def _end(self, why: End) -> None:
        """Ends reading: what was emitted is flushed, and the attempt ends."""
        if not self._ended.done():
            self._ended.set_result(why)
