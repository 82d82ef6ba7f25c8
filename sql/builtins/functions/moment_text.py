"""to_char() of dates and timestamps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from ....catalog.values.errors import SQLError
from .calendar_names import DAYS, MONTHS, NAME_WIDTH, cased
from .moment_pattern import Piece, moment_pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """A moment's fields, which a pattern names. `offset` is the zone's, in seconds east of UTC."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    microsecond: int
    yearday: int
    day_of: date
    zone: str = ""
    offset: int = 0


def timestamp_text(moment: datetime, pattern: str) -> str | None:
    """Returns to_char() of a timestamp without a zone; None for an empty pattern."""
    return _text(_fields(moment), pattern)


def text_in_zone(zone: str) -> Callable[[datetime, str], str | None]:
    """Returns to_char() for timestamps with a zone, told by the clocks of `zone`."""
    place = ZoneInfo(zone)

    def told(moment: datetime, pattern: str) -> str | None:
        local = moment.astimezone(place)
        offset = local.utcoffset()
        assert offset is not None, local
        return _text(_fields(local, local.tzname() or "", int(offset.total_seconds())), pattern)

    return told


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
        piece.text if piece.literal else _word(piece, fields) for piece in moment_pattern(pattern)
    )


def _word(piece: Piece, fields: _Fields) -> str:
    word = piece.word
    if word in _REFUSED:
        raise SQLError("0A000", f'not supported: "{piece.text}" in a pattern of to_char()')
    if word in _NAMED:
        return _NAMED[word](piece, fields)
    number = _number(piece, fields)
    return number + (_ordinal_ending(number, upper=piece.suffix == "TH") if piece.ordinal else "")


_REFUSED = frozenset(["A.D.", "AD", "B.C.", "BC", "CC", "FX", "IDDD", "J", "RM", "Y,YYY"])


def _half(piece: Piece, fields: _Fields) -> str:
    return _spelled("AM" if fields.hour < 12 else "PM", piece)


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


def _number(piece: Piece, fields: _Fields) -> str:
    """A field in digits."""
    word = piece.word
    match word:
        case "HH" | "HH12":
            return _padded(fields.hour % 12 or 12, 2, piece)
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
            return _padded(fields.day, 2, piece)
        case "Q":
            return f"{(fields.month - 1) // 3 + 1}"
        case "W":
            return f"{(fields.day - 1) // 7 + 1}"
        case "WW":
            return _padded((fields.yearday - 1) // 7 + 1, 2, piece)
        case "DDD":
            return _padded(fields.yearday, 3, piece)
    if word.startswith("FF"):
        return _fraction(fields.microsecond, int(word[2]))
    if "Y" in word:
        return _year(piece, fields)
    return _of_week(piece, fields)


def _year(piece: Piece, fields: _Fields) -> str:
    word, year = piece.word, fields.year
    if word.startswith("I"):
        year = fields.day_of.isocalendar().year
    return _year_digits(year, len(word), piece)


def _year_digits(year: int, digits: int, piece: Piece) -> str:
    return _padded(year % 10**digits, digits, piece)


def _of_week(piece: Piece, fields: _Fields) -> str:
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


def _padded(number: int, width: int, piece: Piece) -> str:
    """With zeros before it, as many digits as `width`; without them behind FM."""
    return f"{number}" if piece.unfilled else f"{number:0{width}d}"


def _fraction(microseconds: int, digits: int) -> str:
    return f"{microseconds // 10 ** (6 - digits):0{digits}d}"


_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}


def _ordinal_ending(digits: str, *, upper: bool) -> str:
    """The letters behind a number that is written so: `st` behind 21, `th` behind 11."""
    teen = len(digits) > 1 and digits[-2] == "1"
    ending = "th" if teen else _ENDINGS.get(digits[-1:], "th")
    return ending.upper() if upper else ending
