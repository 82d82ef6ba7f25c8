"""Metrics: counters and gauges by name, and histograms of durations."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence

DURATION_BOUNDS_NS = tuple(
    round(step * 10**decade) for decade in range(5, 10) for step in (1, 1.5, 2.5, 4, 6)
)
"""Upper bounds from 0.1 ms to 6 s, each about half as much again as the one before."""


class Histogram:
    """Counts of durations, in nanoseconds, by upper bound; the last count is of all above."""

    __slots__ = ("bounds", "count", "counts", "sum")

    def __init__(self, bounds: Sequence[int] = DURATION_BOUNDS_NS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.count = 0
        self.sum = 0

    def observe(self, duration_ns: int) -> None:
        self.counts[bisect_left(self.bounds, duration_ns)] += 1
        self.count += 1
        self.sum += duration_ns

    def cumulative(self) -> Iterator[tuple[int, int]]:
        """Each bound, and how many durations were at or below it."""
        total = 0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            total += count
            yield bound, total


class Metrics:
    """The counters and gauges of one store. Names are Prometheus names without a prefix."""

    def __init__(self) -> None:
        self._values: dict[str, float] = defaultdict(float)

    def add(self, name: str, amount: float = 1.0) -> None:
        self._values[name] += amount

    def put(self, name: str, value: float) -> None:
        self._values[name] = value

    def get(self, name: str) -> float:
        return self._values.get(name, 0.0)

    def items(self) -> Iterator[tuple[str, float]]:
        return iter(sorted(self._values.items()))
