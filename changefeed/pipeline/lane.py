"""Lanes: one target's way through the gate, in order.

A lane holds what came from the range feed and has not gone to the sink: versions that wait for
their schema, and checkpoints behind them. Its queue keeps the range feed's order, so a checkpoint
moves the frontier only when every version before it has been emitted.

    push 90..100, checkpoint 110, push 115          schema proven through 112

    advance -> emits 90..100, frontier to 110, then BLOCKED on 115

A lone row on a table whose schema is proven passes in the step in which it came; what has queued up
is decoded in slices, several small batches at a time.

The range feed tells of all of the target's keys. A version goes on if its key is a row under the
descriptor that is canonical at its timestamp, so that a swap of a table's primary index at T needs
no other subscription: below T the old index's keys go on, from T on the new one's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import ZERO, Timestamp, WallClock, format_timestamp
from ...kvlayer.events import ValueBatch
from ...kvlayer.frontier import Frontier
from ...kvlayer.span import Span
from ...schemafeed.feed import TableDropped
from ...schemafeed.table_events import TableEvent, table_event
from ..contract.boundary_kind import BoundaryKind
from ..contract.changes import ChangeBatch, CommitTimes, Form, StageTimes
from ..targets import FeedTarget, Versions
from .boundary import Boundary, BoundaryPlan
from .budget import MemoryBudget, batch_bytes
from .crossing import OpenBackfill
from .decode import decode, slice_rows
from .gate import Proof, SchemaGate
from .holdup import Holdup
from .shared_decoding import SharedDecoding
from .stage_times import Stage

CHECKPOINT_SPACING_NS = 20_000_000
"""Checkpoints that wait closer together than this become one: a poll away, a table without writes
would otherwise queue a hundred a second."""

CHECKPOINT_BYTES = 128

LOOKED_AT_MAX = 1_000
"""Waiting items that are searched for rows when somebody asks what the lane waits for."""

SLICE_BYTES = 2 * 1024 * 1024
"""Bytes decoded in one step of the loop: rows may be large, and `slice_rows` counts columns."""


class LaneState(Enum):
    """The state in which `advance` stopped."""

    EMPTY = "empty"  # everything has gone on, or waits for rows below a boundary
    SLICED = "sliced"  # one slice is done and there is more: let others run
    BLOCKED = "blocked"  # the head waits until its schema is proven


@dataclass(slots=True)
class _Queued:
    """Versions that wait. `start` is how many of the batch have gone on already, `size` what those
    that have not are charged, `arrived_ns` when the batch came from the range feed."""

    batch: ValueBatch
    upto: Timestamp
    size: int
    arrived_ns: int
    start: int = 0


@dataclass(slots=True)
class _Mark:
    """A checkpoint that waits behind versions. `opened_at_ns` is when it came to the queue."""

    span: Span
    resolved: Timestamp
    opened_at_ns: int


@dataclass(slots=True)
class Emission:
    """A batch on its way to the sink, the commits that end in it, and the bytes it is charged."""

    batch: ChangeBatch
    commits: Sequence[CommitTimes]
    size: int


@dataclass(slots=True)
class _Taken:
    """A slice of the queue, and the proof that covers it."""

    proof: Proof
    versions: Versions = field(default_factory=Versions)
    batches: list[ValueBatch] = field(default_factory=list)
    """The batches whose rows the versions are; with `parted`, one has further rows."""
    parted: bool = False
    commits: list[CommitTimes] = field(default_factory=list)
    """The commits of the batches that end in the slice."""
    size: int = 0
    """The bytes that the versions were charged."""
    bytes: int = 0
    """About as many, which is never nothing for a version."""


class LaneEnd(Protocol):
    """The receiver of a lane's rows and events: the rest of the pipeline."""

    def emit(self, emission: Emission) -> None: ...

    def change_schema(self, event: TableEvent) -> None:
        """Rows of the table emitted from here on may be under `event.after`."""
        ...

    def forward(self, target_id: int, span: Span, resolved: Timestamp) -> None:
        """Notes that all rows in `span` at or below `resolved` were emitted."""
        ...

    def open_backfill(self, boundary: Boundary) -> OpenBackfill:
        """The boundary was crossed: its backfill is part of the feed's progress from here on."""
        ...

    def start_backfill(self, backfill: OpenBackfill) -> None:
        """Every row below the boundary was emitted: those as of it may follow."""
        ...

    def pass_over(self, target_id: int, below: Timestamp, whole_from: Timestamp) -> None:
        """Between the two the sink lacks rows, and `forward` steps over that time."""
        ...

    def read_again(self, table_id: int, starts: Sequence[tuple[Span, Timestamp]]) -> None:
        """Has the range feed bring again what it has brought of the table above `starts`, which was
        forgotten, and nothing of the table before that."""
        ...


class TableLane:
    """The lane of one table, between its range feed and the sink.

    `_current` is the descriptor of the last boundary that was crossed. A boundary that was met and
    not crossed is `_ahead`. The *bar* is the least timestamp that has to wait: that of a boundary
    that cannot be crossed yet, or of one whose backfill can remember no more keys. What lies at or
    above the bar waits in `_held`, in order, while what lies below still goes on. So a table waits
    at its own boundaries alone.

    Where that is more than the feed may hold, the lane is told to *forget* it. It then drops what
    lies at or above the bar, and when the bar is lifted it has the table read again, from where
    everything went on:

        arrived 90, bar at 100          110 and 120 are held, forgotten; 130 is dropped; 95 goes on
        the bar is lifted               the range feed begins again from 99: 110, 120, 130

    Promises, each for as long as the lane lives:

    - a version goes on under a descriptor whose boundary was crossed before;
    - versions of a key go on in the order in which the range feed brought them: while anything is
      held, the bar is at or below where it was held, and whatever sets it free puts it before all
      that still waits;
    - progress passes no version that came and has not gone on, and no boundary whose backfill is
      open; nor does it stand where the backfill left out a row whose later version lies above.
    """

    def __init__(
        self,
        target: FeedTarget,
        table: TableDescriptor,
        *,
        start: Sequence[tuple[Span, Timestamp]],
        gate: SchemaGate,
        budget: MemoryBudget,
        wall: WallClock,
        end: LaneEnd,
        plan: BoundaryPlan,
        decoding: SharedDecoding,
        form: Form,
    ) -> None:
        """`table` is the target's descriptor as of `start`: how far its span has come, piece by
        piece."""
        self.target = target
        self.table_id = target.id
        self.span = target.span
        self._current = table
        self._gate = gate
        self._budget = budget
        self._monotonic_ns = wall.monotonic_ns
        self._end = end
        self._plan = plan
        self._form = form
        self._decoding = decoding
        self._rows_max = slice_rows(table)
        self._waiting: deque[_Queued | _Mark] = deque()
        self._held: deque[_Queued | _Mark] = deque()
        self.held_bytes = 0
        """The bytes that wait at a bar."""
        self._held_from = ZERO
        """The least bar at which something was held; it counts only while something is."""
        self._forgot = False
        """Whether something that should be held was dropped."""
        self._ahead: Boundary | None = None
        self._started_at = min((at for _, at in start), default=ZERO)
        self._backfill: OpenBackfill | None = None
        self._passed_over: OpenBackfill | None = None
        """The last backfill that was done, until progress is where the sink lacks no row of it."""
        self._dropped: TableDropped | None = None
        self._arrived = Frontier.from_entries(start)
        """Everything at or below it came through the queue."""

    def push(self, batch: ValueBatch) -> None:
        """Versions came from the range feed."""
        assert len(batch) > 0, batch
        size = batch_bytes(batch)
        self._budget.charge(size)
        self._waiting.append(_Queued(batch, max(batch.timestamps), size, self._monotonic_ns()))

    def push_checkpoint(self, span: Span, resolved: Timestamp, *, now_ns: int) -> None:
        """A checkpoint came from the range feed: it holds for everything pushed before it."""
        assert self.span.start <= span.start, (self.span, span)
        assert span.end <= self.span.end, (self.span, span)
        waiting = self._waiting
        if len(waiting) > 1:
            # Behind a head that waits, a closely following checkpoint says it all.
            tail = waiting[-1]
            if (
                isinstance(tail, _Mark)
                and tail.span == span
                and now_ns - tail.opened_at_ns < CHECKPOINT_SPACING_NS
            ):
                tail.resolved = max(tail.resolved, resolved)
                return
        self._budget.charge(CHECKPOINT_BYTES)
        waiting.append(_Mark(span, resolved, now_ns))

    @property
    def blocked_on(self) -> Timestamp:
        """Up to when the schema must be proven for the head to go on."""
        head = self._waiting[0]
        return head.resolved if isinstance(head, _Mark) else head.upto

    def close(self) -> None:
        """Gives up what has not gone on: nothing of the target follows."""
        self._budget.drop(self.held_bytes)
        self._budget.release(sum(map(_charged, self._waiting)))
        self.held_bytes = 0
        self._held.clear()
        self._waiting.clear()

    def forget(self) -> None:
        """Drops what waits at a bar, to have it read again when the bar is lifted."""
        self._budget.drop(self.held_bytes)
        self.held_bytes = 0
        self._held.clear()
        self._forgot = True

    def holdup(self) -> Holdup | None:
        """The first rows that wait here, if any do."""
        queue = self._held or self._waiting
        if not queue:
            return None
        looked_at = islice(queue, LOOKED_AT_MAX)
        head = next((item for item in looked_at if isinstance(item, _Queued)), queue[0])
        if queue is self._held:
            why = f"a schema change at {format_timestamp(self._held_from)} that is not over"
        else:
            why = f"the schema as of {format_timestamp(self.blocked_on)}"
        return Holdup(
            stage=Stage.GATE,
            batches=len(self._held) + len(self._waiting),
            since_ns=head.opened_at_ns if isinstance(head, _Mark) else head.arrived_ns,
            table_id=self.table_id,
            span=head.span if isinstance(head, _Mark) else Span.of_keys(head.batch.keys),
            why=why,
        )

    @property
    def resting(self) -> bool:
        """Whether nothing waits here, neither for a proof nor for a checkpoint."""
        return not (self._waiting or self._held or self._ahead or self._backfill)

    def current_as(self, descriptor: TableDescriptor) -> TableDescriptor | None:
        """The descriptor under which rows go on, if a row under `descriptor` is the same under it
        and nothing waits for a schema change."""
        current = self._current
        same = (
            current.visible_columns == descriptor.visible_columns
            and current.primary_index_id == descriptor.primary_index_id
        )
        return current if same and self._ahead is None and self._backfill is None else None

    def advance(self) -> LaneState:
        """Lets go on what is proven, at most one slice of it.

        Raises TableDropped or SchemaChangeEnd once everything below has been emitted, and the
        frontier is moved up to it.
        """
        gate = self._gate
        while True:
            if self._held or self._forgot:
                self._lift()
            if not self._waiting:
                break
            head = self._waiting[0]
            if isinstance(head, _Mark):
                if not self._pass_mark(head):
                    return LaneState.BLOCKED
                continue
            proof = gate.try_prove(self.table_id, head.upto)
            if proof is None:
                return LaneState.BLOCKED
            if self._pass_versions(proof) and self._waiting:
                return LaneState.SLICED
        self._check_dropped()
        return LaneState.EMPTY

    def backfilled(self) -> None:
        """The rows of the open backfill were all emitted. `advance` is due."""
        assert self._backfill is not None, self.table_id
        assert self._passed_over is None, self
        self._passed_over, self._backfill = self._backfill, None
        self._end.pass_over(self.table_id, self._passed_over.below, self._passed_over.whole_from)
        for span, at in list(self._arrived.entries()):
            self._forward(span, at)

    # Boundaries

    def _reach(self, proof: Proof, upto: Timestamp) -> None:
        """Crosses the boundaries at or below `upto`, as far as they can be crossed yet."""
        while True:
            ahead = self._ahead
            if ahead is None:
                segment = proof.after(self._current)
                if segment is None:
                    return
                ahead = self._plan(table_event(self._current, segment.descriptor))
                assert segment.start in (ZERO, ahead.at), (segment, ahead)
                self._ahead = ahead
            if upto < ahead.at or not self._crossable(ahead):
                return
            self._cross(ahead)

    def _crossable(self, boundary: Boundary) -> bool:
        if self._backfill is not None and not boundary.hidden:
            return False
        return not boundary.settles or self._arrived.low_water >= boundary.at - 1

    def _cross(self, boundary: Boundary) -> None:
        """From here on rows are under the new schema."""
        assert boundary is self._ahead, (boundary, self._ahead)
        assert boundary.event.before is self._current, (boundary, self._current)
        assert self._crossable(boundary), (boundary, self)
        passed = boundary.at <= self._started_at  # by an earlier life of the feed, wholly
        if boundary.end is not None and not passed:
            raise boundary.end
        self._ahead = None
        self._current = boundary.event.after
        self._end.change_schema(boundary.event)
        if boundary.kind is BoundaryKind.BACKFILL and not passed:
            self._backfill = self._end.open_backfill(boundary)
            self._start_backfill()

    def _start_backfill(self) -> None:
        """Once every row below the boundary was emitted: the rows as of it may not precede one."""
        backfill = self._backfill
        if backfill is None or backfill.started or self._arrived.low_water < backfill.at - 1:
            return
        backfill.started = True
        self._end.start_backfill(backfill)

    # What is held

    @property
    def _bar(self) -> Timestamp | None:
        """The timestamp at or above which all has to wait; None where nothing has."""
        bar: Timestamp | None = None
        if self._ahead is not None and not self._crossable(self._ahead):
            bar = self._ahead.at
        backfill = self._backfill
        if backfill is not None and backfill.full:
            # Never above a boundary ahead: the backfill is that of an earlier one.
            bar = backfill.at
        return bar

    def _lift(self) -> None:
        """Sets free what is held, if the bar is above where it was held, or gone.

        Called before anything else goes on: all of it came before what waits.
        """
        if self._ahead is not None and self._crossable(self._ahead):
            self._cross(self._ahead)
        bar = self._bar
        if bar is not None and bar <= self._held_from:
            return
        if self._forgot:
            self._read_again()
            return
        self._budget.take_back(self.held_bytes)
        self.held_bytes = 0
        # Many may be held, a row each; few wait.
        self._held.extend(self._waiting)
        self._waiting, self._held = self._held, deque()

    def _read_again(self) -> None:
        """Forgets what waits, too: it came behind what was forgotten, and comes behind it again."""
        self._forgot = False
        for item in self._waiting:
            self._budget.release(_charged(item))
        self._waiting.clear()
        self._end.read_again(self.table_id, list(self._arrived.entries()))

    def _hold(self, item: _Queued | _Mark, bar: Timestamp) -> None:
        waits = bool(self._held) or self._forgot
        self._held_from = min(self._held_from, bar) if waits else bar
        size = _charged(item)
        if self._forgot:
            self._budget.release(size)
            return
        self._budget.set_aside(size)
        self.held_bytes += size
        self._held.append(item)

    def _hold_mark(self, mark: _Mark, bar: Timestamp) -> None:
        last = self._held[-1] if self._held else None
        if isinstance(last, _Mark) and last.span == mark.span:
            last.resolved = max(last.resolved, mark.resolved)
            self._budget.release(CHECKPOINT_BYTES)
        else:
            self._hold(mark, bar)

    # Checkpoints

    def _pass_mark(self, mark: _Mark) -> bool:
        """Lets a checkpoint pass, or holds it at the bar; False where its schema is not proven."""
        proof, upto = self._prove_mark(mark)
        if proof is None:
            return False
        self._reach(proof, upto)
        self._waiting.popleft()
        bar = self._bar
        if bar is None or upto < bar:
            self._budget.release(CHECKPOINT_BYTES)
            self._arrive(mark.span, upto)
        else:
            self._hold_mark(mark, bar)
            self._arrive(mark.span, Timestamp(bar - 1))
        return True

    def _prove_mark(self, mark: _Mark) -> tuple[Proof | None, Timestamp]:
        """A proof that reaches the mark, or where the table was dropped before, the drop."""
        upto = mark.resolved
        if self._dropped is None:
            try:
                return self._gate.try_prove(self.table_id, upto), upto
            except TableDropped as dropped:
                self._dropped = dropped
        upto = min(upto, Timestamp(self._dropped.timestamp - 1))
        return self._gate.try_prove(self.table_id, upto), upto

    def _arrive(self, span: Span, upto: Timestamp) -> None:
        """Notes that all rows in `span` at or below `upto` were emitted."""
        self._arrived.forward(span, upto)
        self._forward(span, upto)
        if self._backfill is not None:
            self._start_backfill()

    def _forward(self, span: Span, upto: Timestamp) -> None:
        """Moves progress as far as the sink has every row."""
        backfill, passed_over = self._backfill, self._passed_over
        if backfill is not None:
            upto = min(upto, backfill.below)
        if passed_over is not None:
            if upto < passed_over.whole_from:
                upto = min(upto, passed_over.below)
            elif self._arrived.low_water >= passed_over.whole_from:
                self._passed_over = None
        self._end.forward(self.table_id, span, upto)

    def _check_dropped(self) -> None:
        """Raises TableDropped when everything below the drop went on."""
        dropped = self._dropped
        if dropped is None or self._held or self._forgot or self._backfill is not None:
            return
        if self._ahead is None and self._arrived.low_water >= dropped.timestamp - 1:
            raise dropped

    # Versions

    def _pass_versions(self, proof: Proof) -> bool:
        """Decodes and emits one slice of the queue's head; says whether that was a whole one."""
        stages = StageTimes(gated=self._monotonic_ns())
        taken = self._take(proof)
        whole = self._whole(taken)
        segments = taken.proof.segments
        if len(segments) == 1 and segments[0].descriptor.version <= self._current.version:
            self._emit(taken, taken.versions, segments[0].descriptor, stages)
            return whole
        parts = taken.proof.split(taken.versions.timestamps)
        size = taken.size
        for number, (descriptor, positions) in enumerate(parts, start=1):
            part = taken.versions.pick(positions)
            taken.size = size if number == len(parts) else min(size, batch_bytes(part))
            size -= taken.size
            oldest = min(part.timestamps)
            if descriptor.version > self._current.version:
                self._reach(taken.proof, oldest)
            bar = self._bar
            if bar is not None and oldest >= bar:
                self._hold_versions(taken, part, bar)
            else:
                assert bar is None or max(part.timestamps) < bar, (part.timestamps, bar)
                self._emit(taken, part, descriptor, stages)
            taken.commits = []  # those of the first part: a commit is counted once
            stages = StageTimes(gated=stages.gated)
        return whole

    def _whole(self, taken: _Taken) -> bool:
        """Whether it is as much as one step of the loop decodes."""
        return len(taken.versions) >= self._rows_max or taken.bytes >= SLICE_BYTES

    def _hold_versions(self, taken: _Taken, part: Versions, bar: Timestamp) -> None:
        called, appended, durable, arrived = taken.commits[0] if taken.commits else (0, 0, 0, 0)
        batch = ValueBatch(
            keys=part.keys,
            values=part.values,
            timestamps=part.timestamps,
            previous=part.previous or None,
            commit_called_ns=called,
            appended_ns=appended,
            durable_ns=durable,
        )
        arrived = arrived or self._monotonic_ns()
        self._hold(_Queued(batch, max(part.timestamps), taken.size, arrived), bar)

    def _emit(
        self, taken: _Taken, given: Versions, descriptor: TableDescriptor, stages: StageTimes
    ) -> None:
        assert descriptor.version <= self._current.version, (descriptor, self._current)
        selected = self.target.select(given, descriptor)
        if not selected.keys:
            self._budget.release(taken.size)
            return
        backfill = self._backfill
        if backfill is not None and descriptor.version >= backfill.table.version:
            backfill.note_emitted(selected.keys, max(selected.timestamps))
        shown = selected
        if self._form is not Form.STORED:
            shown = self.target.present(selected, descriptor)
        if shown is given is taken.versions and not taken.parted:
            batch = self._decoding.decode(
                taken.batches, shown, descriptor, stages=stages, form=self._form
            )
        else:
            batch = decode(shown, descriptor, stages=stages, form=self._form)
        stages.decoded = self._monotonic_ns()
        self._end.emit(Emission(batch, taken.commits, taken.size))

    def _take(self, proof: Proof) -> _Taken:
        """A slice from the head of the queue: whole batches while they fit and are proven.

        Rows of a batch are taken to be of one size, and a slice takes its share of the charge; one
        row at least is taken, however large.
        """
        waiting = self._waiting
        taken = _Taken(proof)
        versions = taken.versions
        while waiting and not self._whole(taken):
            head = waiting[0]
            if isinstance(head, _Mark):
                break
            if head.upto > taken.proof.upto:
                further = self._gate.try_prove(self.table_id, head.upto)
                if further is None:
                    break
                taken.proof = further
            batch = head.batch
            left = len(batch) - head.start
            row_bytes = head.size // left + 1
            room = min(self._rows_max - len(versions), (SLICE_BYTES - taken.bytes) // row_bytes + 1)
            stop = min(head.start + room, len(batch))
            count = stop - head.start
            part = head.size * count // left
            head.size -= part
            taken.size += part
            taken.bytes += row_bytes * count
            taken.batches.append(batch)
            if head.start == 0 and stop == len(batch):
                versions.keys += batch.keys
                versions.values += batch.values
                versions.timestamps += batch.timestamps
                versions.previous += batch.previous or ()
            else:
                taken.parted = True
                versions.keys += islice(batch.keys, head.start, stop)
                versions.values += islice(batch.values, head.start, stop)
                versions.timestamps += islice(batch.timestamps, head.start, stop)
                versions.previous += islice(batch.previous or (), head.start, stop)
            head.start = stop
            if stop == len(batch):
                waiting.popleft()
                taken.commits.append(
                    (batch.commit_called_ns, batch.appended_ns, batch.durable_ns, head.arrived_ns)
                )
        assert len(versions) > 0, waiting
        return taken

    def check_invariants(self) -> None:
        """The promises of the class, looked at whole. They hold whenever `advance` has returned."""
        bar, held, ahead, backfill = self._bar, self._held, self._ahead, self._backfill
        assert not (held and self._forgot), self
        waits = bool(held) or self._forgot
        assert not waits or (bar is not None and bar <= self._held_from), (bar, self._held_from)
        for item in held:
            if isinstance(item, _Queued):
                timestamps = item.batch.timestamps[item.start :]
                assert min(timestamps) >= self._held_from, (timestamps, self._held_from)
        for item in (*held, *self._waiting):
            if isinstance(item, _Queued):
                for key, ts in zip(item.batch.keys, item.batch.timestamps, strict=True):
                    arrived = self._arrived.at(key)
                    assert arrived is not None and arrived < ts, (key, ts, self._arrived)
        assert ahead is None or ahead.event.before is self._current, (ahead, self._current)
        if backfill is not None:
            assert backfill.table.version <= self._current.version, (backfill.table, self)
            assert ahead is None or backfill.at < ahead.at, (backfill, ahead)
            settled = self._arrived.low_water >= backfill.below
            assert backfill.started == settled, (backfill, self._arrived)
        sizes = list(map(_charged, held))
        assert sum(sizes) == self.held_bytes, (sizes, self.held_bytes)
        assert self.held_bytes <= self._budget.held, (self.held_bytes, self._budget.held)

    def __repr__(self) -> str:
        ahead = f" ahead {self._ahead.event}" if self._ahead else ""
        held = "forgotten" if self._forgot else len(self._held)
        queues = f"waiting={len(self._waiting)} held={held}"
        return f"<TableLane {self._current} {queues}{ahead}>"


def _charged(item: _Queued | _Mark) -> int:
    """The bytes that it is charged."""
    return item.size if isinstance(item, _Queued) else CHECKPOINT_BYTES
