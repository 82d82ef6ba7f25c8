"""How a session has its dates, intervals and bytes written: DateStyle, IntervalStyle, bytea_output.

    style                                 DATE         TIMESTAMPTZ
    ISO                                   1997-12-17   1997-12-17 07:37:16+00
    SQL, MDY                              12/17/1997   12/17/1997 07:37:16 UTC
    Postgres, DMY                         17-12-1997   Wed 17 Dec 07:37:16 1997 UTC
    German                                17.12.1997   17.12.1997 07:37:16 UTC

    postgres            1 year 2 mons -3 days +04:05:06
    postgres_verbose    @ 1 year 2 mons -3 days 4 hours 5 mins 6 secs
    sql_standard        +1-2 -3 +4:05:06
    iso_8601            P1Y2M-3DT4H5M6S

    hex                 \\x0061
    escape              \\000a

The forms are those of PostgreSQL's datetime.c and varlena.c. A style is of a session, and its
context's as the zone is (`session_zone`); what no session asks for is written plainly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache
from typing import Any

from .interval import Interval, clock_text
from .type_kinds import TypeKind


class DateForm(Enum):
    ISO = "ISO"
    SQL = "SQL"
    POSTGRES = "Postgres"
    GERMAN = "German"


class DateOrder(Enum):
    MDY = "MDY"
    DMY = "DMY"
    YMD = "YMD"


class IntervalForm(Enum):
    POSTGRES = "postgres"
    VERBOSE = "postgres_verbose"
    SQL_STANDARD = "sql_standard"
    ISO_8601 = "iso_8601"


class BytesForm(Enum):
    HEX = "hex"
    ESCAPE = "escape"


@dataclass(frozen=True, slots=True)
class TextStyle:
    """A session's style. `name` says all of it, for plans and functions to be told by."""

    dates: DateForm
    order: DateOrder
    intervals: IntervalForm
    bytes: BytesForm

    @property
    def name(self) -> str:
        parts = (self.dates, self.order, self.intervals, self.bytes)
        return " ".join(part.value for part in parts)

    def writes_plainly(self, kind: TypeKind) -> bool:
        """Whether texts of a kind are as where no session says otherwise."""
        match kind:
            case TypeKind.DATE | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
                return self.dates is DateForm.ISO
            case TypeKind.INTERVAL:
                return self.intervals is IntervalForm.POSTGRES
            case TypeKind.BYTES:
                return self.bytes is BytesForm.HEX
        return True


@cache
def style_of(
    dates: DateForm, order: DateOrder, intervals: IntervalForm, bytes_form: BytesForm
) -> TextStyle:
    """The one style of its kind: there are 96, and they are told apart by identity."""
    return TextStyle(dates, order, intervals, bytes_form)


PLAIN = style_of(DateForm.ISO, DateOrder.MDY, IntervalForm.POSTGRES, BytesForm.HEX)


def style_named(name: str) -> TextStyle:
    """The style of such a `TextStyle.name`."""
    dates, order, intervals, bytes_form = name.split(" ")
    return style_of(
        DateForm(dates), DateOrder(order), IntervalForm(intervals), BytesForm(bytes_form)
    )


Writer = Callable[[Any], str]


def writer(kind: TypeKind, style: TextStyle) -> Writer | None:
    """What writes the values of a kind; None where they are written plainly. A TIMESTAMPTZ is given
    in the zone that it is to be shown in."""
    if style.writes_plainly(kind):
        return None
    match kind:
        case TypeKind.DATE:
            return lambda value: date_text(value, style)
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return lambda value: moment_text(value, style)
        case TypeKind.INTERVAL:
            return _INTERVALS[style.intervals]
    assert kind is TypeKind.BYTES, kind
    return escaped


# Dates

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip


def date_text(value: date, style: TextStyle) -> str:
    year, month, day = f"{value.year:04}", f"{value.month:02}", f"{value.day:02}"
    if style.dates is DateForm.GERMAN:
        return f"{day}.{month}.{year}"
    assert style.dates is not DateForm.ISO, "written plainly"
    mark = "/" if style.dates is DateForm.SQL else "-"
    day_first = style.order is DateOrder.DMY
    return mark.join((day, month, year) if day_first else (month, day, year))


def moment_text(value: datetime, style: TextStyle) -> str:
    """A moment, with the name of its zone if it has one."""
    time = value.time().replace(tzinfo=None)
    clock = time.isoformat("microseconds").rstrip("0") if time.microsecond else time.isoformat()
    zone = "" if value.tzinfo is None else f" {value.tzname()}"
    if style.dates is not DateForm.POSTGRES:
        return f"{date_text(value, style)} {clock}{zone}"
    month, day = _MONTHS[value.month - 1], f"{value.day:02}"
    of_year = f"{day} {month}" if style.order is DateOrder.DMY else f"{month} {day}"
    return f"{_DAYS[value.weekday()]} {of_year} {clock} {value.year:04}{zone}"


# Intervals


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields that the forms are made of: each has the sign of the part that it is of."""

    years: int
    months: int
    days: int
    hours: int
    minutes: int
    microseconds: int
    """The seconds, with their fraction."""

    def __neg__(self) -> _Fields:
        return _Fields(*(-field for field in self.all))

    @property
    def all(self) -> tuple[int, ...]:
        return (
            self.years, self.months, self.days, self.hours, self.minutes, self.microseconds,
        )  # fmt: skip


def _fields(value: Interval) -> _Fields:
    sign, time = (-1 if value.microseconds < 0 else 1), abs(value.microseconds)
    years, months = divmod(abs(value.months), 12)
    turned = -1 if value.months < 0 else 1
    minutes, microseconds = divmod(time, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    return _Fields(
        turned * years, turned * months, value.days, sign * hours, sign * minutes,
        sign * microseconds,
    )  # fmt: skip


def _seconds(microseconds: int) -> str:
    """`6` or `6.07`, without a sign."""
    whole, fraction = divmod(abs(microseconds), 1_000_000)
    return f"{whole}.{fraction:06}".rstrip("0") if fraction else str(whole)


def sql_standard(value: Interval) -> str:
    fields = _fields(value)
    negative, positive = min(fields.all) < 0, max(fields.all) > 0
    of_calendar = bool(value.months)
    of_time = bool(value.days or value.microseconds)
    if not negative and not positive:
        return "0"
    if (negative and positive) or (of_calendar and of_time):
        return " ".join(
            f"{'-' if part < 0 else '+'}{shown}"
            for part, shown in (
                (value.months, f"{abs(fields.years)}-{abs(fields.months)}"),
                (value.days, str(abs(value.days))),
                (value.microseconds, _short_clock(value.microseconds)),
            )
        )
    sign = "-" if negative else ""
    if of_calendar:
        return f"{sign}{abs(fields.years)}-{abs(fields.months)}"
    days = f"{abs(value.days)} " if value.days else ""
    return f"{sign}{days}{_short_clock(value.microseconds)}"


def _short_clock(microseconds: int) -> str:
    """`4:05:06`: the hours without a zero in front."""
    clock = clock_text(abs(microseconds))
    return clock[1:] if clock.startswith("0") else clock


def iso_8601(value: Interval) -> str:
    fields = _fields(value)
    dates = ((fields.years, "Y"), (fields.months, "M"), (fields.days, "D"))
    times = [f"{n}{unit}" for n, unit in ((fields.hours, "H"), (fields.minutes, "M")) if n]
    if fields.microseconds:
        times.append(f"{'-' if fields.microseconds < 0 else ''}{_seconds(fields.microseconds)}S")
    written = "".join(f"{n}{unit}" for n, unit in dates if n)
    if times:
        written += f"T{''.join(times)}"
    return f"P{written}" if written else "PT0S"


def verbose(value: Interval) -> str:
    """The sign of the first field is told by `ago`, and those of the others are then turned."""
    fields = _fields(value)
    first = next((field for field in fields.all if field), 0)
    ago = first < 0
    if ago:
        fields = -fields
    parts = ["@"]
    for number, unit in (
        (fields.years, "year"), (fields.months, "mon"), (fields.days, "day"),
        (fields.hours, "hour"), (fields.minutes, "min"),
    ):  # fmt: skip
        if number:
            parts.append(f"{number} {unit}{'' if number == 1 else 's'}")
    if fields.microseconds:
        sign = "-" if fields.microseconds < 0 else ""
        one = abs(fields.microseconds) == 1_000_000
        parts.append(f"{sign}{_seconds(fields.microseconds)} sec{'' if one else 's'}")
    if first == 0:
        parts.append("0")
    return " ".join([*parts, "ago"] if ago else parts)


_INTERVALS: dict[IntervalForm, Writer] = {
    IntervalForm.POSTGRES: str,
    IntervalForm.VERBOSE: verbose,
    IntervalForm.SQL_STANDARD: sql_standard,
    IntervalForm.ISO_8601: iso_8601,
}


# Bytes

_ESCAPED = {
    byte: "\\\\" if byte == 0x5C else chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
    for byte in range(256)
}


def escaped(value: bytes) -> str:
    """Printable ASCII as it is, and every other byte as three octal digits behind a backslash."""
    return "".join([_ESCAPED[byte] for byte in value])
