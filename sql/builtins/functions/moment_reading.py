"""to_date() and to_timestamp(): a text read by a pattern.

The text is gone through word by word (`_Reader`); what is found are fields, which may not
contradict each other, and of them a date and a time are made (`_made`). Blanks before and behind a
field are passed over, unless the pattern says FX; a separator of the pattern matches any separator
or blank, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from ....catalog.values.errors import SQLError
from ....catalog.values.literals import to_utc
from ....catalog.values.session_zone import SessionZone, follow, forget
from .calendar_names import DAYS, MONTHS, of_julian_day
from .moment_pattern import SPACES, Piece, PieceKind, is_separator, moment_pattern
from .roman import MONTHS as ROMAN_MONTHS

_INT4_MIN, _INT4_MAX = -(2**31), 2**31 - 1
_ZONE_HOURS_MAX = 15
_YEAR_2000 = datetime(2000, 1, 1, tzinfo=UTC)


def date_of(text: str, pattern: str) -> date:
    day, _ = _read(text, pattern).moment(text)
    return day


def timestamp_in_zone(zone: str) -> Callable[[str, str], datetime]:
    """to_timestamp() of a text, whose time is of `zone` where it does not say its own."""

    def read(text: str, pattern: str) -> datetime:
        found = _read(text, pattern)
        day, microseconds = found.moment(text)
        moment = datetime(day.year, day.month, day.day) + timedelta(microseconds=microseconds)
        offset = found.offset(text)
        try:
            if offset is not None:
                instant = moment.replace(tzinfo=UTC) - offset
            else:
                before = follow(SessionZone(zone))  # DuckDB's threads are no session's
                try:
                    instant = to_utc(moment)
                finally:
                    forget(before)
            return instant if found.precision is None else _rounded(instant, found.precision)
        except OverflowError:
            raise SQLError("22008", "timestamp out of range") from None

    return read


def _rounded(instant: datetime, digits: int) -> datetime:
    """Halves away from the year 2000, from which PostgreSQL counts its microseconds."""
    since = (instant - _YEAR_2000) // timedelta(microseconds=1)
    unit = 10 ** (6 - digits)
    whole = (abs(since) + unit // 2) // unit * unit
    return _YEAR_2000 + timedelta(microseconds=whole if since >= 0 else -whole)


@dataclass(slots=True)
class _Found:
    """The fields of a text by their names in `values`. `of_weeks` says whether they are those of
    the ISO calendar, None that nothing says it; `year_digits` how many the year was asked for."""

    values: dict[str, int] = field(default_factory=dict)
    of_weeks: bool | None = None
    half_days: bool = False
    year_digits: int = 0
    zone_sign: int = 0
    precision: int | None = None
    """The digits of a second that FF1 to FF6 ask for: the time is rounded to them."""

    def set(self, name: str, value: int, word: str) -> None:
        """A field that is 0 says nothing, and may be said again."""
        if self.values.get(name, 0) not in (0, value):
            raise SQLError(
                "22007",
                f'conflicting values for "{word}" field in formatting string',
                detail="This value contradicts a previous setting for the same field type.",
            )
        self.values[name] = value

    def of(self, name: str) -> int:
        return self.values.get(name, 0)

    def adjust(self, name: str, value: int) -> None:
        """What a field means that was `set` as it was written: only that is compared."""
        self.values[name] = value

    def moment(self, text: str) -> tuple[date, int]:
        """The date, and the microseconds of its day."""
        clock = self._clock()
        try:
            day: date | None = self._day(text)
        except (ValueError, OverflowError):
            day = None
        microseconds = self._microseconds(clock, text)
        self.offset(text)
        if day is None:
            raise _out_of_range(text)
        return day, microseconds

    def _day(self, text: str) -> date:
        year, known = self._year()
        month, day = 1, 1
        if self.of("julian"):
            made = of_julian_day(self.of("julian"))
            year, month, day, known = made.year, made.month, made.day, True
        days = self.of("yearday")
        if self.of("week"):
            if self.of_weeks:
                made = self._of_week(year)
                year, month, day, known = made.year, made.month, made.day, True
            else:
                days = (self.of("week") - 1) * 7 + 1
        in_month = (self.of("monthweek") - 1) * 7 + 1 if self.of("monthweek") else self.of("day")
        day, month = in_month or day, self.of("month") or month
        if days and (month <= 1 or day <= 1):
            if not known and not self.of("bc"):
                raise SQLError("22007", "cannot calculate day of year without year information")
            if self.of_weeks:
                return date.fromordinal(_first_week(year) + days - 1)
            if not 0 < days <= date(year, 12, 31).timetuple().tm_yday:
                raise _out_of_range(text)
            counted = date(year, 1, 1) + timedelta(days=days - 1)
            month = counted.month if month <= 1 else month
            day = counted.day if day <= 1 else day
        return date(year, month, day)

    def _of_week(self, year: int) -> date:
        """The day of an ISO week, Monday where none is said; here Sunday is 1 and ends it."""
        weekday = self.of("weekday")
        ahead = 0 if not weekday else weekday - 2 if weekday > 1 else 6
        return date.fromordinal(_first_week(year) + (self.of("week") - 1) * 7 + ahead)

    def _year(self) -> tuple[int, bool]:
        """The year, from 0 on, which is 1 BC, and whether anything was said of it."""
        year, century, before_christ = self.of("year"), self.of("century"), self.of("bc")
        century = -century if before_christ else century
        if year and century and self.year_digits <= 2:
            rest = year % 100
            if not rest:
                return century * 100 + (0 if century >= 0 else 1), True
            whole = (century - 1) * 100 if century >= 0 else (century + 1) * 100
            return (whole + rest if century >= 0 else whole - rest + 1), True
        if year:
            year = -year if before_christ else year
            return (year + 1 if year < 0 else year), True
        if century:
            return ((century - 1) * 100 + 1 if century >= 0 else century * 100 + 1), True
        return 0, False

    def _microseconds(self, clock: tuple[int, int, int], text: str) -> int:
        hour, minute, second = clock
        microseconds = self.of("milliseconds") * 1000 + self.of("microseconds")
        whole = 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60
        if not whole or not 0 <= microseconds < 1_000_000:
            raise _out_of_range(text)
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + microseconds

    def _clock(self) -> tuple[int, int, int]:
        minutes, second = divmod(self.of("dayseconds"), 60)
        hour, minute = divmod(minutes, 60)
        hour, minute = self.of("hour") or hour, self.of("minute") or minute
        if self.half_days:
            if not 1 <= hour <= 12:
                raise SQLError(
                    "22007",
                    f'hour "{hour}" is invalid for the 12-hour clock',
                    hint="Use the 24-hour clock, or give an hour between 1 and 12.",
                )
            hour = hour % 12 + (12 if self.of("pm") else 0)
        return hour, minute, self.of("second") or second

    def offset(self, text: str) -> timedelta | None:
        """East of UTC, where the text says it."""
        if not self.zone_sign:
            return None
        hours, minutes = self.of("zonehours"), self.of("zoneminutes")
        if not 0 <= hours <= _ZONE_HOURS_MAX or not 0 <= minutes < 60:
            raise SQLError("22009", f'time zone displacement out of range: "{text}"')
        return self.zone_sign * timedelta(hours=hours, minutes=minutes)


_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After which the calendar and its weeks repeat."""


def _first_week(year: int) -> int:
    """The ordinal of the Monday with which an ISO year begins, of years BC too."""
    return date.fromisocalendar(year + _CYCLE_YEARS, 1, 1).toordinal() - _CYCLE_DAYS


def _out_of_range(text: str) -> SQLError:
    return SQLError("22008", f'date/time field value out of range: "{text}"')


def _read(text: str, pattern: str) -> _Found:
    reader = _Reader(text, moment_pattern(pattern))
    reader.read()
    return reader.found


class _Reader:
    """A text on its way through a pattern. `_extra` counts the blanks that were passed over and
    that no separator of the pattern has asked for."""

    def __init__(self, text: str, pieces: Sequence[Piece]) -> None:
        self._text, self._pieces = text, pieces
        self._at = self._extra = 0
        self._fixed = False
        self.found = _Found()

    def read(self) -> None:
        for place, piece in enumerate(self._pieces):
            if self._at >= len(self._text):
                break
            before = piece.kind is not PieceKind.LETTER or place == 0
            if not self._fixed and before and piece.word != "FX":
                self._skip_blanks()
            match piece.kind:
                case PieceKind.SEPARATOR | PieceKind.SPACE:
                    self._take_separator()
                case PieceKind.LETTER:
                    if not self._fixed and self._extra > 0:
                        self._extra -= 1
                    else:
                        self._at += 1
                case PieceKind.WORD:
                    self._take(place, piece)
                    if not self._fixed:
                        self._extra = 0
                        self._skip_blanks()

    def _skip_blanks(self) -> None:
        while self._letter() in SPACES and self._letter():
            self._at += 1
            self._extra += 1

    def _letter(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take_separator(self) -> None:
        if self._fixed:
            self._at += 1
            return
        self._extra -= 1
        letter = self._letter()
        if letter and (letter in SPACES or is_separator(letter)):
            self._at += 1
            self._extra += 1

    def _take(self, place: int, piece: Piece) -> None:
        word = piece.word
        self._note_calendar(word)
        if word == "FX":
            self._fixed = True
        elif word in ("TZ", "OF"):
            raise SQLError("0A000", f'formatting field "{piece.text}" is only supported in to_char')
        elif word in _NAMES:
            self._take_name(piece, *_NAMES[word])
        elif word in ("TZH", "TZM"):
            self._take_zone(place, piece)
        elif word == "Y,YYY":
            self._take_thousands(piece)
        else:
            self._take_number(place, piece)
        if piece.ordinal and word in _NUMBERS:
            self._at += 2

    def _note_calendar(self, word: str) -> None:
        of_weeks = True if word in _OF_WEEKS else False if word in _GREGORIAN else None
        if of_weeks is None:
            return
        if self.found.of_weeks not in (None, of_weeks):
            raise SQLError(
                "22007",
                "invalid combination of date conventions",
                hint="Do not mix Gregorian and ISO week date conventions in a formatting template.",
            )
        self.found.of_weeks = of_weeks

    def _take_name(self, piece: Piece, name: str, known: Sequence[str], first: int) -> None:
        rest = self._text[self._at :]
        for number, each in enumerate(known):
            if rest[: len(each)].lower() == each.lower():
                self._at += len(each)
                if name == "weekday":
                    self.found.set(name, number, piece.text)
                    self.found.adjust(name, number + 1)
                else:
                    self.found.set(name, abs(number + first), piece.text)
                self.found.half_days |= name == "pm"
                return
        shown = rest.split(None, 1)[0] if rest[:1] not in SPACES else ""
        raise SQLError(
            "22007",
            f'invalid value "{shown}" for "{piece.text}"',
            detail="The given value did not match any of the allowed values for this field.",
        )

    def _take_zone(self, place: int, piece: Piece) -> None:
        found = self.found
        if piece.word == "TZM":
            found.zone_sign = found.zone_sign or 1
            self._take_digits(place, piece, "zoneminutes", 2)
            return
        letter = self._letter()
        if letter and letter in "+- ":
            found.zone_sign = -1 if letter == "-" else 1
            self._at += 1
        else:
            swallowed = self._extra > 0 and self._text[self._at - 1 : self._at] == "-"
            found.zone_sign = -1 if swallowed else 1
        self._take_digits(place, piece, "zonehours", 2)

    def _take_thousands(self, piece: Piece) -> None:
        thousands, end = _digits(self._text, self._at, None)
        rest, behind = (None, end)
        if thousands is not None and self._text[end : end + 1] == ",":
            begin = end + 1
            while self._text[begin : begin + 1] and self._text[begin] in SPACES:
                begin += 1
            rest, behind = _digits(self._text, begin, 3)
        if thousands is None or rest is None:
            raise SQLError("22007", 'invalid input string for "Y,YYY"')
        self.found.set("year", thousands * 1000 + rest, piece.text)
        self.found.year_digits = 4
        self._at = behind

    def _take_number(self, place: int, piece: Piece) -> None:
        name, width = _NUMBERS[piece.word]
        found = self.found
        if piece.word.startswith("FF"):
            width = found.precision = int(piece.word[2])
        if name == "year":
            value, length = self._number(place, piece, width)
            digits = len(piece.word)
            found.set(name, value, piece.text)
            found.adjust(name, _near_2020(value) if digits < 4 and length < 4 else value)
            found.year_digits = digits
            return
        if name in ("milliseconds", "microseconds"):
            value, length = self._number(place, piece, width)
            most = 3 if name == "milliseconds" else 6
            found.set(name, value, piece.text)
            found.adjust(name, value * 10 ** max(most - length, 0))
            return
        if piece.word in ("HH", "HH12"):
            found.half_days = True
        self._take_digits(place, piece, name, width)
        if piece.word == "ID":
            found.adjust(name, found.of(name) % 7 + 1)

    def _take_digits(self, place: int, piece: Piece, name: str, width: int) -> None:
        value, _ = self._number(place, piece, width)
        if name:
            self.found.set(name, value, piece.text)

    def _number(self, place: int, piece: Piece, width: int) -> tuple[int, int]:
        """A whole number and how many letters were read for it: `width` at most where digits of
        another field come next. Raises SQLError 22007, 22008."""
        start = self._at
        while self._letter() in SPACES and self._letter():
            self._at += 1
        rest = self._text[self._at :]
        if piece.unfilled or self._ends_at_separator(place):
            value, end = _digits(self._text, self._at, None)
        else:
            shown = rest[:width]
            if len(shown) < width:
                raise _too_short(piece, width, len(shown))
            value, end = _digits(self._text, self._at, width)
            if value is not None and end - self._at < width:
                raise _too_few(piece, shown, width, end - self._at)
        if value is None:
            raise SQLError(
                "22007",
                f'invalid value "{rest[:width]}" for "{piece.text}"',
                detail="Value must be an integer.",
            )
        if not _INT4_MIN <= value <= _INT4_MAX:
            raise SQLError(
                "22008",
                f'value for "{piece.text}" in source string is out of range',
                detail=f"Value must be in the range {_INT4_MIN} to {_INT4_MAX}.",
            )
        self._at = end
        return value, end - start

    def _ends_at_separator(self, place: int) -> bool:
        """Whether no digit comes behind the field by the pattern."""
        if self._pieces[place].ordinal:
            return True
        if place + 1 == len(self._pieces):
            return True
        following = self._pieces[place + 1]
        if following.kind is PieceKind.WORD:
            return following.word not in _OF_DIGITS
        return not (following.text.isascii() and following.text.isdecimal())


def _too_short(piece: Piece, width: int, there: int) -> SQLError:
    return SQLError(
        "22007",
        f'source string too short for "{piece.text}" formatting field',
        detail=f"Field requires {width} characters, but only {there} remain.",
        hint=_FM,
    )


def _too_few(piece: Piece, shown: str, width: int, there: int) -> SQLError:
    return SQLError(
        "22007",
        f'invalid value "{shown}" for "{piece.text}"',
        detail=f"Field requires {width} characters, but only {there} could be parsed.",
        hint=_FM,
    )


_FM = 'If your source string is not fixed-width, try using the "FM" modifier.'


def _digits(text: str, at: int, width: int | None) -> tuple[int | None, int]:
    """The whole number that begins at a place, with its sign, and where it ends."""
    most = len(text) if width is None else min(at + width, len(text))
    end = at + (text[at : at + 1] in ("+", "-") and at < most)
    begin = end
    while end < most and text[end] in "0123456789":
        end += 1
    return (int(text[at:end]), end) if end > begin else (None, at)


def _near_2020(year: int) -> int:
    """The year of less than four digits that is nearest to 2020."""
    if year < 70:
        return year + 2000
    if year < 100:
        return year + 1900
    if year < 520:
        return year + 2000
    return year + 1000 if year < 1000 else year


_HALVES, _ERAS = ("am", "pm"), ("ad", "bc")
_NAMES: dict[str, tuple[str, Sequence[str], int]] = {
    **dict.fromkeys(("AM", "PM"), ("pm", _HALVES, 0)),
    **dict.fromkeys(("A.M.", "P.M."), ("pm", ("a.m.", "p.m."), 0)),
    **dict.fromkeys(("AD", "BC"), ("bc", _ERAS, 0)),
    **dict.fromkeys(("A.D.", "B.C."), ("bc", ("a.d.", "b.c."), 0)),
    "MONTH": ("month", MONTHS, 1),
    "MON": ("month", [name[:3] for name in MONTHS], 1),
    "DAY": ("weekday", DAYS, 1),
    "DY": ("weekday", [name[:3] for name in DAYS], 1),
    "RM": ("month", tuple(reversed(ROMAN_MONTHS)), -12),
}
"""Which field a word says by a name, the names, and the number of the first; they count on from
there, toward 0 from a negative one."""
_NUMBERS: dict[str, tuple[str, int]] = {
    "HH": ("hour", 2), "HH12": ("hour", 2), "HH24": ("hour", 2), "MI": ("minute", 2),
    "SS": ("second", 2), "MS": ("milliseconds", 3), "US": ("microseconds", 6),
    "SSSS": ("dayseconds", 4), "SSSSS": ("dayseconds", 5), "MM": ("month", 2),
    "DDD": ("yearday", 3), "IDDD": ("yearday", 3), "DD": ("day", 2), "D": ("weekday", 1),
    "ID": ("weekday", 1), "WW": ("week", 2), "IW": ("week", 2), "Q": ("", 1),
    "CC": ("century", 2), "W": ("monthweek", 1), "J": ("julian", 1),
    **{word: ("year", len(word)) for word in ("YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "I")},
    **{f"FF{digits}": ("microseconds", digits) for digits in range(1, 7)},
    "Y,YYY": ("year", 5),
}  # fmt: skip
"""Which field a word says by a number, and its digits at most where they are counted."""
_OF_DIGITS = frozenset(_NUMBERS) | {"TZM"}
_OF_WEEKS = frozenset(["IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I"])
_GREGORIAN = frozenset(
    ("DDD", "DD", "D", "MM", "MONTH", "MON", "RM", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y")
)
