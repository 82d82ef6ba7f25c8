"""Range tombstones: that all keys of a span were deleted, said once and not key by key.

    tombstones     [a, m)@120   [f, z)@150   [c, d)@90
    fragments      [a, c) 120   [c, d) 90 120   [d, f) 120   [f, m) 120 150   [m, z) 150

    newest(g, 200) = 150     newest(g, 130) = 120     newest(g, 100) = nothing

A tombstone hides every version below its timestamp. A version at the very same timestamp was
written by the same transaction behind the deletion, and is not hidden. The engine holds a tombstone
as one entry, under a prefix of its own; nothing is written for the keys below, however many they
are. So whoever reads versions must ask here as well, and nearly always there is nobody to ask: a
state without tombstones is `NO_TOMBSTONES`, the very object, and costs a reader that one look.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from . import keys
from .clock import ZERO, Timestamp
from .span import Span, prefix_end

_PLAIN, _OMITTED = b"\x00", b"\x02"


@dataclass(frozen=True, slots=True)
class RangeTombstone:
    """Every key of `span` was deleted at `timestamp`. Feeds leave it out when it is `omitted`."""

    span: Span
    timestamp: Timestamp
    omitted: bool = False

    @property
    def engine_key(self) -> bytes:
        return keys.RANGE_TOMBSTONE + self.span.start + keys.inverted(self.timestamp)

    @property
    def engine_value(self) -> bytes:
        return (_OMITTED if self.omitted else _PLAIN) + self.span.end

    @classmethod
    def decode(cls, engine_key: bytes, value: bytes) -> RangeTombstone:
        start, ts = keys.split_version_key(engine_key)
        return cls(Span(start, value[1:]), ts, value[:1] == _OMITTED)

    def outside(self, span: Span) -> list[RangeTombstone]:
        """The parts of the tombstone outside `span`."""
        parts = self.span.minus(span)
        return [RangeTombstone(part, self.timestamp, self.omitted) for part in parts]


class _Scanned(Protocol):
    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]: ...


class RangeTombstones:
    """The range tombstones of one state of an engine. It never changes: a new state has another.

    So a snapshot that was taken before garbage collection removed a tombstone, and what it hid,
    still has both.
    """

    __slots__ = ("_stacks", "_starts", "_tombstones")

    def __init__(self, tombstones: tuple[RangeTombstone, ...] = ()) -> None:
        self._tombstones = tuple(sorted(tombstones, key=lambda found: found.timestamp))
        borders = {border for found in tombstones for border in (found.span.start, found.span.end)}
        # Fragments begin at each border; the last one is empty and has no end.
        self._starts = sorted(borders)
        places = {border: place for place, border in enumerate(self._starts)}
        self._stacks: list[list[Timestamp]] = [[] for _ in self._starts]
        for found in self._tombstones:
            for place in range(places[found.span.start], places[found.span.end]):
                self._stacks[place].append(found.timestamp)

    @classmethod
    def load(cls, reader: _Scanned) -> RangeTombstones:
        """The range tombstones that the engine holds."""
        prefix = keys.RANGE_TOMBSTONE
        entries = reader.scan(prefix, prefix_end(prefix))
        found = tuple(RangeTombstone.decode(key, value) for key, value in entries)
        return cls(found) if found else NO_TOMBSTONES

    def __bool__(self) -> bool:
        return bool(self._tombstones)

    def __len__(self) -> int:
        return len(self._tombstones)

    @property
    def last(self) -> Timestamp:
        """The timestamp of the newest of them; zero if there are none."""
        return self._tombstones[-1].timestamp if self._tombstones else ZERO

    def newest(self, key: bytes, at: Timestamp) -> Timestamp | None:
        """When the key was last deleted by a range tombstone at or below `at`."""
        place = bisect_right(self._starts, key) - 1
        if place < 0:
            return None
        stack = self._stacks[place]
        below = bisect_right(stack, at)
        return stack[below - 1] if below else None

    def hides(self, key: bytes, version: Timestamp, at: Timestamp) -> bool:
        """Whether a reader at `at` does not see that version of the key."""
        newest = self.newest(key, at)
        return newest is not None and newest > version

    def over(self, span: Span, at: Timestamp) -> RangeTombstones | None:
        """Itself when any tombstone matters to a reader of `span` at `at`; else None."""
        if not self._tombstones:
            return None
        matters = (found.timestamp <= at and found.span.overlaps(span) for found in self)
        return self if any(matters) else None

    def within(self, span: Span, after: Timestamp, upto: Timestamp) -> list[RangeTombstone]:
        """The parts in `span` of the tombstones in `(after, upto]`, in order of time."""
        parts: list[RangeTombstone] = []
        for found in self._tombstones:
            shared = found.span.intersect(span)
            if shared is not None and after < found.timestamp <= upto:
                parts.append(RangeTombstone(shared, found.timestamp, found.omitted))
        return parts

    def __iter__(self) -> Iterator[RangeTombstone]:
        """In order of time."""
        return iter(self._tombstones)

    def __repr__(self) -> str:
        return f"<RangeTombstones {len(self._tombstones)}>"


NO_TOMBSTONES = RangeTombstones()
