"""The load of a range, and the key that would halve it.

Source: CockroachDB's load-based splitting (`split/finder.go`): keep a few of the keys that were
asked for, and split where as many lie to the left as to the right.
"""

from __future__ import annotations

from random import Random

SAMPLES = 20
"""Keys kept of a window: enough to see whether a border would divide the load."""

SIDE_MIN = SAMPLES // 4
"""Samples that must lie on either side of a border, or the split would not divide the load."""

SMOOTHING = 0.5
"""What the newest window counts for in a rate. Older ones share the rest."""


class RangeLoad:
    """Reads and writes of one range: counted always, turned into rates when a window ends.

    Keys are sampled by reservoir, the n-th operation of a window with probability `SAMPLES / n`.
    To keep that off the hot path, the operation that is sampled next is drawn in advance.
    """

    __slots__ = (
        "_counted",
        "_next_sample",
        "_random",
        "_samples",
        "read_count",
        "reads_per_second",
        "write_count",
        "writes_per_second",
    )

    def __init__(self, random: Random) -> None:
        self._random = random
        self._samples: list[bytes] = []
        self._counted = 0
        self._next_sample = 0
        self.read_count = 0
        self.write_count = 0
        self.reads_per_second = 0.0
        self.writes_per_second = 0.0

    @property
    def per_second(self) -> float:
        return self.reads_per_second + self.writes_per_second

    def note_read(self, key: bytes) -> None:
        """A key was read, or a span that begins there."""
        self.read_count += 1
        self._counted += 1
        if self._counted > self._next_sample:
            self._sample(key)

    def note_reads(self, key: bytes, count: int) -> None:
        """`count` keys were read, `key` among them."""
        self.read_count += count
        self._counted += count
        if self._counted > self._next_sample:
            self._sample(key)

    def note_writes(self, key: bytes, count: int) -> None:
        """`count` keys were written, `key` among them."""
        self.write_count += count
        self._counted += count
        if self._counted > self._next_sample:
            self._sample(key)

    def end_window(self, seconds: float) -> None:
        """Turns what was counted in the last `seconds` into rates, and begins anew."""
        self.reads_per_second = _smoothed(self.reads_per_second, self.read_count / seconds)
        self.writes_per_second = _smoothed(self.writes_per_second, self.write_count / seconds)
        self.read_count = self.write_count = self._counted = self._next_sample = 0
        self._samples.clear()

    def split_key(self) -> bytes | None:
        """The key at which a split would divide the window's load, if there is one."""
        samples = sorted(self._samples)
        if len(samples) < SAMPLES:
            return None
        middle = samples[len(samples) // 2]
        left = sum(key < middle for key in samples)
        return middle if SIDE_MIN <= left <= SAMPLES - SIDE_MIN else None

    def share(self, parts: int) -> RangeLoad:
        """The load of one of the `parts` that the range is split into, before it is known."""
        load = RangeLoad(self._random)
        load.reads_per_second = self.reads_per_second / parts
        load.writes_per_second = self.writes_per_second / parts
        return load

    def joined(self, other: RangeLoad) -> RangeLoad:
        """The load of both."""
        load = RangeLoad(self._random)
        load.reads_per_second = self.reads_per_second + other.reads_per_second
        load.writes_per_second = self.writes_per_second + other.writes_per_second
        return load

    def _sample(self, key: bytes) -> None:
        if len(self._samples) < SAMPLES:
            self._samples.append(key)
            self._next_sample = self._counted
            return
        self._samples[self._random.randrange(SAMPLES)] = key
        # The gap to the next sample, about as reservoir sampling would leave it.
        gap = self._counted / SAMPLES
        self._next_sample = self._counted + 1 + int(self._random.random() * 2 * gap)


def _smoothed(rate: float, newest: float) -> float:
    return rate + SMOOTHING * (newest - rate)
