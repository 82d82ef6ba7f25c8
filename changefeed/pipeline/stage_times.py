"""Stage times: how long commits took to reach a feed's sink, and which stage took how much of it.

    commit   log   range feed   gate   decode   encode   flush   sink
    |------|-----|------------|------|--------|--------|-------|------|
    called         durable                             emit           sink

A commit's clock starts when `commit` is called. *Emit* is the time until the sink has received its
rows, *sink* the time until they are durable there, and the stages add up to it. Scans and catch-up
have no commit to measure from, and are not counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from ...kvlayer.metrics import Histogram
from ..contract.changes import CommitTimes, StageTimes

SAMPLES_MAX = 16_384
"""Samples of each milestone: enough for a p99 of many runs, in 640 KiB for each milestone of a
feed."""

STAGE_SAMPLES_MAX = 2_048
"""Samples of each stage: they explain the latest commits, in 80 KiB a stage."""

NS_PER_MS = 1_000_000


class Milestone(Enum):
    """Measured from the call of commit until the rows have come there."""

    DURABLE = "durable"  # the log is synced
    EMIT = "emit"  # the sink has them
    SINK = "sink"  # the sink has made them durable


class Stage(Enum):
    """The stages that a commit's rows pass, in order. The value is the word of SHOW CHANGEFEED
    LATENCY."""

    COMMIT = "commit"  # evaluated, and in the log's buffer
    LOG = "log"  # synced
    RANGE_FEED = "range feed"  # on their way to the pipeline
    GATE = "gate"  # until their schema is proven, with what was ahead of them in the lane
    DECODE = "decode"  # bytes become columns
    ENCODE = "encode"  # what the sink does to take them: messages are made here
    FLUSH = "flush"  # until the flush before has ended
    SINK = "sink"  # until they are durable in the sink


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Recent latencies, in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    max: float


class StageRecorder:
    """Keeps the latest latencies of one feed, a bounded number for each stage and milestone."""

    def __init__(self, samples_max: int = SAMPLES_MAX) -> None:
        self._milestones = {each: deque[int](maxlen=samples_max) for each in Milestone}
        self._stages = {each: deque[int](maxlen=STAGE_SAMPLES_MAX) for each in Stage}
        # At hand, since each commit adds to all of them and an Enum is slow to hash.
        self._reached = tuple(self._milestones.values())
        self._passed = tuple(self._stages.values())
        self.emit = Histogram()
        """Latencies of all commits; a reader that comes again sees by the count what is new."""
        self.sink = Histogram()

    def note_received(self, commits: Sequence[CommitTimes], stages: StageTimes) -> None:
        """The sink has received the last rows of `commits`."""
        durables, emits, _ = self._reached
        commit, log, range_feed, gate, decode, encode, _, _ = self._passed
        gated, decoded, received = stages.gated, stages.decoded, stages.received
        for called, appended, durable, arrived in commits:
            if called:
                commit.append(appended - called)
                log.append(durable - appended)
                range_feed.append(arrived - durable)
                gate.append(gated - arrived)
                decode.append(decoded - gated)
                encode.append(received - decoded)
                durables.append(durable - called)
                emits.append(received - called)
                self.emit.observe(received - called)

    def note_sunk(self, commits: Sequence[CommitTimes], stages: StageTimes) -> None:
        """Notes that the rows of `commits` are durable in the sink."""
        _, _, sinks = self._reached
        *_, flush, sink = self._passed
        sunk, waited = stages.sunk, stages.flushing - stages.received
        for commit in commits:
            called = commit[0]
            if called:
                flush.append(waited)
                sink.append(sunk - stages.flushing)
                sinks.append(sunk - called)
                self.sink.observe(sunk - called)

    def samples_ns(self, of: Milestone | Stage, *, latest: int | None = None) -> list[int]:
        """The latencies kept, oldest first: all, or the `latest` so many."""
        samples = self._milestones[of] if isinstance(of, Milestone) else self._stages[of]
        if latest is None or latest >= len(samples):
            return list(samples)
        newest = list(islice(reversed(samples), latest))
        newest.reverse()
        return newest

    def latency(self, of: Milestone | Stage, *, latest: int | None = None) -> Latency | None:
        """A summary, or None when nothing was measured."""
        return summarize(self.samples_ns(of, latest=latest))

    def clear(self) -> None:
        """Forgets every sample: a new measurement begins."""
        for samples in (*self._reached, *self._passed):
            samples.clear()


def summarize(samples_ns: Sequence[int]) -> Latency | None:
    """Percentiles by nearest rank, so that each is a latency that occurred."""
    if not samples_ns:
        return None
    ordered = sorted(samples_ns)

    def rank(fraction: float) -> float:
        return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)] / NS_PER_MS

    return Latency(
        count=len(ordered), p50=rank(0.50), p95=rank(0.95), p99=rank(0.99), max=rank(1.0)
    )
