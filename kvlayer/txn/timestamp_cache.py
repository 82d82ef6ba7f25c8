"""The timestamp cache: what was read and when, so that no write lands under a read."""

from __future__ import annotations

from collections.abc import Collection

from ..clock import ZERO, Timestamp
from ..span import Span

POINTS_MAX = 8192
SPANS_MAX = 256
"""Spans are looked through one by one at each write; points are looked up."""

NOBODY = b""
"""The owner of a read that was made outside a transaction, or by two of them."""


class TimestampCache:
    """Reads as (key or span, timestamp, owner), where an owner is a transaction.

    The promise: a write of a transaction other than the owner, at or below the timestamp of a read
    of its key, is refused by `blocks`. Above its bounds the cache forgets everything and remembers
    the greatest timestamp that it forgot as `low_water`: it then refuses more than it must.

    It is raised in the step that reads, before anything is released, and over the *whole* span of
    a sliced read before its first slice.
    """

    def __init__(self) -> None:
        self.low_water = ZERO
        self._points: dict[bytes, tuple[Timestamp, bytes]] = {}
        self._spans: dict[Span, tuple[Timestamp, bytes]] = {}

    def add_point(self, key: bytes, at: Timestamp, owner: bytes) -> None:
        self._points[key] = _later(self._points.get(key), at, owner)
        if len(self._points) > POINTS_MAX:
            self._forget()

    def add_span(self, span: Span, at: Timestamp, owner: bytes) -> None:
        self._spans[span] = _later(self._spans.get(span), at, owner)
        if len(self._spans) > SPANS_MAX:
            self._forget()

    def blocks(self, written: Collection[bytes], at: Timestamp, owner: bytes) -> bool:
        """Whether somebody other than `owner` may have read one of the keys at or above `at`."""
        if at <= self.low_water:
            return True
        points = self._points
        if points:
            for key in written:
                read = points.get(key)
                if read is not None and read[0] >= at and read[1] != owner:
                    return True
        if not self._spans or not written:
            return False
        low, high = min(written), max(written)
        for span, (read_at, reader) in self._spans.items():
            if read_at < at or reader == owner or span.end <= low or span.start > high:
                continue
            if any(span.start <= key < span.end for key in written):
                return True
        return False

    def clear(self) -> None:
        """Forgets everything, when nobody is left who could write below the clock."""
        self._points.clear()
        self._spans.clear()

    def _forget(self) -> None:
        for reads in (self._points, self._spans):
            for at, _ in reads.values():
                self.low_water = max(self.low_water, at)
        self.clear()

    def __len__(self) -> int:
        return len(self._points) + len(self._spans)


def _later(
    known: tuple[Timestamp, bytes] | None, at: Timestamp, owner: bytes
) -> tuple[Timestamp, bytes]:
    """The read that blocks more. An owner's own reads are never above its writes, so that one
    owner is enough: a read below another's blocks nobody whom that one does not block."""
    if known is None or at > known[0]:
        return at, owner
    if at == known[0] and owner != known[1]:
        return at, NOBODY
    return known
