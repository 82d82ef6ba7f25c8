"""What PostgreSQL's functions do with the matches of a pattern.

Each takes a text and arguments that are all there. Places count from 1, as in SQL. Raises SQLError
22023 for arguments that are out of range, 2201B and 0A000 for a pattern (`pattern_of`).
"""

from __future__ import annotations

from collections.abc import Iterator

import re2

from ....catalog.values.errors import SQLError
from .options import options_of
from .pattern import Pattern, pattern_of

RESULT_BYTES_MAX = 1 << 28
"""Of one regexp_replace(), whose replacement may be long: PostgreSQL has as much for a value."""


def found(text: str, pattern: str, flags: str) -> bool:
    """regexp_like(), and ~."""
    return _without_global("regexp_like", pattern, flags).matches(text)


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
    for match in _matches(known, text.encode(), 0):
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
    for match in _matches(known, encoded, 0):
        if match.start() < len(encoded) and match.end() > end:
            made.append(encoded[end : match.start()].decode())
            end = match.end()
    return [*made, encoded[end:].decode()]


def count(text: str, pattern: str, start: int, flags: str) -> int:
    """regexp_count()."""
    _check("start", start, 1)
    known = _without_global("regexp_count", pattern, flags)
    return sum(1 for _ in _matches(known, text.encode(), _bytes_before(text, start)))


def place(
    text: str, pattern: str, start: int, number: int, end: int, flags: str, group: int
) -> int:
    """regexp_instr(): where the match of that number begins, or what is behind it; 0 for none."""
    _check("start", start, 1)
    _check("n", number, 1)
    if end not in (0, 1):
        raise _out_of_range("endoption", end)
    _check("subexpr", group, 0)
    known = _without_global("regexp_instr", pattern, flags)
    match = _numbered(text, known, start, number, group)
    if match is None or match.start(group) < 0:
        return 0
    return len(text.encode()[: match.span(group)[end]].decode()) + 1


def part(text: str, pattern: str, start: int, number: int, flags: str, group: int) -> str | None:
    """regexp_substr(): the match of that number, or a group of it."""
    _check("start", start, 1)
    _check("n", number, 1)
    _check("subexpr", group, 0)
    known = _without_global("regexp_substr", pattern, flags)
    match = _numbered(text, known, start, number, group)
    return None if match is None else _group(match, group)


def substring(text: str, pattern: str) -> str | None:
    """substring(text FROM pattern): the first group, or the whole where there is none."""
    known = pattern_of(pattern, options_of("")[0])
    match = known.search(text.encode(), 0)
    return None if match is None else _group(match, min(known.groups, 1))


def replaced(
    text: str, pattern: str, replacement: str, start: int, number: int | None, flags: str
) -> str:
    """regexp_replace() of the match of that number, or of all where it is 0; None is for the flag
    `g` to say."""
    _check("start", start, 1)
    options, everywhere = options_of(flags)
    if number is None:
        number = 0 if everywhere else 1
    _check("n", number, 0)
    known = pattern_of(pattern, options)
    pieces = replacement_pieces(replacement)
    encoded = text.encode()
    made: list[bytes] = []
    end = size = 0
    for counted, match in enumerate(_matches(known, encoded, _bytes_before(text, start)), start=1):
        if number in (0, counted):
            new = "".join(_said(known, match, piece) for piece in pieces).encode()
            made += (encoded[end : match.start()], new)
            size += len(new)
            if size > RESULT_BYTES_MAX:
                raise SQLError("54000", "the result of regexp_replace() is too long")
            end = match.end()
        if counted == number:
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


def _matches(known: Pattern, text: bytes, begin: int) -> Iterator[re2._Match]:
    """Each match behind the one before. After one of no letter, a letter is left out."""
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


def _bytes_before(text: str, start: int) -> int:
    """Where the letter of that number begins in UTF-8; behind the text where it has fewer."""
    before = text[: start - 1]
    return len(before.encode()) + (start - 1 > len(before))


def _groups(known: Pattern, match: re2._Match) -> list[str | None]:
    """The groups of a match, or the whole where the pattern has none."""
    numbers = range(1, known.groups + 1) if known.groups else (0,)
    return [_group(match, number) for number in numbers]


def _group(match: re2._Match, number: int) -> str | None:
    found: bytes | None = match.group(number)
    return None if found is None else found.decode()


def _numbered(text: str, known: Pattern, start: int, number: int, group: int) -> re2._Match | None:
    """The match of a number; None where there are fewer, or where it has no such group."""
    if group > known.groups:
        return None
    matches = _matches(known, text.encode(), _bytes_before(text, start))
    return next((match for at, match in enumerate(matches, start=1) if at == number), None)


def _without_global(name: str, pattern: str, flags: str, hint: str | None = None) -> Pattern:
    options, everywhere = options_of(flags)
    if everywhere:
        raise SQLError("22023", f'{name}() does not support the "global" option', hint=hint)
    return pattern_of(pattern, options)


def _check(name: str, value: int, least: int) -> None:
    if value < least:
        raise _out_of_range(name, value)


def _out_of_range(name: str, value: int) -> SQLError:
    return SQLError("22023", f'invalid value for parameter "{name}": {value}')
