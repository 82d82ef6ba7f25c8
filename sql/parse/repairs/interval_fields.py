"""Intervals whose fields are named behind their text, read before anything is parsed.

    INTERVAL '1-2' YEAR TO MONTH        INTERVAL '1 year 2 mons'
    INTERVAL '12:30' MINUTE TO SECOND   INTERVAL '00:12:30'
    INTERVAL '1.5' HOUR                 INTERVAL '01:00:00'

The last field is that of a number without one, and what is finer than it is cut off.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ....catalog.values.interval import Interval
from ....catalog.values.interval_text import read_interval
from ..lexer import is_string

_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_MICROSECONDS = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1}
_SPANS = {
    ("year", "month"), ("day", "hour"), ("day", "minute"), ("day", "second"), ("hour", "minute"),
    ("hour", "second"), ("minute", "second"),
}  # fmt: skip


def field_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens with such intervals as PostgreSQL writes them. Raises SQLError as a cast does."""
    if not any(token.token_type == TokenType.INTERVAL for token in tokens):
        return tokens
    made: list[Token] = []
    at = 0
    while at < len(tokens):
        made.append(tokens[at])
        at += 1
        if made[-1].token_type != TokenType.INTERVAL or not _text_at(tokens, at):
            continue
        text, fields = tokens[at], _fields(tokens, at + 1)
        if fields:
            try:
                read = read_fields(text.text, fields[0], fields[-1])
            except SQLError as error:
                error.position = text.start + 1
                raise
            made.append(_like(text, f"{read}"))
            at += 2 * len(fields)
    return made


def _text_at(tokens: list[Token], at: int) -> bool:
    return at < len(tokens) and is_string(tokens[at])


def _fields(tokens: list[Token], at: int) -> tuple[str, ...]:
    """The fields that are named from a place on: none, one, or the first and the last."""
    words = [token.text.lower() for token in tokens[at : at + 3]] + [""] * 3
    if words[0] not in _FIELDS:
        return ()
    if words[1] == "to" and (words[0], words[2]) in _SPANS:
        return (words[0], words[2])
    return (words[0],)


def _like(token: Token, text: str) -> Token:
    return Token(token.token_type, text, token.line, token.col, token.start, token.end)


def read_fields(text: str, first: str, last: str) -> Interval:
    """A text by its first and its last field. Raises SQLError 22007, 22015."""
    words = text.split()
    if words and ":" in words[-1] and (first, last) == ("minute", "second"):
        words[-1] = _minutes_and_seconds(words[-1])
    elif words and _is_number(words[-1]):
        words[-1] += f" {last}"
        if last == "hour" and len(words) > 1 and _is_number(words[-2]):
            words[-2] += " day"
    try:
        read = read_interval(" ".join(words))
    except SQLError as error:
        error.message = error.message.replace(" ".join(words), text)
        raise
    return _cut(read, last)


def _is_number(word: str) -> bool:
    digits = word.lstrip("+-").replace(".", "", 1)
    return digits.isdecimal() and len(word) - len(word.lstrip("+-")) <= 1


def _minutes_and_seconds(word: str) -> str:
    if word.count(":") != 1:
        return word
    sign = word[:1] if word[:1] in "+-" else ""
    return f"{sign}0:{word.removeprefix(sign)}"


def _cut(read: Interval, last: str) -> Interval:
    if last == "year":
        years = abs(read.months) // 12 * 12
        return Interval(months=years if read.months >= 0 else -years)
    if last == "month":
        return Interval(months=read.months)
    if last == "day":
        return Interval(months=read.months, days=read.days)
    unit = _MICROSECONDS[last]
    time = abs(read.microseconds) // unit * unit
    return Interval(
        months=read.months, days=read.days,
        microseconds=time if read.microseconds >= 0 else -time,
    )  # fmt: skip
