"""Stage times: how long commits took to reach each stage of a feed.

A commit's clock starts when `commit` is called. *Emit* is the time until the sink has received its
rows, *sink* the time until they are durable there; the stages between explain the two. Scans and
catch-up have no commit to measure from, and are not counted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from ...kvlayer.metrics import Histogram
from ..contract.changes import StageTimes

SAMPLES_MAX = 16_384
"""Per stage: enough for a p99 of many runs, and 128 KiB a stage of a feed."""

NS_PER_MS = 1_000_000


class Stage(Enum):
    """A stage, measured from the call of commit until the rows have passed it."""

    DURABLE = "durable"  # the log is synced
    GATED = "gated"  # the schema is proven
    DECODED = "decoded"  # bytes are columns
    EMIT = "emit"  # the sink has them
    SINK = "sink"  # the sink has made them durable


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The recent latencies of one stage, in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    max: float


class StageRecorder:
    """Keeps the latest latencies of one feed, a bounded number for each stage."""

    def __init__(self, samples_max: int = SAMPLES_MAX) -> None:
        self._samples: dict[Stage, deque[int]] = {
            stage: deque(maxlen=samples_max) for stage in Stage
        }
        # At hand, since each commit adds to all of them and an Enum is slow to hash.
        self._in_order = tuple(self._samples[stage] for stage in Stage)
        self.emit = Histogram()
        """Of all commits ever; who looks again and again sees by its count what is new."""
        self.sink = Histogram()

    def note_received(self, commits: Sequence[tuple[int, int]], stages: StageTimes) -> None:
        """The sink has received the last rows of `commits`: (called, durable) each, in ns."""
        durables, gated, decoded, received, _ = self._in_order
        for called, durable in commits:
            if called:
                durables.append(durable - called)
                gated.append(stages.gated - called)
                decoded.append(stages.decoded - called)
                received.append(stages.received - called)
                self.emit.observe(stages.received - called)

    def note_sunk(self, commits: Sequence[tuple[int, int]], stages: StageTimes) -> None:
        """Those rows are durable in the sink."""
        sunk = self._in_order[-1]
        for called, _ in commits:
            if called:
                sunk.append(stages.sunk - called)
                self.sink.observe(stages.sunk - called)

    def samples_ns(self, stage: Stage, *, latest: int | None = None) -> list[int]:
        """The latencies kept for `stage`, oldest first: all, or the `latest` so many."""
        samples = self._samples[stage]
        if latest is None or latest >= len(samples):
            return list(samples)
        newest = list(islice(reversed(samples), latest))
        newest.reverse()
        return newest

    def latency(self, stage: Stage, *, latest: int | None = None) -> Latency | None:
        """A summary of `stage`, or None when nothing was measured."""
        return summarize(self.samples_ns(stage, latest=latest))

    def clear(self) -> None:
        """Forgets every sample: a new measurement begins."""
        for samples in self._samples.values():
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
