"""PostgreSQL's functions on the matches of a regular expression.

Each takes a text and arguments that are all there. Raises SQLError 2201B and 0A000 for a pattern
(`pattern_of`), 22023 for flags (`options_of`).
"""

from __future__ import annotations

from collections.abc import Iterator

import re2

from ....catalog.values.errors import SQLError
from .options import options_of
from .pattern import Pattern, pattern_of

RESULT_BYTES_MAX = 1 << 28
"""Bytes that one regexp_replace() may return; PostgreSQL's values have the same order of limit."""


def found(text: str, pattern: str, flags: str) -> bool:
    """Whether `text ~ pattern`."""
    return pattern_of(pattern, options_of(flags)[0]).matches(text)


def first(text: str, pattern: str, flags: str) -> list[str | None] | None:
    """regexp_match(): the groups of the first match, or the whole where there are none."""
    known = _without_global(
        "regexp_match", pattern, flags, hint="Use the regexp_matches function instead."
    )
    match = known.search(text.encode(), 0)
    return None if match is None else _groups(known, match)


def every(text: str, pattern: str, flags: str) -> list[list[str | None]]:
    """regexp_matches(): the same of each match with `g`, else of the first."""
    options, everywhere = options_of(flags)
    known = pattern_of(pattern, options)
    made: list[list[str | None]] = []
    for match in _matches(known, text.encode()):
        made.append(_groups(known, match))
        if not everywhere:
            break
    return made


def split(text: str, pattern: str, flags: str, name: str) -> list[str]:
    """regexp_split_to_array() and …_to_table(), by `name`: what is between the matches.

    A match of no letter at the end, or right behind another, parts nothing.
    """
    known = _without_global(name, pattern, flags)
    encoded = text.encode()
    made: list[str] = []
    end = 0
    for match in _matches(known, encoded):
        if match.start() < len(encoded) and match.end() > end:
            made.append(encoded[end : match.start()].decode())
            end = match.end()
    return [*made, encoded[end:].decode()]


def substring(text: str, pattern: str) -> str | None:
    """substring(text FROM pattern): the first group, or the whole where there is none."""
    known = pattern_of(pattern, options_of("")[0])
    match = known.search(text.encode(), 0)
    return None if match is None else _group(match, min(known.groups, 1))


def replaced(text: str, pattern: str, replacement: str, flags: str) -> str:
    """regexp_replace() of the first match, or of all with the flag `g`."""
    options, everywhere = options_of(flags)
    known = pattern_of(pattern, options)
    pieces = replacement_pieces(replacement)
    encoded = text.encode()
    made: list[bytes] = []
    end = size = 0
    for match in _matches(known, encoded):
        new = "".join(_said(known, match, piece) for piece in pieces).encode()
        made += (encoded[end : match.start()], new)
        size += len(new)
        if size > RESULT_BYTES_MAX:
            raise SQLError("54000", "the result of regexp_replace() is too long")
        end = match.end()
        if not everywhere:
            break
    return b"".join((*made, encoded[end:])).decode()


def _said(known: Pattern, match: re2._Match, piece: str | int) -> str:
    if isinstance(piece, str):
        return piece
    return (_group(match, piece) or "") if piece <= known.groups else ""


def replacement_pieces(replacement: str) -> list[str | int]:
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


def _matches(known: Pattern, text: bytes) -> Iterator[re2._Match]:
    """Each match behind the one before. After one of no letter, a letter is left out."""
    begin = 0
    while begin <= len(text):
        match = known.search(text, begin)
        if match is None:
            return
        yield match
        begin = match.end()
        if match.start() == begin:
            begin += 1
            while begin < len(text) and text[begin] & 0xC0 == 0x80:
                begin += 1  # within a letter of several bytes


def _groups(known: Pattern, match: re2._Match) -> list[str | None]:
    """The groups of a match, or the whole where the pattern has none."""
    numbers = range(1, known.groups + 1) if known.groups else (0,)
    return [_group(match, number) for number in numbers]


def _group(match: re2._Match, number: int) -> str | None:
    found: bytes | None = match.group(number)
    return None if found is None else found.decode()


def _without_global(name: str, pattern: str, flags: str, hint: str | None = None) -> Pattern:
    options, everywhere = options_of(flags)
    if everywhere:
        raise SQLError("22023", f'{name}() does not support the "global" option', hint=hint)
    return pattern_of(pattern, options)
