"""Lanes: one table's way through the gate, in order.

A lane holds what came from the range feed and has not gone to the sink: versions that wait for
their schema, and checkpoints behind them. Its queue keeps the range feed's order, so a checkpoint
moves the frontier only when every version before it has been emitted.

    push 90..100, checkpoint 110, push 115          schema proven through 112

    advance -> emits 90..100, frontier to 110, then BLOCKED on 115

A lone row on a table whose schema is proven passes in the step in which it came; what has queued up
is decoded in slices, several small batches at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from ..catalog.descriptor import TableDescriptor
from ..kvlayer.clock import Timestamp, WallClock
from ..kvlayer.events import ValueBatch
from ..kvlayer.span import Span
from ..schemafeed.feed import TableDropped
from .budget import MemoryBudget, batch_bytes
from .changes import ChangeBatch, StageTimes
from .decode import Versions, decode, slice_rows
from .gate import Proof, SchemaGate

CHECKPOINT_SPACING_NS = 20_000_000
"""Checkpoints that wait closer together than this become one: a poll away, a table without writes
would otherwise queue a hundred a second."""

CHECKPOINT_BYTES = 128


class LaneState(Enum):
    """Where `advance` stopped."""

    EMPTY = "empty"  # everything has gone on
    SLICED = "sliced"  # one slice is done and there is more: let others run
    BLOCKED = "blocked"  # the head waits until its schema is proven


@dataclass(slots=True)
class _Queued:
    """Versions that wait. `start` is how many of the batch have gone on already."""

    batch: ValueBatch
    upto: Timestamp
    size: int
    start: int = 0


@dataclass(slots=True)
class _Mark:
    """A checkpoint that waits behind versions. `opened_at_ns` is when it came to the queue."""

    span: Span
    resolved: Timestamp
    opened_at_ns: int


@dataclass(slots=True)
class Emission:
    """A batch on its way to the sink, the commits that end in it, and the bytes it is charged.

    A commit is when it was called and when it was durable, in monotonic nanoseconds.
    """

    batch: ChangeBatch
    commits: Sequence[tuple[int, int]]
    size: int


@dataclass(slots=True)
class _Taken:
    """A slice of the queue, and the proof that covers it."""

    proof: Proof
    versions: Versions = field(default_factory=Versions)
    commits: list[tuple[int, int]] = field(default_factory=list)
    size: int = 0


class TableLane:
    """One table between its range feed and the sink."""

    def __init__(
        self,
        table: TableDescriptor,
        *,
        gate: SchemaGate,
        budget: MemoryBudget,
        wall: WallClock,
        emit: Callable[[Emission], None],
        forward: Callable[[Span, Timestamp], None],
        columnar: bool,
    ) -> None:
        self.table_id = table.id
        self.span = table.primary_span
        self._gate = gate
        self._budget = budget
        self._monotonic_ns = wall.monotonic_ns
        self._emit = emit
        self._forward = forward
        self._columnar = columnar
        self._rows_max = slice_rows(table)
        self._waiting: deque[_Queued | _Mark] = deque()

    def push(self, batch: ValueBatch) -> None:
        """Versions came from the range feed."""
        size = batch_bytes(batch)
        self._budget.charge(size)
        self._waiting.append(_Queued(batch, max(batch.timestamps), size))

    def push_checkpoint(self, span: Span, resolved: Timestamp, *, now_ns: int) -> None:
        """A checkpoint came from the range feed: it holds for everything pushed before it."""
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

    def advance(self) -> LaneState:
        """Lets go on what is proven, at most one slice of it.

        Raises TableDropped once everything before the drop has been emitted: versions end there,
        so it is a checkpoint that meets it, and the frontier is moved up to the drop.
        """
        waiting = self._waiting
        gate = self._gate
        while waiting:
            head = waiting[0]
            if isinstance(head, _Mark):
                if not self._pass_mark(head):
                    return LaneState.BLOCKED
                continue
            proof = gate.try_prove(self.table_id, head.upto)
            if proof is None:
                return LaneState.BLOCKED
            if self._pass_versions(proof) >= self._rows_max and waiting:
                return LaneState.SLICED
        return LaneState.EMPTY

    def _pass_mark(self, mark: _Mark) -> bool:
        try:
            if self._gate.try_prove(self.table_id, mark.resolved) is None:
                return False
        except TableDropped as dropped:
            self._forward(mark.span, Timestamp(dropped.timestamp - 1))
            raise
        self._waiting.popleft()
        self._budget.release(CHECKPOINT_BYTES)
        self._forward(mark.span, mark.resolved)
        return True

    def _pass_versions(self, proof: Proof) -> int:
        """Decodes and emits one slice of the queue's head; returns how many rows it had."""
        stages = StageTimes(gated=self._monotonic_ns())
        taken = self._take(proof)
        if taken.commits:
            stages.commit_called, stages.durable = taken.commits[0]
        if len(taken.proof.segments) == 1:
            self._decode(taken, taken.versions, taken.proof.segments[0].descriptor, stages)
            return len(taken.versions)
        rows = len(taken.versions)
        for descriptor, positions in taken.proof.split(taken.versions.timestamps):
            self._decode(taken, taken.versions.pick(positions), descriptor, stages)
            # The bytes and the commits belong to the first part alone: they are counted once.
            taken.commits, taken.size = [], 0
            stages = StageTimes(gated=stages.gated)
        return rows

    def _decode(
        self, taken: _Taken, versions: Versions, descriptor: TableDescriptor, stages: StageTimes
    ) -> None:
        batch = decode(versions, descriptor, stages=stages, columnar=self._columnar)
        stages.decoded = self._monotonic_ns()
        self._emit(Emission(batch, taken.commits, taken.size))

    def _take(self, proof: Proof) -> _Taken:
        """A slice from the head of the queue: whole batches while they fit and are proven."""
        waiting = self._waiting
        taken = _Taken(proof)
        versions = taken.versions
        while waiting and len(versions) < self._rows_max:
            head = waiting[0]
            if isinstance(head, _Mark):
                break
            if head.upto > taken.proof.upto:
                further = self._gate.try_prove(self.table_id, head.upto)
                if further is None:
                    break
                taken.proof = further
            batch = head.batch
            stop = min(head.start + self._rows_max - len(versions), len(batch))
            if head.start == 0 and stop == len(batch):
                versions.keys += batch.keys
                versions.values += batch.values
                versions.timestamps += batch.timestamps
            else:
                versions.keys += islice(batch.keys, head.start, stop)
                versions.values += islice(batch.values, head.start, stop)
                versions.timestamps += islice(batch.timestamps, head.start, stop)
            head.start = stop
            if stop == len(batch):
                waiting.popleft()
                taken.size += head.size
                taken.commits.append((batch.commit_called_ns, batch.durable_ns))
        assert len(versions) > 0, waiting
        return taken
