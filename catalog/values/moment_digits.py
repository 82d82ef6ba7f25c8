"""Times and timestamps of fewer digits than microseconds, such as TIMESTAMP(3): they are rounded.

Halves are rounded away from the year 2000, and those of a time of day up, as PostgreSQL rounds the
microseconds that it counts from there.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from .column_type import ColumnType
from .errors import SQLError

MOMENT_DIGITS = 6
"""Fractional digits of a second that are kept where no fewer are asked for."""

_SINCE = datetime(2000, 1, 1)
_SINCE_UTC = _SINCE.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def rounded_timestamp(type: ColumnType, moment: datetime) -> datetime:
    """`moment` with the digits of a TIMESTAMP or TIMESTAMPTZ. Raises SQLError 22008."""
    if type.precision is None:
        return moment
    since = _SINCE if moment.tzinfo is None else _SINCE_UTC
    count = _rounded((moment - since) // _MICROSECOND, type.precision)
    try:
        return since + count * _MICROSECOND
    except OverflowError:
        raise SQLError("22008", f"{type.sql_name} out of range: {moment}") from None


def rounded_time(type: ColumnType, clock: time) -> time:
    """`clock` with the digits of a TIME. Raises SQLError 22008 where that is midnight."""
    if type.precision is None:
        return clock
    moment = rounded_timestamp(type, datetime.combine(_SINCE, clock))
    if moment.date() != date(2000, 1, 1):
        raise SQLError("22008", f"{type.sql_name} out of range: {clock} is rounded to 24:00:00")
    return moment.time()


def _rounded(microseconds: int, digits: int) -> int:
    unit: int = 10 ** (MOMENT_DIGITS - digits)
    whole = (abs(microseconds) + unit // 2) // unit * unit
    return whole if microseconds >= 0 else -whole
