"""The writer: flushes the sink together with the progress that the flush makes true.

Batches are handed to the sink as they come. One flush runs at a time; what comes meanwhile gathers
for the next, so batching is as large as the sink is slow, and a lone row is flushed at once.

    rows      a   b c     d
    flush     [a  ]  [b c][d ]
    progress  the frontier as it stood when the flush began

A *checkpoint* is a flush without rows: it is due `min_checkpoint_frequency` after the last flush if
the frontier has moved, or at once when somebody waits for what the frontier has reached. A feed
that had no row between two checkpoints is idle, and its next ones come at the node's pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...kvlayer.span import Span
from ...schemafeed.table_events import TableEvent
from ..contract.changes import CommitTimes, StageTimes
from ..contract.options import ChangefeedOptions
from ..sinks.protocol import Sink, SinkProgress
from .boundary import HIDDEN_CHANGES
from .budget import MemoryBudget
from .holdup import Holdup
from .idle_pace import IdlePace
from .lane import Emission
from .live import LiveFeed, nothing
from .progress import FeedProgress
from .stage_times import Stage

BULK_ROWS_MIN = 1_000
"""A flush of this many rows is bulk: the next one may wait for more, to be worth its commit."""

BULK_ROWS_WANTED = 10_000
BULK_LINGER_SECONDS = 0.01
SCAN_ROWS_WANTED = 50_000
SCAN_LINGER_SECONDS = 0.25

LOOKS_A_PERIOD = 2
"""How often the range feed tells an idle feed of checkpoints, for each that the feed makes."""


def _unspaced(_: float) -> None:
    """No range feed runs yet."""


@dataclass(frozen=True, slots=True)
class _Handed:
    """A batch that the sink was given, without what its rows hold: a sink that has encoded them
    need not keep them. `size` is what it is charged."""

    table_id: int
    keys: Sequence[bytes]
    commits: Sequence[CommitTimes]
    stages: StageTimes
    size: int

    @classmethod
    def of(cls, emission: Emission) -> _Handed:
        batch = emission.batch
        return cls(batch.descriptor.id, batch.keys, emission.commits, batch.stages, emission.size)


class SinkWriter:
    """Feeds one sink. It owns what was emitted and not flushed, and its share of the budget."""

    def __init__(
        self,
        sink: Sink,
        progress: FeedProgress,
        *,
        budget: MemoryBudget,
        live: LiveFeed,
        options: ChangefeedOptions,
        pace: IdlePace,
        on_flushed: Callable[[SinkProgress], None],
        now_ns: Callable[[], int],
        progress_rides: bool = False,
    ) -> None:
        """`progress_rides` says that progress costs the sink nothing where it flushes rows."""
        self._sink = sink
        self._progress = progress
        self._budget = budget
        self._live = live
        self._checkpoint_seconds = options.min_checkpoint_frequency
        self._rides = progress_rides
        self._pace = pace if options.paced_when_idle else None
        self.on_spacing: Callable[[float], None] = _unspaced
        """How far apart the range feed's checkpoints may be."""
        self._stirred = True  # since the last checkpoint
        self._idle = False
        self._on_flushed = on_flushed
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._enough = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._checkpoint_due = False
        self._next_checkpoint_at = self._loop.time()
        self._now_ns = now_ns
        self._unflushed: list[_Handed] = []
        self._flushing: Sequence[_Handed] = ()
        self._unflushed_rows = 0
        self._flushed = asyncio.Event()
        self._rows_behind = 0
        self._in_flush = False
        self._bulk = False
        self._schema_changed = False
        self._ending = False

    def emit(self, emission: Emission) -> None:
        """Hands a batch to the sink, and wakes the writer. Never waits."""
        batch = emission.batch
        self.stir()
        self._sink.emit(batch)
        batch.stages.received = self._now_ns()
        self._live.stages.note_received(emission.commits, batch.stages)
        self._live.rows_emitted += len(batch)
        self._unflushed.append(_Handed.of(emission))
        self._unflushed_rows += len(batch)
        self._rows_behind += len(batch)
        self._wake.set()
        if self._unflushed_rows >= self._rows_wanted:
            self._enough.set()

    async def wait_until_behind(self, rows_max: int) -> None:
        """Returns when at most so many rows were handed to the sink and not flushed."""
        while self._rows_behind > rows_max:
            self._flushed.clear()
            await self._flushed.wait()

    @property
    def resting(self) -> bool:
        """Whether the sink has made durable all that it was given."""
        return not (self._unflushed or self._flushing)

    @property
    def sending(self) -> bool:
        """Whether the sink has still to acknowledge something: rows, or progress."""
        return self._in_flush or not self.resting

    def holdups(self) -> list[Holdup]:
        """The rows that the sink has been given and has not made durable."""
        found = []
        if self._flushing:
            since = self._flushing[0].stages.flushing
            found.append(_held_up(Stage.SINK, self._flushing, since, "the sink makes it durable"))
        if self._unflushed:
            since = self._unflushed[0].stages.received
            found.append(_held_up(Stage.FLUSH, self._unflushed, since, "a flush that runs"))
        return found

    def change_schema(self, event: TableEvent) -> None:
        """Hands a schema event to the sink. What can be seen of it is flushed at once."""
        self.stir()
        self._sink.change_schema(event)
        if event.kinds & ~HIDDEN_CHANGES:
            self._schema_changed = True
            self._wake.set()

    def stir(self) -> None:
        """Wakes the writer: the feed is not idle, or not any more."""
        self._stirred = True
        if self._idle:
            self._leave_idle()
            self._next_checkpoint_at = self._loop.time() + self._checkpoint_seconds
            if self._timer is not None:
                self._timer.cancel()
                self._timer = self._loop.call_at(self._next_checkpoint_at, self._timer_fired)

    def end(self) -> None:
        """Ends emission: `run` flushes what is left and returns."""
        self._ending = True
        self._wake.set()
        self._enough.set()

    async def run(self) -> None:
        """Flushes until `end`. Raises what the sink raises."""
        self._progress.on_change = self._live.on_wait = self._note_progress
        self._note_progress()  # the reader may have begun first
        try:
            while await self._work():
                await self._flush()
        finally:
            self._progress.on_change = self._live.on_wait = nothing
            if self._timer is not None:
                self._timer.cancel()
            if self._idle:
                self._leave_idle()

    @property
    def _rows_wanted(self) -> int:
        return BULK_ROWS_WANTED if self._progress.scan_complete else SCAN_ROWS_WANTED

    @property
    def _linger_seconds(self) -> float:
        return BULK_LINGER_SECONDS if self._progress.scan_complete else SCAN_LINGER_SECONDS

    async def _work(self) -> bool:
        """Waits until a flush is due; False when there will be none."""
        while not self._unflushed:
            if self._schema_changed:
                return True
            if self._progress.dirty and (self._checkpoint_due or self._ending):
                return True
            if self._ending:
                return False
            self._wake.clear()
            await self._wake.wait()
        if self._bulk and self._unflushed_rows >= BULK_ROWS_MIN:
            await self._linger()
        return True

    async def _linger(self) -> None:
        """Waits a little for a bulk load's next rows: large flushes cost a sink far less a row."""
        self._enough.clear()
        if self._ending or self._unflushed_rows >= self._rows_wanted or self._budget.full:
            return
        try:
            async with asyncio.timeout(self._linger_seconds):
                await self._enough.wait()
        except TimeoutError:
            pass

    async def _flush(self) -> None:
        handed, self._unflushed = self._unflushed, []
        self._flushing = handed
        if handed:
            began_ns = self._now_ns()
            for each in handed:
                each.stages.flushing = began_ns
        rows, self._unflushed_rows = self._unflushed_rows, 0
        self._schema_changed = False
        claimed = self._claim_progress(along=bool(handed) and self._rides and not self._bulk)
        self._in_flush = True
        await self._live.answered(self._sink.flush(claimed))
        sunk_ns = self._now_ns()
        self._in_flush = False
        self._flushing = ()
        self._rows_behind -= rows
        self._live.rows_sunk += rows
        self._flushed.set()
        self._bulk = rows >= BULK_ROWS_MIN
        if claimed is not None:
            self._progress.note_flushed(claimed)
            self._live.note_flushed(claimed)
            self._on_flushed(claimed)
        released = 0
        for each in handed:
            released += each.size
            each.stages.sunk = each.stages.sunk or sunk_ns
            self._live.stages.note_sunk(each.commits, each.stages)
        self._budget.release(released)

    def _claim_progress(self, *, along: bool) -> SinkProgress | None:
        """The progress that a flush of everything emitted may claim; None while none is due.

        Called in the step that takes the rows: all at or below it is in this flush or an earlier
        one. Rows alone are flushed without it: a transactional sink knows a replay of them by their
        timestamps, and a quarter of a lone row's commit is its progress. It goes `along` where that
        costs nothing, and its own flush costs a way there and back.
        """
        if not (self._checkpoint_due or self._ending or along):
            return None
        self._checkpoint_due = False
        self._next_checkpoint_at = self._loop.time() + self._period()
        captured = self._progress.capture()
        return None if captured is self._progress.flushed else captured

    def _period(self) -> float:
        """Seconds until the next checkpoint, one being made now."""
        stirred, self._stirred = self._stirred, self._live.awaited is not None
        if self._pace is None or stirred:
            return self._checkpoint_seconds
        if not self._idle:
            self._idle = True
            self._pace.enter()
        seconds = max(self._checkpoint_seconds, self._pace.seconds)
        stretched = seconds > self._checkpoint_seconds
        self._live.paced_seconds = seconds if stretched else 0.0
        self.on_spacing(seconds / LOOKS_A_PERIOD if stretched else 0.0)
        return seconds

    def _leave_idle(self) -> None:
        assert self._pace is not None, "idle at no pace"
        self._idle = False
        self._pace.leave()
        self._live.paced_seconds = 0.0
        self.on_spacing(0.0)

    def _note_progress(self) -> None:
        """The frontier moved, or somebody waits: a checkpoint is due now, or in its time."""
        awaited = self._live.awaited
        waiting = awaited is not None and self._live.resolved < awaited
        if waiting:
            self.stir()
        if awaited is not None and waiting and awaited <= self._progress.resolved:
            self._checkpoint_due = True
            self._wake.set()
        elif self._timer is None:
            self._timer = self._loop.call_at(self._next_checkpoint_at, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        if self._loop.time() < self._next_checkpoint_at:  # progress went along with rows meanwhile
            self._timer = self._loop.call_at(self._next_checkpoint_at, self._timer_fired)
            return
        self._checkpoint_due = True
        self._wake.set()


def _held_up(stage: Stage, handed: Sequence[_Handed], since_ns: int, why: str) -> Holdup:
    oldest = handed[0]
    return Holdup(
        stage=stage,
        batches=len(handed),
        since_ns=since_ns,
        table_id=oldest.table_id,
        span=Span.of_keys(oldest.keys),
        why=why,
    )
