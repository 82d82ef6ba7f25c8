"""A pattern that is ready to be looked for."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from ...catalog.errors import SQLError
from .colours import Colours
from .divisions import AUTOMATA_MAX, divided
from .matching import Budget, Matcher, Span, Spans
from .nodes import has_word_anchors, letters_in
from .options import Options
from .reader import read
from .scanner import TOO_COMPLEX, invalid, shown
from .word_edges import with_plain_edges


class Pattern:
    """`groups` is the number of its capturing groups; `automata`, of those that it may come to
    hold. A place is one between letters, from 0.
    """

    __slots__ = ("_matcher", "automata", "colours", "groups")

    def __init__(self, text: str, options: Options) -> None:
        tree = read(text, options)
        choice = with_plain_edges(tree.choice)
        if choice is None:
            raise SQLError(
                "0A000",
                f"not supported: \\m or \\M that is not beside a letter of a word, "
                f"in the regular expression {shown(text)}",
                hint="Write \\y, which matches at both ends of words.",
            )
        part = divided(choice)
        self.groups = tree.groups
        self.automata = part.count()
        if self.automata > AUTOMATA_MAX:
            raise invalid(TOO_COMPLEX)
        self.colours = Colours(letters_in(choice), words=has_word_anchors(choice))
        self._matcher = Matcher(part, self.colours)

    def search(self, text: bytes, begin: int, budget: Budget) -> Span | None:
        """The first match from a place on, of a text in this pattern's colours."""
        return self._matcher.search(text, begin, budget)

    def divide(self, text: bytes, span: Span, budget: Budget) -> Spans:
        """Where the groups of a match are, but for those that took no part in it."""
        return self._matcher.divide(text, span, budget) if self.groups else {}


class KnownPatterns:
    """The patterns that were asked for last, in that order, with AUTOMATA_MAX automata at most: so
    many times `matching.AUTOMATON_BYTES_MAX` is what they may come to take. Any thread may ask."""

    def __init__(self) -> None:
        self._patterns: OrderedDict[tuple[str, Options], Pattern] = OrderedDict()
        self.automata = 0
        self._lock = Lock()

    def pattern(self, text: str, options: Options) -> Pattern:
        key = (text, options)
        with self._lock:
            known = self._patterns.get(key)
            if known is not None:
                self._patterns.move_to_end(key)
                return known
        made = Pattern(text, options)
        with self._lock:
            known = self._patterns.setdefault(key, made)
            self.automata += made.automata if known is made else 0
            while self.automata > AUTOMATA_MAX:
                _, oldest = self._patterns.popitem(last=False)
                self.automata -= oldest.automata
        return known


_known = KnownPatterns()


def pattern_of(text: str, options: Options) -> Pattern:
    """Raises SQLError 2201B for what is no pattern, and 0A000 for what is not supported."""
    return _known.pattern(text, options)
