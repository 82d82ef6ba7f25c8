"""Live feeds: what the process that runs a changefeed knows of it, across its retries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol, TypeVar

from ...catalog.descriptors.descriptor import TableDescriptor
from ...error import Error
from ...kvlayer.clock import ZERO, Timestamp, duration, format_timestamp, seconds_between
from ..contract.changes import ChangeBatch, StageTimes
from ..sinks.protocol import SinkProgress
from ..targets import Versions
from .holdup import Holdup
from .lag_split import LagSplit
from .rate import Rate
from .stage_times import StageRecorder

T = TypeVar("T")

SINK_TOLD_SECONDS = 3.0
"""The running status tells of a sink that has been asked for so long and has not answered."""


class FeedState(Enum):
    """The states of a feed. The value is the word of SHOW CHANGEFEED JOBS."""

    WAITING = "waiting to run"  # not claimed here yet, or not any more
    STARTING = "starting"  # opens its sink and reads its progress
    INITIAL_SCAN = "initial scan"  # reads the tables as of its start
    CATCH_UP = "catching up"  # reads what was committed while it was away
    BACKFILL = "backfill"  # shows rows as of a schema change, beside the live ones
    STEADY = "running"  # follows commits as they become durable
    BACKOFF = "retrying"  # failed, and waits before it tries again
    STOPPED = "stopped"  # has ended; a wait for it fails


class FeedStopped(Error):
    """The feed ended before it had got as far as was waited for."""


class NotTaken(Exception):
    """The feed takes no rows again: it does not run here, or was at a schema change all the
    time."""


class SendAgain(Protocol):
    """Emits rows as they were at one time, stamped with it."""

    def __call__(
        self,
        versions: Versions,
        descriptor: TableDescriptor,
        own: Sequence[Timestamp] | None = None,
    ) -> StageTimes | None:
        """The batch's stages: it is durable in the sink once it is `sunk`, which it will not be
        where the attempt ends before. None, and nothing is emitted, where the pipeline has passed
        that time, or stands under another schema of the table. `own` are the versions' own
        timestamps."""
        ...


FRESH_SECONDS = 0.01
"""No further behind, a sink is as fresh as the store closes timestamps."""

FRESHEN_SECONDS_MAX = 0.1
"""Some thirty times what a checkpoint takes."""


def nowhere() -> Timestamp | None:
    """No pipeline runs."""
    return None


def nothing() -> None:
    """Nobody listens."""


def no_split(now: Timestamp) -> LagSplit | None:
    """No pipeline runs."""
    return None


def no_holdups(now: Timestamp) -> list[Holdup]:
    """No pipeline runs."""
    return []


class LiveFeed:
    """The state of one feed, its latencies, and those who wait for it.

    It outlives the pipeline: a wait goes on while the feed retries.
    """

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        self.state = FeedState.WAITING
        self.stages = StageRecorder()
        self.rows_emitted = 0
        self.rows_sunk = 0
        """Rows that are durable in the sink."""
        self.attempts = 0
        self.slo_breaches = 0
        self.scanned_rows = 0
        self.scanned_bytes = 0
        self.advance = Rate()
        """The speed of the resolved timestamp: its seconds a second."""
        self.scan_rate = Rate()
        """The growth of `scanned_bytes`."""
        self.row_rate = Rate()
        """The growth of `rows_sunk`."""
        self.lag_split: Callable[[Timestamp], LagSplit | None] = no_split
        """The running pipeline's: where its lag as of now arises, None while nothing is read."""
        self.holdups: Callable[[Timestamp], list[Holdup]] = no_holdups
        """The running pipeline's: the rows that wait in it, as of a timestamp of now."""
        self.backfills = 0
        """The number of tables that show their rows as of a schema change."""
        self.paced_seconds = 0.0
        """Between checkpoints, where the node has so many idle feeds that they come less often."""
        self.last_error: str | None = None
        self.trouble: str | None = None
        """The error for which the sink tries something again, or the feed does: it may pass."""
        self.progress: SinkProgress | None = None
        self.send_again: SendAgain | None = None
        """The running pipeline's."""
        self.send_to_log: Callable[[ChangeBatch], bool] | None = None
        """The running pipeline's: emits changes that a log lacks, or says that it does not. They
        are durable once the batch's stages are `sunk`, which they will not be where the attempt
        ends before."""
        self.reached: Callable[[], Timestamp | None] = nowhere
        """The running pipeline's: what a checkpoint would resolve now, None while rows are on
        their way to the sink."""
        self.on_wait: Callable[[], None] = nothing
        self._waiters: list[tuple[Timestamp, int, asyncio.Future[None]]] = []
        self._tickets = count()
        self._sink_asked_at: float | None = None
        """The time of the loop at which the sink was asked for what it has not answered yet."""

    @property
    def resolved(self) -> Timestamp:
        """The timestamp at or below which all rows are durable in the sink."""
        return ZERO if self.progress is None else self.progress.resolved

    @property
    def awaited(self) -> Timestamp | None:
        """The least timestamp that somebody waits for."""
        return self._waiters[0][0] if self._waiters else None

    @property
    def here(self) -> bool:
        """Whether this node runs it, or tries to."""
        return self.state not in (FeedState.WAITING, FeedState.STOPPED)

    @property
    def ended(self) -> bool:
        return self.state is FeedState.STOPPED

    def note_trouble(self, words: str | None) -> None:
        """Notes the words of a sink that tries again by itself."""
        self.trouble = words

    async def answered(self, asked: Awaitable[T]) -> T:
        """Returns what the sink answers. Until then the running status tells of what was asked."""
        self._sink_asked_at = asyncio.get_running_loop().time()
        try:
            return await asked
        finally:
            self._sink_asked_at = None

    def describe(self, now: Timestamp, resolved: Timestamp, sink: str) -> str:
        """The running status: what the feed does, how far behind `now` it is, and what keeps it.

        The lag is that of `resolved`, whatever the state: a feed that retries falls behind too.
        `sink` is the URI as anybody may see it.
        """
        lag = f"{max(0.0, seconds_between(resolved, now)):.3f} s behind"
        keeps = self.trouble or self._silence(sink)
        trouble = f": {keeps}" if keeps else ""
        state = self.state
        if self.backfills and state is FeedState.STEADY:
            state = FeedState.BACKFILL
        match state:
            case FeedState.INITIAL_SCAN | FeedState.BACKFILL:
                return f"{state.value}: {self.scanned_rows} rows, {lag}{trouble}"
            case FeedState.BACKOFF:
                return f"{self.state.value}: {lag}: {self.last_error}"
            case FeedState.STEADY if self.paced_seconds:
                pace = f"checkpoint every {self.paced_seconds:.1f} s"
                return f"{self.state.value}: {lag}, {pace}{trouble}"
            case _:
                return f"{self.state.value}: {lag}{trouble}"

    def _silence(self, sink: str) -> str | None:
        """The words for a sink that has not answered for `SINK_TOLD_SECONDS`."""
        if self._sink_asked_at is None:
            return None
        seconds = asyncio.get_running_loop().time() - self._sink_asked_at
        return f"waiting for {sink} for {seconds:.0f} s" if seconds >= SINK_TOLD_SECONDS else None

    async def wait_until(self, timestamp: Timestamp) -> None:
        """Returns when the sink holds everything committed at or below `timestamp`.

        Raises FeedStopped when the feed ends before that.
        """
        if self.resolved >= timestamp:
            return
        if self.state is FeedState.STOPPED:
            raise self._stopped()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (timestamp, next(self._tickets), waiter)
        heappush(self._waiters, entry)
        self.on_wait()
        try:
            await waiter
        finally:
            if entry in self._waiters:  # it was cancelled
                self._waiters.remove(entry)
                heapify(self._waiters)

    async def freshen(self) -> None:
        """Makes an idle feed's resolved timestamp durable as of now, for who looks at its sink.

        A sink that takes longer than `FRESHEN_SECONDS_MAX` is not waited for, nor one that has rows
        to write: those bring their progress.
        """
        reached = self.reached()
        if reached is None or seconds_between(self.resolved, reached) < FRESH_SECONDS:
            return
        waiting = asyncio.ensure_future(self.wait_until(reached))
        try:
            await asyncio.wait((waiting,), timeout=FRESHEN_SECONDS_MAX)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    def note_flushed(self, progress: SinkProgress) -> None:
        """`progress` is durable in the sink, with everything that it covers."""
        self.progress = progress
        self._note_rates(progress)
        while self._waiters and self._waiters[0][0] <= progress.resolved:
            waiter = heappop(self._waiters)[2]
            if not waiter.done():
                waiter.set_result(None)

    def begin_attempt(self) -> None:
        """The feed starts again: how fast it came on before says nothing."""
        self.state = FeedState.STARTING
        self.attempts += 1
        self.trouble = None
        self.advance.clear()
        self.scan_rate.clear()
        self.row_rate.clear()

    def _note_rates(self, progress: SinkProgress) -> None:
        at = asyncio.get_running_loop().time()
        if progress.resolved > ZERO:
            self.advance.note(at, progress.resolved / duration(seconds=1))
        self.scan_rate.note(at, self.scanned_bytes)
        self.row_rate.note(at, self.rows_sunk)

    def stop(self) -> None:
        """The feed has ended, for whatever reason."""
        self.state = FeedState.STOPPED
        for _, _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(self._stopped())
        self._waiters.clear()

    def _stopped(self) -> FeedStopped:
        why = f": {self.last_error}" if self.last_error else ""
        return FeedStopped(
            f"changefeed {self.job_id} stopped at resolved {format_timestamp(self.resolved)}{why}"
        )
