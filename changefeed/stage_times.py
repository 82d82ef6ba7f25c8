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

from .changes import StageTimes

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

    def note_received(self, commits: Sequence[tuple[int, int]], stages: StageTimes) -> None:
        """The sink has received the last rows of `commits`: (called, durable) each, in ns."""
        samples = self._samples
        for called, durable in commits:
            if called:
                samples[Stage.DURABLE].append(durable - called)
                samples[Stage.GATED].append(stages.gated - called)
                samples[Stage.DECODED].append(stages.decoded - called)
                samples[Stage.EMIT].append(stages.received - called)

    def note_sunk(self, commits: Sequence[tuple[int, int]], stages: StageTimes) -> None:
        """Those rows are durable in the sink."""
        sunk = self._samples[Stage.SINK]
        sunk.extend([stages.sunk - called for called, _ in commits if called])

    def samples_ns(self, stage: Stage) -> list[int]:
        """The latencies kept for `stage`, oldest first."""
        return list(self._samples[stage])

    def latency(self, stage: Stage) -> Latency | None:
        """A summary of `stage`, or None when nothing was measured."""
        return summarize(self.samples_ns(stage))

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
