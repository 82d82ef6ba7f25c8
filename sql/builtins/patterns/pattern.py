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
from .options import Options
from .reader import TOO_COMPLEX, Reader, invalid

PATTERNS_MAX = 256
"""Patterns that are kept, each with an automaton of AUTOMATON_BYTES_MAX at most."""
NATIVE_MAX = 1 << 14
"""Letters of a pattern in RE2's syntax. A longer text takes RE2 milliseconds to compile."""
AUTOMATON_BYTES_MAX = 1 << 20
"""For one pattern: a larger automaton takes milliseconds to make."""


class Pattern:
    """`native` is the pattern in RE2's syntax, `groups` the number of its capturing groups.
    `extractable`: a text has one match from a place, divided among the groups in one way, so that
    RE2's first match is the longest: no alternatives, no repeated groups, and at most one set of
    letters that comes a variable number of times.

    Raises SQLError 2201B for what is no pattern or too large, and 0A000 for what is not supported.
    """

    __slots__ = ("_preferred", "_read", "_regexp", "extractable", "groups", "native")

    def __init__(self, text: str, options: Options) -> None:
        self._read = read = Reader(text, options)
        self.native = read.native
        self.groups = read.groups
        self.extractable = (
            not (read.alternatives or read.repeats_groups) and read.lazy + read.greedy <= 1
        )
        if len(read.native) > NATIVE_MAX:
            raise invalid(TOO_COMPLEX)
        self._regexp = _compiled(read.native)
        self._preferred: re2._Regexp | None = None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return self._regexp.search(text.encode()) is not None

    def search(self, text: bytes, begin: int) -> re2._Match | None:
        """The first match from a place on, both in bytes of UTF-8.

        Raises SQLError 0A000 where PostgreSQL's choice of a match is none of RE2's.
        """
        if self._preferred is None:
            longest = _prefers_longest(self._read)
            self._preferred = _compiled(self.native, longest=True) if longest else self._regexp
        return self._preferred.search(text, begin)


def _prefers_longest(read: Reader) -> bool:
    if read.lazy and (read.greedy or read.alternatives):
        raise unsupported(
            "non-greedy quantifiers beside greedy ones or alternatives in a regular expression",
            hint="Write [^x]* in place of .*? before an x.",
        )
    return not read.lazy


def _compiled(native: str, *, longest: bool = False) -> re2._Regexp:
    """RE2's automaton over UTF-8 bytes. `longest` makes the leftmost-longest match the match.

    Raises SQLError 2201B where it would take more than AUTOMATON_BYTES_MAX.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = AUTOMATON_BYTES_MAX
    options.longest_match = longest
    try:
        return re2.compile(native.encode(), options)
    except re2.error as error:
        raise invalid(TOO_COMPLEX) from error


@lru_cache(maxsize=PATTERNS_MAX)
def pattern_of(text: str, options: Options) -> Pattern:
    """Returns a compiled pattern, cached among the last PATTERNS_MAX. Raises SQLError 2201B for
    an invalid pattern, and 0A000 for one that is not supported."""
    return Pattern(text, options)
