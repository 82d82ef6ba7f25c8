"""The frontier of a set of spans: how far each part has come.

Frontier([a, z) at 10)             [a, z)@10                       low water 10
forward([c, f), 12)                [a, c)@10 [c, f)@12 [f, z)@10   low water 10
forward([a, d), 12)                [a, f)@12 [f, z)@10             low water 10
forward([f, zz), 15) -> True       [a, f)@12 [f, z)@15             low water 12
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush

from sortedcontainers import SortedDict

from .clock import ZERO, Timestamp
from .span import Span

STALE_MAX = 64
"""The heap is rebuilt when it holds this many entries more than two for each interval."""

Entries = Sequence[tuple[Span, Timestamp]]
"""Spans in key order that do not overlap, and how far each has come."""


def part_of(entries: Entries, span: Span) -> list[tuple[Span, Timestamp]]:
    """The part of the entries that lies in `span`. It is found without looking at the others."""
    first, behind = _places(entries, span)
    return [(_shared(part, span), at) for part, at in entries[first:behind]]


def without(entries: Entries, span: Span) -> list[tuple[Span, Timestamp]]:
    """The entries outside of `span`."""
    return with_part(entries, span, [])


def with_part(entries: Entries, span: Span, part: Entries) -> list[tuple[Span, Timestamp]]:
    """The entries, with `part` in place of what lies in `span`."""
    first, behind = _places(entries, span)
    rests = [(rest, at) for touched, at in entries[first:behind] for rest in touched.minus(span)]
    before = [each for each in rests if each[0].start < span.start]
    return [*entries[:first], *before, *part, *rests[len(before) :], *entries[behind:]]


def _places(entries: Entries, span: Span) -> tuple[int, int]:
    """The place of the first entry that shares a key with `span`, and of the first behind it."""
    first = bisect_right(entries, span.start, key=lambda entry: entry[0].end)
    return first, bisect_left(entries, span.end, first, key=lambda entry: entry[0].start)


def _shared(part: Span, span: Span) -> Span:
    """The keys that `part` and `span` share, of which there is one at least."""
    return Span(max(part.start, span.start), min(part.end, span.end))


class Frontier:
    """An interval map from the keys of tracked spans to timestamps, with the least at hand.

    Timestamps only move up; keys that are not tracked are ignored. Neighbours with one timestamp
    are one entry, so the map is as large as the progress is uneven. `ZERO` means not started.
    """

    def __init__(self, spans: Iterable[Span] = (), at: Timestamp = ZERO) -> None:
        # Start of each interval to its end and timestamp. Intervals do not overlap.
        self._intervals: SortedDict[bytes, tuple[bytes, Timestamp]] = SortedDict()
        # (timestamp, start), with entries gone stale: one is true when the map says the same.
        self._lowest: list[tuple[Timestamp, bytes]] = []
        self._changes = 0
        for span in spans:
            self.add(span, at)

    @classmethod
    def from_entries(cls, entries: Iterable[tuple[Span, Timestamp]]) -> Frontier:
        """The frontier of `entries`; where they overlap, the later one holds."""
        frontier = cls()
        for span, ts in entries:
            frontier.add(span, ts)
        return frontier

    @property
    def low_water(self) -> Timestamp:
        """The least timestamp of any tracked key; ZERO if there is none."""
        lowest, intervals = self._lowest, self._intervals
        while lowest:
            ts, start = lowest[0]
            interval = intervals.get(start)
            if interval is not None and interval[1] == ts:
                return ts
            heappop(lowest)
        return ZERO

    def __len__(self) -> int:
        """The number of intervals."""
        return len(self._intervals)

    def add(self, span: Span, ts: Timestamp) -> None:
        """Tracks the span from `ts` on, whatever was known of its keys before."""
        self._changes += 1
        self._cut_at(span.start)
        self._cut_at(span.end)
        for start in list(self._starts_in(span)):
            del self._intervals[start]
        self._put(span.start, span.end, ts)
        self._merge_around(span)

    def forward(self, span: Span, ts: Timestamp) -> bool:
        """Moves the tracked keys of `span` that are below `ts` up to it.

        Returns whether the low water rose.
        """
        if len(self._intervals) == 1:
            # A feed in step with its one span: nothing is cut, and nothing can be joined.
            interval = self._intervals.get(span.start)
            if interval is not None and interval[0] <= span.end:
                return self._move(span.start, interval[0], interval[1], ts)
        behind = [start for start in self._touching(span) if self._intervals[start][1] < ts]
        if not behind:
            return False
        before = self.low_water
        self._changes += 1
        for start in behind:
            self._raise_part(start, span, ts)
        self._merge_around(span)
        return self.low_water > before

    def _move(self, start: bytes, end: bytes, old: Timestamp, ts: Timestamp) -> bool:
        """Moves the one interval there is, as a whole."""
        if ts <= old:
            return False
        self._changes += 1
        self._intervals[start] = (end, ts)
        self._lowest = [(ts, start)]
        return True

    def entries(self) -> Iterator[tuple[Span, Timestamp]]:
        """The intervals in key order. Raises RuntimeError if the frontier changes meanwhile."""
        changes = self._changes
        for start, (end, ts) in self._intervals.items():
            yield Span(start, end), ts
            if self._changes != changes:
                raise RuntimeError("the frontier changed while its entries were read")

    def part(self, span: Span) -> list[tuple[Span, Timestamp]]:
        """The part of the entries that lies in `span`. It is found without looking at the
        others."""
        found = []
        for start in self._touching(span):
            end, ts = self._intervals[start]
            found.append((_shared(Span(start, end), span), ts))
        return found

    def at(self, key: bytes) -> Timestamp | None:
        """The timestamp of a key, or None when it is not tracked."""
        start = self._start_at_or_before(key)
        if start is None or self._intervals[start][0] <= key:
            return None
        return self._intervals[start][1]

    def check_invariants(self) -> None:
        """Intervals are disjoint and merged, and each is in the heap."""
        previous_end, previous_ts = b"", None
        for start, (end, ts) in self._intervals.items():
            assert start < end, (start, end)
            assert previous_end <= start, (previous_end, start)
            assert (previous_end, previous_ts) != (start, ts), ("not merged", start, ts)
            assert (ts, start) in self._lowest, (ts, start)
            previous_end, previous_ts = end, ts

    def _start_at_or_before(self, key: bytes) -> bytes | None:
        return next(self._intervals.irange(maximum=key, reverse=True), None)

    def _starts_in(self, span: Span) -> Iterator[bytes]:
        return self._intervals.irange(span.start, span.end, inclusive=(True, False))

    def _touching(self, span: Span) -> list[bytes]:
        """Starts of the intervals that share a key with the span."""
        starts = list(self._starts_in(span))
        first = self._start_at_or_before(span.start)
        if first is not None and first < span.start and self._intervals[first][0] > span.start:
            starts.insert(0, first)
        return starts

    def _raise_part(self, start: bytes, span: Span, ts: Timestamp) -> None:
        end, old = self._intervals[start]
        low, high = max(start, span.start), min(end, span.end)
        if start < low:
            self._intervals[start] = (low, old)
        self._put(low, high, ts)
        if high < end:
            self._put(high, end, old)

    def _cut_at(self, key: bytes) -> None:
        start = self._start_at_or_before(key)
        if start is None or start == key:
            return
        end, ts = self._intervals[start]
        if key < end:
            self._intervals[start] = (key, ts)
            self._put(key, end, ts)

    def _merge_around(self, span: Span) -> None:
        """Joins neighbours with one timestamp, from the one before the span to the one behind."""
        intervals = self._intervals
        before = next(
            intervals.irange(maximum=span.start, inclusive=(True, False), reverse=True), span.start
        )
        left: bytes | None = None
        for start in list(intervals.irange(before, span.end)):
            if left is not None:
                left_end, left_ts = intervals[left]
                end, ts = intervals[start]
                if left_end == start and left_ts == ts:
                    del intervals[start]
                    intervals[left] = (end, ts)
                    continue
            left = start

    def _put(self, start: bytes, end: bytes, ts: Timestamp) -> None:
        self._intervals[start] = (end, ts)
        heappush(self._lowest, (ts, start))
        if len(self._lowest) > STALE_MAX + 2 * len(self._intervals):
            self._lowest = [(at, low) for low, (_, at) in self._intervals.items()]
            heapify(self._lowest)

    def __repr__(self) -> str:
        return " ".join(
            f"[{_text(start)}, {_text(end)})@{ts}" for start, (end, ts) in self._intervals.items()
        )


def _text(key: bytes) -> str:
    text = key.decode("ascii", "replace")
    return text if text.isascii() and text.isprintable() else f"0x{key.hex()}"
