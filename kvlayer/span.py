"""Spans: half-open intervals of keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The keys `k` with `start <= k < end`. Never empty.

    >>> Span(b"a", b"c").contains(b"b")
    True
    >>> Span(b"a", b"c").intersect(Span(b"b", b"z"))
    Span(start=b'b', end=b'c')
    """

    start: bytes
    end: bytes

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"span is empty or inverted: [{self.start!r}, {self.end!r})")

    @classmethod
    def point(cls, key: bytes) -> Span:
        """The span that holds `key` alone."""
        return cls(key, key + b"\x00")

    @classmethod
    def prefix(cls, prefix: bytes) -> Span:
        """The span of all keys that begin with `prefix`."""
        return cls(prefix, prefix_end(prefix))

    @classmethod
    def of_keys(cls, keys: Sequence[bytes]) -> Span:
        """The least span that holds the keys."""
        return cls(min(keys), max(keys) + b"\x00")

    def contains(self, key: bytes) -> bool:
        return self.start <= key < self.end

    def covers(self, other: Span) -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end

    def touches(self, other: Span) -> bool:
        """Whether the two make one span together."""
        return self.start <= other.end and other.start <= self.end

    def minus(self, other: Span) -> list[Span]:
        """The keys that are not in `other`: none, one or two spans."""
        parts = [(self.start, min(self.end, other.start)), (max(self.start, other.end), self.end)]
        return [Span(start, end) for start, end in parts if start < end]

    def intersect(self, other: Span) -> Span | None:
        """The keys in both, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Span(start, end) if start < end else None


def subtract(span: Span, holes: Iterable[Span]) -> list[Span]:
    """The parts of `span` outside the `holes`, which come in order of their starts.

    >>> subtract(Span(b"a", b"z"), [Span(b"c", b"d"), Span(b"x", b"zz")])
    [Span(start=b'a', end=b'c'), Span(start=b'd', end=b'x')]
    """
    left: list[Span] = []
    start = span.start
    for hole in holes:
        if hole.start >= span.end:
            break
        if hole.start > start:
            left.append(Span(start, hole.start))
        start = max(start, hole.end)
    if start < span.end:
        left.append(Span(start, span.end))
    return left


def prefix_end(prefix: bytes) -> bytes:
    """The least key above every key that begins with `prefix`.

    Raises ValueError when there is none (an empty prefix, or all 0xff).
    """
    stripped = prefix.rstrip(b"\xff")
    if not stripped:
        raise ValueError(f"no key is above every key with prefix {prefix!r}")
    return stripped[:-1] + bytes((stripped[-1] + 1,))


EVERYTHING = Span(b"", b"\xff")
"""The span of all keys."""
