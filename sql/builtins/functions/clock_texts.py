"""timeofday(): the clock as the C library writes it, in English."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def timeofday(zone: str) -> Callable[[datetime], str]:
    """`Wed Feb 26 13:09:12.034567 2020 CET`, by the clocks of a zone."""
    place = ZoneInfo(zone)

    def told(moment: datetime) -> str:
        at = moment.astimezone(place)
        day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
        return f"{day} {month} {at.day:02} {at:%H:%M:%S.%f} {at.year} {at.tzname()}"

    return told
