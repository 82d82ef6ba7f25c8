"""Literals: the text forms that each type reads, after PostgreSQL's input functions.

Digits of a second beyond the sixth are rounded, as there: lib/pq writes nanoseconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from math import isinf
from uuid import UUID

from .errors import SQLError
from .session_zone import instant

_TRUE = ("true", "yes", "on")
_FALSE = ("false", "no", "off")


def invalid_text(type_name: str, text: str, sqlstate: str = "22P02") -> SQLError:
    return SQLError(sqlstate, f'invalid input syntax for type {type_name}: "{text}"')


def read_bool(text: str) -> bool:
    """`t`, `true`, `y`, `yes`, `on`, `1` and their opposites, or an unambiguous beginning."""
    word = text.strip().lower()
    if word == "1" or (word and word != "o" and any(name.startswith(word) for name in _TRUE)):
        return True
    if word == "0" or (word and word != "o" and any(name.startswith(word) for name in _FALSE)):
        return False
    raise invalid_text("bool", text)


def read_int(text: str) -> int:
    # int() also reads digits of other scripts and underscores, which SQL does not.
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        return int(text)
    except ValueError:
        raise invalid_text("int8", text) from None


_NONZERO = frozenset("123456789")


def read_float(text: str) -> float:
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
        number = float(text)
    except ValueError:
        raise invalid_text("float8", text) from None
    if isinf(number) and "inf" not in text.lower():
        raise SQLError("22003", f'"{text}" is out of range for type float8')
    if number == 0 and not _NONZERO.isdisjoint(text.lower().partition("e")[0]):
        raise SQLError("22003", f'"{text}" is out of range for type float8')
    return number


def read_decimal(text: str) -> Decimal:
    try:
        if not text.isascii() or "_" in text:
            raise InvalidOperation
        return Decimal(text.strip())
    except InvalidOperation:
        raise invalid_text("decimal", text) from None


def read_bytes(text: str) -> bytes:
    r"""`\x` and hexadecimal digits, or the escape form: `\\` and `\ooo` in plain text."""
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise invalid_text("bytes", text) from None
    pieces = text.split("\\\\")
    return b"\\".join(_read_octal_escapes(piece, text) for piece in pieces)


def _read_octal_escapes(piece: str, text: str) -> bytes:
    plain, *escaped = piece.split("\\")
    parts = [plain.encode()]
    for part in escaped:
        digits = part[:3]
        if len(digits) < 3 or any(digit not in "01234567" for digit in digits) or digits > "377":
            raise invalid_text("bytes", text)
        parts.append(bytes((int(digits, 8),)) + part[3:].encode())
    return b"".join(parts)


def read_date(text: str) -> date:
    """`2025-11-24`, also with a time of day and a zone behind it, which JDBC and node-postgres
    write and PostgreSQL drops: the day is the one that is written."""
    day, _, zone = text.strip().partition(" ")
    if zone[:1] not in ("+", "-") or not zone[1:].replace(":", "").isdecimal():
        day = text.strip()
    try:
        return date.fromisoformat(day)
    except ValueError:
        return _read_moment(text, "date").date()


def read_time(text: str) -> time:
    """`04:05`, `04:05:06.7`, also with an offset behind it, which JDBC writes and PostgreSQL drops.
    Raises SQLError 22007 for bad text, 22008 for no hour of a day."""
    body = text.strip()
    hour, colon, _ = body.partition(":")
    try:
        if not colon or not body.isascii():
            raise ValueError
        moment = time.fromisoformat(body if len(hour) == 2 else f"0{body}")
    except ValueError:
        raise _no_time(text, body) from None
    clock = moment.replace(tzinfo=None)
    if not _is_rounded_up(body):
        return clock
    if clock == time.max:
        raise _no_time(text, body)
    return (datetime.combine(date.min, clock) + _MICROSECOND).time()


def _no_time(text: str, body: str) -> SQLError:
    parts = body.replace(".", ":").split(":")
    if all(part.isdecimal() for part in parts) and 2 <= len(parts) <= 4:
        return SQLError(
            "22008",
            f'date/time field value out of range: "{text}"',
            detail="A time of day is at most 23:59:59.999999.",
        )
    return invalid_text("time", text, "22007")


def read_timestamp(text: str) -> datetime:
    """A naive datetime: the clock that is written. An offset behind it, which node-postgres writes
    of each moment, is dropped, as PostgreSQL does."""
    return _read_moment(text, "timestamp").replace(tzinfo=None)


def read_timestamptz(text: str) -> datetime:
    """A datetime in UTC; a text without an offset is in the session's zone."""
    return to_utc(_read_moment(text, "timestamptz"))


def to_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        return instant(moment)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise SQLError(
            "22008", f'timestamp out of range: "{moment.isoformat()}"',
            detail="Timestamps lie in the years 0001 to 9999 UTC.",
        ) from None  # fmt: skip


def _read_moment(text: str, type_name: str) -> datetime:
    if _PLAIN_MOMENT.fullmatch(text) is not None:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            raise invalid_text(type_name, text, "22007") from None
    body = text.strip()
    if body[-4:].upper() == " UTC":
        body = body[:-4] + "+00:00"
    if len(body) == len("1970-01-01Z") and body[-1] in "Zz":
        body = f"{body[:-1]}T00:00Z"
    offset = _OFFSET.fullmatch(body)
    if offset is not None:
        body = _with_whole_offset(text, offset)
    try:
        moment = datetime.fromisoformat(body)
    except ValueError:
        raise invalid_text(type_name, text, "22007") from None
    try:
        return moment + _MICROSECOND if _is_rounded_up(body) else moment
    except OverflowError:
        raise SQLError("22008", f'{type_name} out of range: "{text}"') from None


_PLAIN_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-](?:0\d|1[0-5])(?::[0-5]\d)?)?", re.ASCII
)
"""A moment as drivers send it, which the standard library reads as it stands."""

_OFFSET = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d\S*?))? ?([+-])"
    r"(?:(\d{1,2}):(\d{1,2})|(\d{1,2})(\d\d)|(\d{1,2}))"
)
"""A moment and an offset: hours, or hours and minutes, with and without what may be left out."""

_OFFSET_HOURS_MAX = 15


def _with_whole_offset(text: str, found: re.Match[str]) -> str:
    """The moment with four digits of an offset. Raises SQLError 22009."""
    day, clock, sign, *parts = found.groups()
    hours, *rest = (int(part) for part in parts if part is not None)
    minutes = rest[0] if rest else 0
    if hours > _OFFSET_HOURS_MAX or minutes > 59:
        raise SQLError("22009", f'time zone displacement out of range: "{text}"')
    return f"{day}T{clock or '00:00'}{sign}{hours:02}:{minutes:02}"


_MICROSECOND = timedelta(microseconds=1)
_LONG_FRACTION = re.compile(r"[.,](\d{6})(\d+)", re.ASCII)


def _is_rounded_up(body: str) -> bool:
    """Whether the digits beyond microseconds, which `fromisoformat` drops, round the text up.

    Halves go to the even microsecond, as in PostgreSQL.
    """
    found = _LONG_FRACTION.search(body)
    return found is not None and round(float(f"{found[1]}.{found[2]}")) > int(found[1])


def read_uuid(text: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError:
        raise invalid_text("uuid", text) from None
