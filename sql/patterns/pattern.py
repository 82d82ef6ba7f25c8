"""A pattern that is ready to be looked for."""

from __future__ import annotations

from functools import lru_cache

from ...catalog.errors import SQLError
from .colours import Colours
from .divisions import divided
from .matching import Budget, Matcher, Span, Spans
from .nodes import has_word_anchors, letters_in
from .options import Options
from .reader import read
from .scanner import shown
from .word_edges import with_plain_edges

PATTERNS_MAX = 256
"""Those that are kept: an automaton's memory is bounded, and so is theirs."""


class Pattern:
    """`groups` is the number of its capturing groups. A place is one between letters, from 0."""

    __slots__ = ("_matcher", "colours", "groups")

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
        self.groups = tree.groups
        self.colours = Colours(letters_in(choice), words=has_word_anchors(choice))
        self._matcher = Matcher(divided(choice), self.colours)

    def search(self, text: bytes, begin: int, budget: Budget) -> Span | None:
        """The first match from a place on, of a text in this pattern's colours."""
        return self._matcher.search(text, begin, budget)

    def divide(self, text: bytes, span: Span, budget: Budget) -> Spans:
        """Where the groups of a match are, but for those that took no part in it."""
        return self._matcher.divide(text, span, budget) if self.groups else {}


@lru_cache(maxsize=PATTERNS_MAX)
def pattern_of(text: str, options: Options) -> Pattern:
    """Raises SQLError 2201B for what is no pattern, and 0A000 for what is not supported."""
    return Pattern(text, options)
