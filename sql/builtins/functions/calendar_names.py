"""Names of days and months in English, and the Julian days of dates."""

from __future__ import annotations

from datetime import date

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
NAME_WIDTH = 9
"""Letters of the longest, September."""
_JULIAN_DAY_ZERO = 1721425


def julian_day(day: date) -> int:
    return day.toordinal() + _JULIAN_DAY_ZERO


def of_julian_day(number: int) -> date:
    """Raises ValueError and OverflowError for days outside of the years 1 to 9999."""
    return date.fromordinal(number - _JULIAN_DAY_ZERO)


def cased(name: str, like: str) -> str:
    """The name in capitals, in small letters or with a capital first, as `like` is."""
    if like.isupper():
        return name.upper()
    return name.lower() if like.islower() else name
