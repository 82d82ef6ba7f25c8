"""Where a pattern matches in a text, and how what matched is divided among its groups.

The leftmost match is taken, and of those from there the longest, or the shortest where the pattern
prefers that. Then each part takes, from left to right, its longest or its shortest share that
leaves the parts behind it theirs (after H. Spencer's regexec.c). Whether a part matches a piece of
the text is asked of RE2, which says the longest match from a place in linear time.
"""

from __future__ import annotations

import re2

from ....catalog.values.errors import SQLError
from .divisions import Part, Shape
from .scanner import TOO_COMPLEX, invalid
from .spelling import Spelling

Span = tuple[int, int]
Spans = dict[int, Span]
"""Where each group is that took part in a match."""

AUTOMATON_BYTES_MAX = 1 << 20
"""For one part. Its letters are bytes, so that thousands of states find room."""
WORK_MIN = 1 << 31
WORK_OF_LETTER = 1 << 12
"""Letters that may be looked at for one batch of rows, and for each letter of its texts besides: a
few seconds, and some microseconds. To divide a match takes the square of its length at worst."""
_ASKED = 1 << 9
"""What it costs to ask RE2 anything, in letters."""


class Budget:
    """How much may still be done for a batch of rows, whose texts have so many letters."""

    __slots__ = ("left",)

    def __init__(self, letters: int = 0, *, least: int = WORK_MIN) -> None:
        self.left = least + letters * WORK_OF_LETTER

    def spend(self, letters: int) -> None:
        """Raises SQLError 54001 when it is spent."""
        self.left -= letters + _ASKED
        if self.left < 0:
            raise SQLError(
                "54001",
                "there are too many ways to divide a text among the parts of a regular expression",
                hint="Use fewer repetitions in one pattern, or shorter texts.",
            )


class Matcher:
    """A part of a pattern, and those that it is divided into.

    Raises SQLError 2201B where RE2's automaton would take more than AUTOMATON_BYTES_MAX.
    """

    __slots__ = ("_parts", "_regexp", "_shortest_first", "_spelling", "_stride", "part")

    def __init__(self, part: Part, spelling: Spelling) -> None:
        self.part = part
        self._spelling = spelling
        self._stride = spelling.stride
        self._regexp = _compiled(spelling.choice(part.tree))
        self._parts: tuple[Matcher, ...] | None = None
        self._shortest_first = part.shortest

    @property
    def parts(self) -> tuple[Matcher, ...]:
        if self._parts is None:
            self._parts = tuple(Matcher(part, self._spelling) for part in self.part.parts)
        return self._parts

    def search(self, text: bytes, begin: int, budget: Budget) -> Span | None:
        """The leftmost match from `begin` on."""
        found = self._regexp.search(text, begin * self._stride)
        if found is None:
            budget.spend(len(text) - begin)
            return None
        span: Span = found.span()
        if self._stride > 1:
            span = span[0] // self._stride, span[1] // self._stride
        if self._shortest_first:
            start, longest = span
            end = self._shortest(text, start, start, longest, budget)
            assert end is not None, (text, start)
            span = start, end
        budget.spend(span[1] - begin)
        return span

    def divide(self, text: bytes, span: Span, budget: Budget) -> Spans:
        """The groups of a match, and nothing of those that took no part in it."""
        spans: Spans = {}
        self._divide(text, span, budget, spans)
        return spans

    def _divide(self, text: bytes, span: Span, budget: Budget, spans: Spans) -> None:
        match self.part.shape:
            case Shape.PAIR:
                self._divide_pair(text, span, budget, spans)
            case Shape.CHOICE:
                chosen = next(part for part in self.parts if part.matches(text, span, budget))
                chosen._divide(text, span, budget, spans)
            case Shape.ITERATION:
                self._divide_iteration(text, span, budget, spans)
            case Shape.WRAPPED:
                self.parts[0]._divide(text, span, budget, spans)
        if self.part.group is not None:
            spans[self.part.group] = span

    def matches(self, text: bytes, span: Span, budget: Budget) -> bool:
        """Whether it matches the whole of a piece."""
        return self._longest(text, *span, budget) == span[1]

    def begins(self, text: bytes, begin: int, end: int, budget: Budget) -> bool:
        """Whether it matches from a place on, no matter how far."""
        return self._longest(text, begin, end, budget) is not None

    def _divide_pair(self, text: bytes, span: Span, budget: Budget, spans: Spans) -> None:
        first, second = self.parts
        begin, end = span
        middle = first._share(text, begin, None, end, budget)
        while middle is not None and not second.matches(text, (middle, end), budget):
            middle = first._share(text, begin, middle, end, budget)
        assert middle is not None, (text, span)
        first._divide(text, (begin, middle), budget, spans)
        second._divide(text, (middle, end), budget, spans)

    def _share(
        self, text: bytes, begin: int, before: int | None, end: int, budget: Budget
    ) -> int | None:
        """Where the part's match from `begin` ends that is next to be tried after `before`."""
        if self._shortest_first:
            least = begin if before is None else before + 1
            return self._shortest(text, begin, least, end, budget)
        return self._longest(text, begin, end if before is None else before - 1, budget)

    def _divide_iteration(self, text: bytes, span: Span, budget: Budget, spans: Spans) -> None:
        """A part that comes any number of times: the groups are those of the last."""
        (part,) = self.parts
        if span[0] < span[1]:
            span = part._last_of_many(text, span, self.part.most, budget)
        elif part._shortest_first or not part.matches(text, span, budget):
            return  # it came no time at all
        part._divide(text, span, budget, spans)

    def _last_of_many(self, text: bytes, span: Span, most: int | None, budget: Budget) -> Span:
        """The last of the matches that together fill a piece, none of them empty.

        A place from which the rest cannot be filled is not tried again.
        """
        begin, end = span
        counted = most is not None  # else it is the same how many there have been
        most = end - begin if most is None else min(most, end - begin)
        ends, hopeless = [begin], set[tuple[int, int]]()
        before: int | None = None
        while ends[-1] != end:
            place = ends[-1]
            following = None
            if len(ends) <= most:
                first = place if self._shortest_first else None  # so that it is not empty
                tried = first if before is None else before
                following = self._share(text, place, tried, end, budget)
                if following is not None and following <= place:
                    following = None
            if following is None:
                hopeless.add((len(ends) * counted, place))
                before = ends.pop()
                assert ends, (text, span)
            elif ((len(ends) + 1) * counted, following) in hopeless:
                before = following
            else:
                ends.append(following)
                before = None
        return ends[-2], ends[-1]

    def _longest(self, text: bytes, begin: int, end: int, budget: Budget) -> int | None:
        """Where the longest match from `begin` ends, which goes no further than `end`."""
        if end < begin:
            return None
        budget.spend(end - begin)
        stride = self._stride
        found = self._regexp.match(text, begin * stride, (end + 1) * stride - 1)
        return None if found is None else found.end() // stride

    def _shortest(
        self, text: bytes, begin: int, least: int, end: int, budget: Budget
    ) -> int | None:
        """Where the shortest match from `begin` ends that goes as far as `least`.

        It is the least end within which there is one so long: what is looked at is doubled until
        there is, and then halved.
        """
        step, without = 1, least - 1
        found = None
        limit = min(least, end)
        while found is None or found < least:
            if limit == end and without == end:
                return None
            found = self._longest(text, begin, limit, budget)
            if found is None or found < least:
                without = limit
                if limit == end:
                    return None
                limit = min(limit + step, end)
                step *= 2
        while found - without > 1:
            middle = (without + found) // 2
            nearer = self._longest(text, begin, middle, budget)
            if nearer is None or nearer < least:
                without = middle
            else:
                found = nearer
        return found


def _compiled(written: str) -> re2._Regexp:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.longest_match = True
    options.never_capture = True
    options.log_errors = False
    options.max_mem = AUTOMATON_BYTES_MAX
    try:
        return re2.compile(written.encode("ascii"), options)
    except re2.error as error:
        raise invalid(TOO_COMPLEX) from error
