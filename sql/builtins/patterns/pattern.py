"""A pattern that is ready to be searched for, and what PostgreSQL's functions make of its matches.

PostgreSQL takes the leftmost match, and of those the longest, unless a non-greedy quantifier asks
for the shortest. RE2's longest match is the same match. A pattern whose variable quantifiers are
all non-greedy is run by RE2's first match. For patterns in between, PostgreSQL derives the
preference of the whole from its first quantified atom, which RE2 cannot express: those are refused.
The groups within a match are RE2's, which tries alternatives in their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import re2

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from .reader import TOO_COMPLEX, Reader, invalid, options_of

PATTERNS_MAX = 256
"""Patterns that are kept, each with an automaton of AUTOMATON_BYTES_MAX at most."""
NATIVE_MAX = 1 << 14
"""Letters of a pattern in RE2's syntax. A longer text takes RE2 milliseconds to compile."""
AUTOMATON_BYTES_MAX = 1 << 20
"""For one pattern: a larger automaton takes milliseconds to make."""
RESULT_BYTES_MAX = 1 << 28
"""Bytes that one regexp_replace() may return; PostgreSQL's values have the same order of limit."""


class Pattern:
    """`native` is the pattern in RE2's syntax, `groups` the number of its capturing groups.

    Raises SQLError 2201B for what is no pattern or too large, and 0A000 for what is not supported.
    """

    __slots__ = ("_preferred", "_read", "_regexp", "groups", "native")

    def __init__(self, text: str, any_case: bool) -> None:
        self._read = read = Reader(text, any_case)
        self.native = read.native
        self.groups = read.groups
        if len(read.native) > NATIVE_MAX:
            raise invalid(TOO_COMPLEX)
        self._regexp = _compiled(read.native)
        self._preferred: re2._Regexp | None = None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text."""
        return self._regexp.search(text.encode()) is not None

    def each_match(self, text: bytes) -> Iterator[re2._Match]:
        """Yields each match behind the one before; after one of no letter, a letter is left out.

        Raises SQLError 0A000 where PostgreSQL's choice of a match is none of RE2's.
        """
        if self._preferred is None:
            longest = _prefers_longest(self._read)
            self._preferred = _compiled(self.native, longest=True) if longest else self._regexp
        begin = 0
        while begin <= len(text):
            match = self._preferred.search(text, begin)
            if match is None:
                return
            yield match
            begin = match.end()
            if match.start() == begin:
                begin += 1
                while begin < len(text) and text[begin] & 0xC0 == 0x80:
                    begin += 1  # within a letter of several bytes


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
def pattern_of(text: str, any_case: bool) -> Pattern:
    """Returns a compiled pattern, cached among the last PATTERNS_MAX. Raises SQLError 2201B for
    an invalid pattern, and 0A000 for one that is not supported."""
    return Pattern(text, any_case)


def found(text: str, pattern: str, flags: str) -> bool:
    """Whether `text ~ pattern`."""
    return pattern_of(pattern, options_of(flags)[0]).matches(text)


def replaced(text: str, pattern: str, replacement: str, flags: str) -> str:
    """regexp_replace() of the first match, or of all with the flag `g`."""
    any_case, everywhere = options_of(flags)
    known = pattern_of(pattern, any_case)
    pieces = _replacement_pieces(replacement)
    encoded = text.encode()
    made: list[bytes] = []
    end = size = 0
    for match in known.each_match(encoded):
        new = b"".join(
            piece.encode() if isinstance(piece, str)
            else (match.group(piece) or b"") if piece <= known.groups else b""
            for piece in pieces
        )  # fmt: skip
        made += (encoded[end : match.start()], new)
        size += len(new)
        if size > RESULT_BYTES_MAX:
            raise SQLError("54000", "the result of regexp_replace() is too long")
        end = match.end()
        if not everywhere:
            break
    return b"".join((*made, encoded[end:])).decode()


def _replacement_pieces(replacement: str) -> list[str | int]:
    """A replacement as texts and numbers of groups, 0 for the whole match."""
    pieces: list[str | int] = []
    at = begin = 0
    while (at := replacement.find("\\", at)) >= 0:
        following = replacement[at + 1 : at + 2]
        meant: str | int | None = None
        if following and following in "123456789":
            meant = int(following)
        elif following in ("&", "\\"):
            meant = 0 if following == "&" else "\\"
        if meant is None:
            at += 1
            continue
        pieces += (replacement[begin:at], meant)
        at = begin = at + 2
    return [piece for piece in (*pieces, replacement[begin:]) if piece != ""]
