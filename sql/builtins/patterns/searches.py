"""What PostgreSQL's functions do with the matches of a pattern.

Each takes a text and arguments that are all there, and the budget of the batch of rows. Places
count from 1, as in SQL. Raises SQLError 22023 for arguments that are out of range.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....catalog.values.errors import SQLError
from .matching import Budget, Span, Spans
from .options import options_of
from .pattern import Pattern, pattern_of

RESULT_LETTERS_MAX = 1 << 28
"""Of one regexp_replace(), whose replacement may be long: PostgreSQL has as much for a value."""


def found(text: str, pattern: str, flags: str, budget: Budget) -> bool:
    """regexp_like(), and ~."""
    return _without_global("regexp_like", pattern, flags).matches(text, budget)


def first(text: str, pattern: str, flags: str, budget: Budget) -> list[str | None] | None:
    """regexp_match(): the groups of the first match, or the whole where there are none."""
    known = _without_global(
        "regexp_match", pattern, flags, hint="Use the regexp_matches function instead."
    )
    prepared = known.prepared(text, budget)
    span = known.search(prepared, 0, budget)
    return None if span is None else _groups(text, known, prepared, span, budget)


def every(text: str, pattern: str, flags: str, budget: Budget) -> list[list[str | None]]:
    """regexp_matches(): the same of each match with `g`, else of the first."""
    options, everywhere = options_of(flags)
    known = pattern_of(pattern, options)
    prepared = known.prepared(text, budget)
    made: list[list[str | None]] = []
    for span in _spans(known, text, prepared, 0, budget):
        made.append(_groups(text, known, prepared, span, budget))
        if not everywhere:
            break
    return made


def split(text: str, pattern: str, flags: str, name: str, budget: Budget) -> list[str]:
    """regexp_split_to_array() and …_to_table(), by `name`: what is between the matches.

    A match of no letter at the end, or right behind another, parts nothing.
    """
    known = _without_global(name, pattern, flags)
    made: list[str] = []
    end = 0
    for begin, behind in _spans(known, text, known.prepared(text, budget), 0, budget):
        if begin < len(text) and behind > end:
            made.append(text[end:begin])
            end = behind
    return [*made, text[end:]]


def count(text: str, pattern: str, start: int, flags: str, budget: Budget) -> int:
    """regexp_count()."""
    _check("start", start, 1)
    known = _without_global("regexp_count", pattern, flags)
    return sum(1 for _ in _spans(known, text, known.prepared(text, budget), start - 1, budget))


def place(
    text: str, pattern: str, start: int, number: int, end: int, flags: str, group: int,
    budget: Budget,
) -> int:  # fmt: skip
    """regexp_instr(): where the match of that number begins, or what is behind it; 0 for none."""
    _check("start", start, 1)
    _check("n", number, 1)
    if end not in (0, 1):
        raise _out_of_range("endoption", end)
    _check("subexpr", group, 0)
    known = _without_global("regexp_instr", pattern, flags)
    span = _numbered(text, known, start, number, group, budget)
    return 0 if span is None else span[end] + 1


def part(
    text: str, pattern: str, start: int, number: int, flags: str, group: int, budget: Budget
) -> str | None:
    """regexp_substr(): the match of that number, or a group of it."""
    _check("start", start, 1)
    _check("n", number, 1)
    _check("subexpr", group, 0)
    known = _without_global("regexp_substr", pattern, flags)
    span = _numbered(text, known, start, number, group, budget)
    return None if span is None else text[slice(*span)]


def substring(text: str, pattern: str, budget: Budget) -> str | None:
    """substring(text FROM pattern): the first group, or the whole where there is none."""
    known = pattern_of(pattern, options_of("")[0])
    span = _numbered(text, known, 1, 1, min(known.groups, 1), budget)
    return None if span is None else text[slice(*span)]


def replaced(
    text: str, pattern: str, replacement: str, start: int, number: int | None, flags: str,
    budget: Budget,
) -> str:  # fmt: skip
    """regexp_replace() of the match of that number, or of all where it is 0; None is for the flag
    `g` to say."""
    _check("start", start, 1)
    options, everywhere = options_of(flags)
    if number is None:
        number = 0 if everywhere else 1
    _check("n", number, 0)
    known = pattern_of(pattern, options)
    prepared = known.prepared(text, budget)
    pieces = replacement_pieces(replacement)
    divides = any(isinstance(piece, int) and piece > 0 for piece in pieces)
    made: list[str] = []
    end = letters = 0
    for counted, span in enumerate(_spans(known, text, prepared, start - 1, budget), start=1):
        if number in (0, counted):
            groups = known.divide(prepared, span, budget) if divides else {}
            new = "".join(_said(text, piece, span, groups) for piece in pieces)
            made += (text[end : span[0]], new)
            letters += len(new)
            if letters > RESULT_LETTERS_MAX:
                raise SQLError("54000", "the result of regexp_replace() is too long")
            end = span[1]
        if counted == number:
            break
    return "".join((*made, text[end:]))


def _said(text: str, piece: str | int, span: Span, groups: Spans) -> str:
    if isinstance(piece, str):
        return piece
    where = groups.get(piece) if piece else span
    return "" if where is None else text[slice(*where)]


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


def _spans(
    known: Pattern, text: str, prepared: bytes, begin: int, budget: Budget
) -> Iterator[Span]:
    """Each match behind the one before. After one of no letter, a letter is left out."""
    while begin <= len(text):
        span = known.search(prepared, begin, budget)
        if span is None:
            return
        yield span
        begin = span[1] + (span[0] == span[1])


def _groups(
    text: str, known: Pattern, prepared: bytes, span: Span, budget: Budget
) -> list[str | None]:
    if not known.groups:
        return [text[slice(*span)]]
    where = known.divide(prepared, span, budget)
    return [
        text[slice(*where[number])] if number in where else None
        for number in range(1, known.groups + 1)
    ]


def _numbered(
    text: str, known: Pattern, start: int, number: int, group: int, budget: Budget
) -> Span | None:
    """Where the match of a number is, or a group of it."""
    if group > known.groups:
        return None
    prepared = known.prepared(text, budget)
    for counted, span in enumerate(_spans(known, text, prepared, start - 1, budget), start=1):
        if counted == number:
            return span if group == 0 else known.divide(prepared, span, budget).get(group)
    return None


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
