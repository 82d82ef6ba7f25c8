"""Intervals of time, as PostgreSQL has them: months, days and microseconds that do not mix.

    INTERVAL '1 year 2 months 3 days 04:05:06'     months=14  days=3  microseconds=14706000000

A month is no number of days and a day no number of hours until an interval is added to a moment.
Where intervals are compared a month counts thirty days and a day twenty-four hours, so that
`1 month` and `30 days` are equal, and one of them fits into a primary key.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import total_ordering
from struct import Struct

from .errors import SQLError

DAY = 86_400_000_000
"""Microseconds."""
MONTH_DAYS = 30
_MONTH = MONTH_DAYS * DAY

_FIELD_MAX = (1 << 31) - 1
MICROSECONDS_MAX = ((1 << 63) - 1) // 1000
"""Arrow counts the time of an interval in nanoseconds, in 64 bits: two million hours and a half."""

_PHYSICAL = Struct("<iiq")
"""Months, days and nanoseconds: the value as Arrow lays it out, so that columns are views."""

ORDER_BIAS = 1 << 95
"""Above what any interval comes to, in microseconds: keys hold the sum of both, unsigned."""
ORDER_BYTES = 12


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Interval:
    """An interval. Equal, and in order, by its length as comparisons count it.

    Raises SQLError 22008 where a part is out of range.
    """

    months: int = 0
    days: int = 0
    microseconds: int = 0

    def __post_init__(self) -> None:
        small = abs(self.months) <= _FIELD_MAX and abs(self.days) <= _FIELD_MAX
        if not small or abs(self.microseconds) > MICROSECONDS_MAX:
            raise SQLError(
                "22008",
                "interval out of range",
                detail="Months and days have 32 bits, the time is at most 2562047 hours.",
            )

    @property
    def length(self) -> int:
        """Microseconds, as comparisons count them."""
        return self.months * _MONTH + self.days * DAY + self.microseconds

    @property
    def fields(self) -> str:
        """The interval as a text that every reader of intervals takes alike."""
        return f"{self.months} months {self.days} days {self.microseconds} microseconds"

    @classmethod
    def of_length(cls, length: int) -> Interval:
        """An interval that has this length: in days and less, unless that is out of range."""
        days, microseconds = divmod(abs(length), DAY)
        months = min(days // MONTH_DAYS, _FIELD_MAX) if days > _FIELD_MAX else 0
        days -= months * MONTH_DAYS
        above = max(days - _FIELD_MAX, 0)
        days, microseconds = days - above, microseconds + above * DAY
        sign = -1 if length < 0 else 1
        return cls(months=sign * months, days=sign * days, microseconds=sign * microseconds)

    @classmethod
    def of_timedelta(cls, value: timedelta) -> Interval:
        return cls(days=value.days, microseconds=value.seconds * 1_000_000 + value.microseconds)

    @property
    def physical(self) -> bytes:
        return _PHYSICAL.pack(self.months, self.days, self.microseconds * 1000)

    @classmethod
    def of_physical(cls, physical: bytes) -> Interval:
        months, days, nanoseconds = _PHYSICAL.unpack(physical)
        # Toward zero: what DuckDB computes has whole microseconds, and no other is stored.
        microseconds = nanoseconds // 1000 if nanoseconds >= 0 else -(-nanoseconds // 1000)
        return cls(months=months, days=days, microseconds=microseconds)

    def __add__(self, other: Interval) -> Interval:
        return Interval(
            months=self.months + other.months,
            days=self.days + other.days,
            microseconds=self.microseconds + other.microseconds,
        )

    def __neg__(self) -> Interval:
        return Interval(months=-self.months, days=-self.days, microseconds=-self.microseconds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self.length == other.length

    def __lt__(self, other: Interval) -> bool:
        return self.length < other.length

    def __hash__(self) -> int:
        return hash(self.length)

    def __str__(self) -> str:
        """PostgreSQL's output, in its own style.

        >>> str(Interval(months=14, days=-3, microseconds=14_706_000_000))
        '1 year 2 mons -3 days +04:05:06'
        """
        parts: list[str] = []
        years = abs(self.months) // 12 * (-1 if self.months < 0 else 1)
        before = False  # whether the part in front is negative: the next one then shows its sign
        for value, unit in ((years, "year"), (self.months - years * 12, "mon"), (self.days, "day")):
            if value:
                sign = "+" if before and value > 0 else ""
                parts.append(f"{sign}{value} {unit}{'s' if value != 1 else ''}")
                before = value < 0
        if self.microseconds or not parts:
            sign = "-" if self.microseconds < 0 else "+" if before else ""
            parts.append(sign + clock_text(abs(self.microseconds)))
        return " ".join(parts)

    @property
    def iso_text(self) -> str:
        """PostgreSQL's output where IntervalStyle is iso_8601.

        >>> Interval(months=14, days=-3, microseconds=14_706_500_000).iso_text
        'P1Y2M-3DT4H5M6.5S'
        """
        years = abs(self.months) // 12 * (-1 if self.months < 0 else 1)
        sign = "-" if self.microseconds < 0 else ""
        seconds, fraction = divmod(abs(self.microseconds), 1_000_000)
        day = ((years, "Y"), (self.months - years * 12, "M"), (self.days, "D"))
        clock = ((seconds // 3600, "H"), (seconds // 60 % 60, "M"))
        written = "P" + "".join(f"{value}{unit}" for value, unit in day if value)
        if self.microseconds:
            written += "T" + "".join(f"{sign}{value}{unit}" for value, unit in clock if value)
            second = f"{seconds % 60}.{fraction:06}".rstrip("0").rstrip(".")
            written += f"{sign}{second}S" if second != "0" else ""
        return written if written != "P" else "PT0S"

    def __repr__(self) -> str:
        return f"Interval('{self}')"


def clock_text(microseconds: int) -> str:
    """`04:05:06.7`, of any number of hours."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    written = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{written}.{fraction:06}".rstrip("0") if fraction else written


def interval_of(value: object) -> Interval | None:
    """The interval of a Python value that is one; None for any other."""
    match value:
        case Interval():
            return value
        case timedelta():
            return Interval.of_timedelta(value)
        case (int() as months, int() as days, int() as nanoseconds):  # Arrow's MonthDayNano
            return Interval.of_physical(_PHYSICAL.pack(months, days, nanoseconds))
    return None


def added(moment: datetime, interval: Interval) -> datetime:
    """The moment that lies an interval away: months first, to a day that the month has.

    Raises SQLError 22008 beyond the years 1 to 9999.
    """
    try:
        count = moment.year * 12 + moment.month - 1 + interval.months
        year, month = divmod(count, 12)
        day = min(moment.day, _days_of(year, month + 1))
        moved = moment.replace(year=year, month=month + 1, day=day)
        return moved + timedelta(days=interval.days, microseconds=interval.microseconds)
    except (ValueError, OverflowError):
        raise SQLError("22008", "timestamp out of range") from None


def _days_of(year: int, month: int) -> int:
    if month == 12:
        return 31
    return (date(year, month + 1, 1) - date(year, month, 1)).days


def microseconds_of_day(moment: time) -> int:
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return seconds * 1_000_000 + moment.microsecond


def time_of_day(microseconds: int) -> time:
    seconds, fraction = divmod(microseconds, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction)
