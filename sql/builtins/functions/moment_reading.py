"""to_date() and to_timestamp(): a text read by a pattern.

The text is gone through word by word (`_Reader`); what is found are fields, which may not
contradict each other, and of them a date and a time are made (`_made`). Blanks before and behind a
field are passed over; a separator of the pattern matches any separator or blank, or none. Words of
PostgreSQL's patterns that are not in `_NAMES` and `_NUMBERS` are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from ....catalog.values.errors import SQLError
from ....catalog.values.literals import to_utc
from ....catalog.values.session_zone import SessionZone, follow, forget
from .calendar_names import MONTHS
from .moment_pattern import SPACES, Piece, PieceKind, is_separator, moment_pattern

_INT4_MIN, _INT4_MAX = -(2**31), 2**31 - 1
_ZONE_HOURS_MAX = 15


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
                return moment.replace(tzinfo=UTC) - offset
            before = follow(SessionZone(zone))  # DuckDB's threads are no session's
            try:
                return to_utc(moment)
            finally:
                forget(before)
        except OverflowError:
            raise SQLError("22008", "timestamp out of range") from None

    return read


@dataclass(slots=True)
class _Found:
    """The fields of a text by their names in `values`, and the sign of its zone: 0 for none."""

    values: dict[str, int] = field(default_factory=dict)
    half_days: bool = False
    zone_sign: int = 0

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
        year, month, day = self.of("year"), self.of("month") or 1, self.of("day") or 1
        days = self.of("yearday")
        if days and (month <= 1 or day <= 1):
            if not year:
                raise SQLError("22007", "cannot calculate day of year without year information")
            if not 0 < days <= date(year, 12, 31).timetuple().tm_yday:
                raise _out_of_range(text)
            counted = date(year, 1, 1) + timedelta(days=days - 1)
            month = counted.month if month <= 1 else month
            day = counted.day if day <= 1 else day
        return date(year, month, day)

    def _microseconds(self, clock: tuple[int, int, int], text: str) -> int:
        hour, minute, second = clock
        microseconds = self.of("milliseconds") * 1000 + self.of("microseconds")
        whole = 0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60
        if not whole or not 0 <= microseconds < 1_000_000:
            raise _out_of_range(text)
        return ((hour * 60 + minute) * 60 + second) * 1_000_000 + microseconds

    def _clock(self) -> tuple[int, int, int]:
        hour, minute = self.of("hour"), self.of("minute")
        if self.half_days:
            if not 1 <= hour <= 12:
                raise SQLError(
                    "22007",
                    f'hour "{hour}" is invalid for the 12-hour clock',
                    hint="Use the 24-hour clock, or give an hour between 1 and 12.",
                )
            hour = hour % 12 + (12 if self.of("pm") else 0)
        return hour, minute, self.of("second")

    def offset(self, text: str) -> timedelta | None:
        """East of UTC, where the text says it."""
        if not self.zone_sign:
            return None
        hours, minutes = self.of("zonehours"), self.of("zoneminutes")
        if not 0 <= hours <= _ZONE_HOURS_MAX or not 0 <= minutes < 60:
            raise SQLError("22009", f'time zone displacement out of range: "{text}"')
        return self.zone_sign * timedelta(hours=hours, minutes=minutes)


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
        self.found = _Found()

    def read(self) -> None:
        for place, piece in enumerate(self._pieces):
            if self._at >= len(self._text):
                break
            before = piece.kind is not PieceKind.LETTER or place == 0
            if before:
                self._skip_blanks()
            match piece.kind:
                case PieceKind.SEPARATOR | PieceKind.SPACE:
                    self._take_separator()
                case PieceKind.LETTER:
                    if self._extra > 0:
                        self._extra -= 1
                    else:
                        self._at += 1
                case PieceKind.WORD:
                    self._take(place, piece)
                    self._extra = 0
                    self._skip_blanks()

    def _skip_blanks(self) -> None:
        while self._letter() in SPACES and self._letter():
            self._at += 1
            self._extra += 1

    def _letter(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take_separator(self) -> None:
        self._extra -= 1
        letter = self._letter()
        if letter and (letter in SPACES or is_separator(letter)):
            self._at += 1
            self._extra += 1

    def _take(self, place: int, piece: Piece) -> None:
        word = piece.word
        if word not in _NAMES and word not in _NUMBERS and word not in _ZONES:
            raise SQLError(
                "0A000",
                f'not supported: "{piece.text}" in a pattern of to_date() and to_timestamp()',
                hint=f"Patterns have {', '.join([*_NUMBERS, *_NAMES, *_ZONES])}.",
            )
        if word in _NAMES:
            self._take_name(piece, *_NAMES[word])
        elif word in _ZONES:
            self._take_zone(place, piece)
        else:
            self._take_number(place, piece)

    def _take_name(self, piece: Piece, name: str, known: Sequence[str], first: int) -> None:
        rest = self._text[self._at :]
        for number, each in enumerate(known):
            if rest[: len(each)].lower() == each.lower():
                self._at += len(each)
                self.found.set(name, number + first, piece.text)
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

    def _take_number(self, place: int, piece: Piece) -> None:
        name, width = _NUMBERS[piece.word]
        found = self.found
        if name == "year":
            value, length = self._number(place, piece, width)
            digits = len(piece.word)
            found.set(name, value, piece.text)
            found.adjust(name, _near_2020(value) if digits < 4 and length < 4 else value)
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

    def _take_digits(self, place: int, piece: Piece, name: str, width: int) -> None:
        value, _ = self._number(place, piece, width)
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


_NAMES: dict[str, tuple[str, Sequence[str], int]] = {
    **dict.fromkeys(("AM", "PM"), ("pm", ("am", "pm"), 0)),
    **dict.fromkeys(("A.M.", "P.M."), ("pm", ("a.m.", "p.m."), 0)),
    "MONTH": ("month", MONTHS, 1),
    "MON": ("month", [name[:3] for name in MONTHS], 1),
}
"""Which field a word says by a name, the names, and the number of the first."""
_NUMBERS: dict[str, tuple[str, int]] = {
    "YYYY": ("year", 4), "YYY": ("year", 3), "YY": ("year", 2), "Y": ("year", 1),
    "MM": ("month", 2), "DD": ("day", 2), "DDD": ("yearday", 3),
    "HH": ("hour", 2), "HH12": ("hour", 2), "HH24": ("hour", 2), "MI": ("minute", 2),
    "SS": ("second", 2), "MS": ("milliseconds", 3), "US": ("microseconds", 6),
}  # fmt: skip
"""Which field a word says by a number, and its digits at most where they are counted."""
_ZONES = ("TZH", "TZM")
_OF_DIGITS = frozenset(_NUMBERS) | {"TZM"}
