"""The range map: which range holds a key.

a..f -> range 1      holding(c)        range 1
f..z -> range 4      divide([c, g))    [c, f) [f, g)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from ..span import Span
from .range import Range


class RangeMap:
    """The ranges of a store by start key. They cover every key of the store, once.

    It changes only by `replace`, in the step that appends the entry of a split or a merge.
    """

    __slots__ = ("_by_id", "_ranges", "_starts", "only")

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._ranges = sorted(ranges, key=lambda found: found.span.start)
        self._by_id = {found.id: found for found in self._ranges}
        self._starts = [found.span.start for found in self._ranges]
        self.only: Range | None = None
        """The range of a store that has just one: most of what is asked here needs no search."""
        self._note_only()
        self.check_invariants()

    def __len__(self) -> int:
        return len(self._ranges)

    def __iter__(self) -> Iterator[Range]:
        return iter(self._ranges)

    @property
    def span(self) -> Span:
        return Span(self._starts[0], self._ranges[-1].span.end)

    def holding(self, key: bytes) -> Range:
        """The range of a key of the store."""
        if self.only is not None:
            return self.only
        return self._ranges[self._place(key)]

    def with_id(self, range_id: int) -> Range | None:
        return self._by_id.get(range_id)

    def overlapping(self, span: Span) -> Sequence[Range]:
        """The ranges that hold a key of the span, in key order."""
        first = self._place(span.start)
        behind = bisect_left(self._starts, span.end)
        return [found for found in self._ranges[first:behind] if found.span.overlaps(span)]

    def divide(self, span: Span) -> list[Span]:
        """`span` cut at the borders of ranges, in key order. Keys that no store has fall away."""
        shared = [found.span.intersect(span) for found in self.overlapping(span)]
        return [part for part in shared if part is not None]

    def after(self, found: Range) -> Range | None:
        """The next range in key order."""
        place = self._place(found.span.start) + 1
        return self._ranges[place] if place < len(self._ranges) else None

    def replace(self, old: Sequence[Range], new: Sequence[Range]) -> None:
        """Puts neighbours in the place of neighbours that hold the same keys."""
        assert old[0].span.start == new[0].span.start, (old, new)
        assert old[-1].span.end == new[-1].span.end, (old, new)
        place = self._place(old[0].span.start)
        assert self._ranges[place : place + len(old)] == list(old), (old, self)
        self._ranges[place : place + len(old)] = new
        self._starts[place : place + len(old)] = [found.span.start for found in new]
        for found in old:
            del self._by_id[found.id]
        for found in new:
            assert found.id not in self._by_id, found
            self._by_id[found.id] = found
        self._note_only()

    def check_invariants(self) -> None:
        """The ranges follow each other without gap or overlap."""
        assert self._ranges, "a store has a range"
        for left, right in zip(self._ranges, self._ranges[1:], strict=False):
            assert left.span.end == right.span.start, (left, right)
        assert self._starts == [found.span.start for found in self._ranges], self._starts
        assert len(self._by_id) == len(self._ranges), self._by_id
        assert (self.only is not None) == (len(self._ranges) == 1), self

    def _place(self, key: bytes) -> int:
        return max(bisect_right(self._starts, key) - 1, 0)

    def _note_only(self) -> None:
        self.only = self._ranges[0] if len(self._ranges) == 1 else None

    def __repr__(self) -> str:
        return f"<RangeMap of {len(self._ranges)} ranges>"
