"""to_char() of dates, timestamps and intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from math import fmod
from zoneinfo import ZoneInfo

from ....catalog.values.errors import SQLError
from ....catalog.values.interval import Interval, interval_of
from .calendar_names import DAYS, MONTHS, NAME_WIDTH, cased
from .moment_pattern import Piece, PieceKind, moment_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """What a pattern asks of a moment. Of an interval each field has a sign of its own, `yeardays`
    are all its days, and there is no `day_of`, no zone and no week."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    microsecond: int
    yearday: int
    day_of: date | None = None
    zone: str = ""
    offset: int = 0

    @property
    def is_interval(self) -> bool:
        return self.day_of is None


def timestamp_text(moment: datetime, pattern: str) -> str | None:
    """Of a timestamp without a zone; NULL for an empty pattern."""
    return _text(_fields(moment), pattern)


def text_in_zone(zone: str) -> Callable[[datetime, str], str | None]:
    """Of a timestamp with a zone, by the clocks of `zone`."""
    place = ZoneInfo(zone)

    def told(moment: datetime, pattern: str) -> str | None:
        local = moment.astimezone(place)
        offset = local.utcoffset()
        assert offset is not None, local
        return _text(_fields(local, local.tzname() or "", int(offset.total_seconds())), pattern)

    return told


def interval_text(value: object, pattern: str) -> str | None:
    interval = interval_of(value)
    assert isinstance(interval, Interval), value
    year, month = _quotient(interval.months, 12)
    seconds, microsecond = _quotient(interval.microseconds, 1_000_000)
    minutes, second = _quotient(seconds, 60)
    hour, minute = _quotient(minutes, 60)
    fields = _Fields(
        year=year, month=month, day=interval.days, hour=hour, minute=minute, second=second,
        microsecond=microsecond, yearday=interval.months * 30 + interval.days,
    )  # fmt: skip
    return _text(fields, pattern)


def _fields(at: datetime, zone: str = "", offset: int = 0) -> _Fields:
    return _Fields(
        year=at.year, month=at.month, day=at.day, hour=at.hour, minute=at.minute,
        second=at.second, microsecond=at.microsecond, yearday=at.timetuple().tm_yday,
        day_of=at.date(), zone=zone, offset=offset,
    )  # fmt: skip


def _text(fields: _Fields, pattern: str) -> str | None:
    if not pattern:
        return None
    return "".join(
        piece.text if piece.kind is not PieceKind.WORD else _word(piece, fields)
        for piece in moment_pattern(pattern)
    )


def _word(piece: Piece, fields: _Fields) -> str:
    word = piece.word
    if fields.is_interval and word in _NOT_OF_INTERVALS:
        raise SQLError(
            "22007",
            "invalid format specification for an interval value",
            hint="Intervals are not tied to specific calendar dates.",
        )
    if fields.is_interval and word in _OF_WEEKS:
        raise SQLError("0A000", f"not supported: {word} in a pattern of an interval")
    if word in _REFUSED:
        raise SQLError("0A000", f'not supported: "{piece.text}" in a pattern of to_char()')
    if word in _NAMED:
        return _NAMED[word](piece, fields)
    number = _number(piece, fields)
    if number is None:
        return ""
    return number + (ordinal_ending(number, upper=piece.suffix == "TH") if piece.ordinal else "")


_NOT_OF_INTERVALS = frozenset(["MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF"])
_REFUSED = frozenset(["A.D.", "AD", "B.C.", "BC", "CC", "FX", "IDDD", "J", "RM", "Y,YYY"])
_OF_WEEKS = frozenset(["IW", "IYYY", "IYY", "IY", "I"])
"""PostgreSQL takes an interval's fields for those of a date, and tells of its weeks."""


def _half(piece: Piece, fields: _Fields) -> str:
    return _spelled("AM" if fmod(fields.hour, 24) < 12 else "PM", piece)


def _spelled(both: str, piece: Piece) -> str:
    text = f"{both[0]}.{both[1]}." if "." in piece.text else both
    return text.lower() if piece.text.islower() else text


def _month(piece: Piece, fields: _Fields) -> str:
    return _filled(cased(MONTHS[fields.month - 1], piece.text), piece)


def _day(piece: Piece, fields: _Fields) -> str:
    return _filled(cased(DAYS[_weekday(fields)], piece.text), piece)


def _filled(name: str, piece: Piece) -> str:
    return name if piece.prefix else f"{name:<{NAME_WIDTH}}"


def _offset(piece: Piece, fields: _Fields) -> str:
    hours, rest = divmod(abs(fields.offset), 3600)
    shown = f"{hours}" if piece.unfilled else f"{hours:02}"
    return f"{_sign(fields)}{shown}" + (f":{rest // 60:02}" if rest else "")


def _sign(fields: _Fields) -> str:
    return "-" if fields.offset < 0 else "+"


def _weekday(fields: _Fields) -> int:
    """From Sunday, 0, on."""
    assert fields.day_of is not None, fields
    return fields.day_of.isoweekday() % 7


_NAMED: dict[str, Callable[[Piece, _Fields], str]] = {
    **dict.fromkeys(("A.M.", "AM", "P.M.", "PM"), _half),
    "MONTH": _month,
    "MON": lambda piece, fields: cased(MONTHS[fields.month - 1][:3], piece.text),
    "DAY": _day,
    "DY": lambda piece, fields: cased(DAYS[_weekday(fields)][:3], piece.text),
    "TZ": lambda piece, fields: fields.zone.lower() if piece.text.islower() else fields.zone,
    "TZH": lambda piece, fields: f"{_sign(fields)}{abs(fields.offset) // 3600:02}",
    "TZM": lambda piece, fields: f"{abs(fields.offset) % 3600 // 60:02}",
    "OF": _offset,
}


def _number(piece: Piece, fields: _Fields) -> str | None:
    """A field in digits; None where an interval has none."""
    word = piece.word
    match word:
        case "HH" | "HH12":
            return _padded(int(fmod(fields.hour, 12)) or 12, 2, piece, signed_by=fields.hour)
        case "HH24":
            return _padded(fields.hour, 2, piece)
        case "MI":
            return _padded(fields.minute, 2, piece)
        case "SS":
            return _padded(fields.second, 2, piece)
        case "SSSS" | "SSSSS":
            return f"{fields.hour * 3600 + fields.minute * 60 + fields.second}"
        case "MS" | "US":
            return _fraction(fields.microsecond, 3 if word == "MS" else 6)
        case "MM":
            return _padded(fields.month, 2, piece)
        case "DD":
            return _padded(fields.day, 2, piece, signs=False)
        case "Q":
            return f"{_quotient(fields.month - 1, 3)[0] + 1}" if fields.month else None
        case "W":
            return f"{_quotient(fields.day - 1, 7)[0] + 1}"
        case "WW":
            return _padded(_quotient(fields.yearday - 1, 7)[0] + 1, 2, piece, signs=False)
        case "DDD":
            return _padded(fields.yearday, 3, piece, signs=False)
    if word.startswith("FF"):
        return _fraction(fields.microsecond, int(word[2]))
    if "Y" in word:
        return _year(piece, fields)
    return _of_week(piece, fields)


def _year(piece: Piece, fields: _Fields) -> str:
    word, year = piece.word, fields.year
    if word.startswith("I"):
        assert fields.day_of is not None, fields
        year = fields.day_of.isocalendar().year
    return _year_digits(year, len(word), piece)


def _year_digits(year: int, digits: int, piece: Piece) -> str:
    if digits == 4:
        return _padded(year, 4, piece)
    rest = _quotient(year, 10**digits)[1]
    return f"{rest}" if digits == 1 else _padded(rest, digits, piece, signed_by=year)


def _of_week(piece: Piece, fields: _Fields) -> str:
    assert fields.day_of is not None, fields
    year, week, weekday = fields.day_of.isocalendar()
    match piece.word:
        case "D":
            return f"{_weekday(fields) + 1}"
        case "ID":
            return f"{weekday}"
        case "IW":
            return _padded(week, 2, piece)
        case "I":
            return _year_digits(year, 1, piece)
    raise AssertionError(piece)


def _padded(
    number: int, width: int, piece: Piece, *, signs: bool = True, signed_by: int | None = None
) -> str:
    """With zeros before it, as many digits as `width`; a minus has room of its own where fields
    have `signs`, and that is where the field is negative that they are said by."""
    if piece.unfilled:
        return f"{number}"
    negative = (number if signed_by is None else signed_by) < 0
    return f"{number:0{width + (signs and negative)}d}"


def _fraction(microseconds: int, digits: int) -> str:
    return f"{_quotient(microseconds, 10 ** (6 - digits))[0]:0{digits}d}"


def _quotient(number: int, by: int) -> tuple[int, int]:
    """Toward zero, and the remainder with the number's sign."""
    whole, rest = divmod(abs(number), by)
    return (-whole, -rest) if number < 0 else (whole, rest)


_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}


def ordinal_ending(digits: str, *, upper: bool) -> str:
    """What stands behind a number that is written so. Raises SQLError 22P02."""
    if not digits[-1:].isdecimal():
        raise SQLError("22P02", f'"{digits}" is not a number')
    teen = len(digits) > 1 and digits[-2] == "1"
    ending = "th" if teen else _ENDINGS.get(digits[-1:], "th")
    return ending.upper() if upper else ending
