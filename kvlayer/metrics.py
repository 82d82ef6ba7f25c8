"""Metrics: counters and gauges by name, each declared beside the code that moves it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator


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
