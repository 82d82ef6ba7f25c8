"""A pattern that is ready to be searched for, with its match and its groups by RE2.

PostgreSQL takes the leftmost match, and of those the longest, unless a non-greedy quantifier asks
for the shortest. RE2's longest match is the same match. A pattern whose variable quantifiers are
all non-greedy is run by RE2's first match. For patterns in between, PostgreSQL derives the
preference of the whole from its first quantified atom, which RE2 cannot express: those are refused.

The groups within a match are RE2's, which tries alternatives in their order.
"""

from __future__ import annotations

from functools import lru_cache

import re2

from ...syntax.refusals import unsupported
from .native import compiled, native_text
from .nodes import Choice, Group, Preference, repeats_in
from .options import Options
from .reader import read

PATTERNS_MAX = 256
"""Patterns that are kept, each with an automaton of `native.AUTOMATON_BYTES_MAX` at most."""


class Pattern:
    """`native` is the pattern in RE2's syntax, `groups` the number of its capturing groups.

    Raises SQLError 2201B for what is no pattern or too large, and 0A000 for what is not supported.
    """

    __slots__ = ("_preferred", "_regexp", "choice", "groups", "native")

    def __init__(self, text: str, options: Options) -> None:
        tree = read(text, options)
        self.choice = tree.choice
        self.groups = tree.groups
        self.native = native_text(tree.choice)
        self._regexp = compiled(self.native)
        self._preferred: re2._Regexp | None = None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return self._regexp.search(text.encode()) is not None

    def search(self, text: bytes, begin: int) -> re2._Match | None:
        """The first match from a place on, both in bytes of UTF-8.

        Raises SQLError 0A000 where PostgreSQL's choice of a match is none of RE2's.
        """
        if self._preferred is None:
            longest = _prefers_longest(self.choice)
            self._preferred = compiled(self.native, longest=True) if longest else self._regexp
        return self._preferred.search(text, begin)

    @property
    def extractable(self) -> bool:
        """Whether a text has one match from a place, divided among the groups in one way, so that
        RE2's first match is the longest: no alternatives, no repeated groups, and at most one set
        of letters that comes a variable number of times."""
        repeats = list(repeats_in(self.choice))
        return (
            not _has_alternatives(self.choice)
            and all(
                each.least == each.most == 1 for each in repeats if isinstance(each.atom, Group)
            )
            and sum(each.least != each.most for each in repeats) <= 1
        )


def _has_alternatives(choice: Choice) -> bool:
    within = (each.atom.body for each in repeats_in(choice) if isinstance(each.atom, Group))
    return any(len(each.branches) > 1 for each in (choice, *within))


def _prefers_longest(choice: Choice) -> bool:
    wanted = {each.preference for each in repeats_in(choice)}
    if Preference.SHORTER not in wanted:
        return True
    if Preference.LONGER in wanted or _has_alternatives(choice):
        raise unsupported(
            "non-greedy quantifiers beside greedy ones or alternatives in a regular expression",
            hint="Write [^x]* in place of .*? before an x.",
        )
    return False


@lru_cache(maxsize=PATTERNS_MAX)
def pattern_of(text: str, options: Options) -> Pattern:
    """Returns a compiled pattern, cached among the last PATTERNS_MAX. Raises SQLError 2201B for
    an invalid pattern, and 0A000 for one that is not supported."""
    return Pattern(text, options)
