"""The texts of intervals, after PostgreSQL's interval_in.

    1 year 2 mons -3 days 04:05:06.7      what interval_out writes
    1.5 hours, 90 min, 2 weeks ago        numbers and units, abbreviated or not
    1-2   3 04:05   04:05:06              years and months, days and a time, a time
    P1Y2M3DT4H5M6S                        ISO 8601

A fraction of a year goes into its months, of a month or week into days, of a day into time.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from .errors import SQLError
from .interval import DAY, MONTH_DAYS, Interval
from .literals import invalid_text

LENGTH_MAX = 256
"""Characters of a literal: no interval needs a quarter of it."""

_SECOND = 1_000_000
_MONTHS = {"year": 12, "decade": 120, "century": 1200, "millennium": 12_000, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROSECONDS = {
    "hour": 3600 * _SECOND,
    "minute": 60 * _SECOND,
    "second": _SECOND,
    "millisecond": 1000,
    "microsecond": 1,
}
_NAMES = {
    "year": "y yr yrs year years",
    "decade": "dec decade decades decs",
    "century": "c cent century centuries",
    "millennium": "mil mils millennia millennium",
    "month": "mon mons month months",
    "week": "w week weeks",
    "day": "d day days",
    "hour": "h hr hrs hour hours",
    "minute": "m min mins minute minutes",
    "second": "s sec secs second seconds",
    "millisecond": "ms msec msecs millisecond milliseconds msecond mseconds",
    "microsecond": "us usec usecs microsecond microseconds usecond useconds",
}
_UNITS = {name: unit for unit, names in _NAMES.items() for name in names.split()}
_SECONDS = ("second", "millisecond", "microsecond")
_ISO_DATE = {"Y": "year", "M": "month", "W": "week", "D": "day"}
_ISO_TIME = {"H": "hour", "M": "minute", "S": "second"}


def read_interval(text: str) -> Interval:
    """Raises SQLError: 22007 for bad text, 22008 (or 22015, as in PostgreSQL) out of range."""
    try:
        body = text.strip()
        if not body or len(body) > LENGTH_MAX or not body.isascii():
            raise ValueError
        if body[0] == "P":
            return _read_iso(body)
        return _read_fields(body.lower())
    except (ValueError, KeyError, InvalidOperation):
        raise invalid_text("interval", text, "22007") from None
    except SQLError as error:
        raise SQLError(
            "22015", f'interval field value out of range: "{text}"', detail=error.detail
        ) from None


class _Sum:
    """The sum of the fields that were read."""

    def __init__(self) -> None:
        self.months = 0
        self.days = 0
        self.microseconds = 0
        self._named: set[str] = set()

    def name(self, *units: str) -> None:
        """Each field is there once."""
        if not self._named.isdisjoint(units):
            raise ValueError
        self._named.update(units)

    def add(self, number: Decimal, unit: str) -> None:
        whole = int(number)
        fraction = number - whole
        if unit in _MONTHS:
            months = _MONTHS[unit]
            self.months += whole * months
            if unit == "month":
                self._add_days(fraction * MONTH_DAYS)
            else:
                self.months += _rounded(fraction * months)
        elif unit in _DAYS:
            self.days += whole * _DAYS[unit]
            if unit == "week":
                self._add_days(fraction * 7)
            else:
                self.microseconds += _rounded(fraction * DAY)
        else:
            self.microseconds += _rounded(number * _MICROSECONDS[unit])

    def _add_days(self, days: Decimal) -> None:
        whole = int(days)
        self.days += whole
        self.microseconds += _rounded((days - whole) * DAY)

    def interval(self, *, ago: bool = False) -> Interval:
        found = Interval(months=self.months, days=self.days, microseconds=self.microseconds)
        return -found if ago else found


def _rounded(number: Decimal) -> int:
    return int(number.quantize(Decimal(1), ROUND_HALF_EVEN))


def _read_fields(body: str) -> Interval:
    """Fields from left to right: a number waits for the unit behind it."""
    found, ago = _Sum(), False
    waiting: str | None = None
    tokens = list(_tokens(body))
    if tokens and tokens[0] == "@":
        del tokens[0]
    if tokens and tokens[-1] == "ago":
        ago = True
        del tokens[-1]
    if not tokens:
        raise ValueError
    for token in tokens:
        if token[0].isalpha():
            if waiting is None or token not in _UNITS:
                raise ValueError
            _add_once(found, _number(waiting), _UNITS[token])
            waiting = None
            continue
        if waiting is not None and ":" not in token:
            raise ValueError
        if ":" in token:
            if waiting is not None:  # '3 04:05' is three days
                _add_once(found, _number(waiting), "day")
                waiting = None
            found.name("hour", "minute", *_SECONDS)
            found.microseconds += _clock(token)
        elif "-" in token[1:]:
            found.name("month")
            found.months += _years_and_months(token)
        else:
            waiting = token
    if waiting is not None:
        _add_once(found, _number(waiting), "second")
    return found.interval(ago=ago)


def _add_once(found: _Sum, number: Decimal, unit: str) -> None:
    """Seconds with a fraction leave nothing to what is smaller."""
    fraction = unit == "second" and number != int(number)
    found.name(*(_SECONDS if fraction else (unit,)))
    found.add(number, unit)


def _tokens(body: str) -> Iterator[str]:
    """Words, and whatever is no word: `1h30m` is four tokens."""
    for part in body.split():
        start = 0
        for place in range(1, len(part)):
            if part[place].isalpha() != part[place - 1].isalpha():
                yield part[start:place]
                start = place
        yield part[start:]


def _number(token: str) -> Decimal:
    if "_" in token or token in ("+", "-", "."):
        raise ValueError
    number = Decimal(token)
    if not number.is_finite():
        raise ValueError
    return number


def _digits(token: str) -> int:
    if not token.isdecimal():
        raise ValueError
    return int(token)


def _signed(token: str) -> tuple[int, str]:
    if token[0] in "+-":
        return (-1 if token[0] == "-" else 1), token[1:]
    return 1, token


def _clock(token: str) -> int:
    """`04:05`, `04:05:06.7`, `05:06.7`: two parts are hours and minutes unless there is a point."""
    sign, rest = _signed(token)
    parts = rest.split(":")
    if len(parts) == 2:
        parts = ["0", *parts] if "." in parts[1] else [*parts, "0"]
    if len(parts) != 3:
        raise ValueError
    hours, minutes = _digits(parts[0]), _digits(parts[1])
    if not parts[2].replace(".", "", 1).isdecimal():
        raise ValueError
    seconds = Decimal(parts[2])
    if minutes > 59 or seconds > 60:
        raise SQLError("22008", "interval out of range")
    return sign * ((hours * 60 + minutes) * 60 * _SECOND + _rounded(seconds * _SECOND))


def _years_and_months(token: str) -> int:
    sign, rest = _signed(token)
    years, _, months = rest.partition("-")
    if _digits(months) > 11:
        raise SQLError("22008", "interval out of range")
    return sign * (_digits(years) * 12 + _digits(months))


def _read_iso(body: str) -> Interval:
    """`P[nY][nM][nW][nD][T[nH][nM][nS]]`, each number with a sign of its own if need be."""
    found, units, start = _Sum(), _ISO_DATE, 1
    if len(body) < 3:
        raise ValueError
    for place in range(1, len(body)):
        character = body[place]
        if character == "T":
            if start != place or units is _ISO_TIME:
                raise ValueError
            units, start = _ISO_TIME, place + 1
        elif character.isalpha():
            found.add(_number(body[start:place]), units.get(character, ""))
            start = place + 1
    if start != len(body):
        raise ValueError
    return found.interval()
