"""Arithmetic on times and intervals, by PostgreSQL's rules.

    TIMESTAMPTZ ± INTERVAL   TIMESTAMPTZ       TIMESTAMPTZ - TIMESTAMPTZ   INTERVAL, days and time
    TIMESTAMP ± INTERVAL     TIMESTAMP         TIMESTAMP - TIMESTAMP       INTERVAL, likewise
    DATE ± INTERVAL          TIMESTAMP         DATE - DATE                 INT8, days
    DATE ± INT8              DATE              TIME - TIME                 INTERVAL
    TIME ± INTERVAL          TIME, of a day    INTERVAL ± INTERVAL         INTERVAL
    INTERVAL * INT8          INTERVAL

What else there is (fractions of intervals) DuckDB computes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from ...catalog.values.column_types import ColumnType, Datum
from ...catalog.values.errors import SQLError
from ...catalog.values.interval import DAY, Interval, added, added_to_time, microseconds_of_day
from ...catalog.values.session_zone import clock_of, instant, session_zone
from ...catalog.values.type_kinds import TypeKind

Operation = Callable[[Datum, Datum], Datum]

_MICROSECOND = timedelta(microseconds=1)


def time_operation(
    operator: str, left: TypeKind, right: TypeKind
) -> tuple[ColumnType, Operation] | None:
    """The type and the function of `left operator right`; None where it is none of these."""
    found = _OPERATIONS.get((operator, left, right))
    if found is None and operator in "+*":
        found = _OPERATIONS.get((operator, right, left))
        if found is not None:
            kind, swapped = found
            return ColumnType(kind), _unless_null(lambda left, right: swapped(right, left))
    return None if found is None else (ColumnType(found[0]), _unless_null(found[1]))


def _unless_null(compute: Callable[[Any, Any], Datum]) -> Operation:
    def apply(left: Datum, right: Datum) -> Datum:
        return None if left is None or right is None else compute(left, right)

    return apply


def _later(moment: datetime, interval: Interval) -> Datum:
    """Months and days are those of the session's calendar, hours are hours."""
    if moment.tzinfo is None or session_zone() is UTC:
        return added(moment, interval)
    days = Interval(months=interval.months, days=interval.days)
    moved = instant(added(clock_of(moment), days)) if interval.months or interval.days else moment
    return added(moved, Interval(microseconds=interval.microseconds))


def _day_later(day: date, interval: Interval) -> Datum:
    return added(datetime.combine(day, time.min), interval)


def _days_later(day: date, count: int) -> Datum:
    try:
        return day + timedelta(days=count)
    except OverflowError:
        raise SQLError("22008", "date out of range") from None


def _between(later: datetime, earlier: datetime) -> Datum:
    microseconds = (later - earlier) // _MICROSECOND
    sign = -1 if microseconds < 0 else 1
    days, rest = divmod(abs(microseconds), DAY)
    return Interval(days=sign * days, microseconds=sign * rest)


def _times(interval: Interval, factor: int) -> Datum:
    return Interval(
        months=interval.months * factor,
        days=interval.days * factor,
        microseconds=interval.microseconds * factor,
    )


_DATE, _TIME, _SPAN, _INT8 = TypeKind.DATE, TypeKind.TIME, TypeKind.INTERVAL, TypeKind.INT8
_LOCAL, _INSTANT = TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ

_OPERATIONS: dict[tuple[str, TypeKind, TypeKind], tuple[TypeKind, Callable[[Any, Any], Datum]]] = {
    ("+", _INSTANT, _SPAN): (_INSTANT, _later),
    ("-", _INSTANT, _SPAN): (_INSTANT, lambda moment, interval: _later(moment, -interval)),
    ("-", _INSTANT, _INSTANT): (_SPAN, _between),
    ("+", _LOCAL, _SPAN): (_LOCAL, _later),
    ("-", _LOCAL, _SPAN): (_LOCAL, lambda moment, interval: _later(moment, -interval)),
    ("-", _LOCAL, _LOCAL): (_SPAN, _between),
    ("+", _DATE, _SPAN): (_LOCAL, _day_later),
    ("-", _DATE, _SPAN): (_LOCAL, lambda day, interval: _day_later(day, -interval)),
    ("-", _DATE, _DATE): (_INT8, lambda later, earlier: (later - earlier).days),
    ("+", _DATE, _INT8): (_DATE, _days_later),
    ("-", _DATE, _INT8): (_DATE, lambda day, count: _days_later(day, -count)),
    ("+", _TIME, _SPAN): (_TIME, added_to_time),
    ("-", _TIME, _SPAN): (_TIME, lambda moment, interval: added_to_time(moment, -interval)),
    ("-", _TIME, _TIME): (
        _SPAN,
        lambda later, earlier: Interval(
            microseconds=microseconds_of_day(later) - microseconds_of_day(earlier)
        ),
    ),
    ("+", _SPAN, _SPAN): (_SPAN, lambda left, right: left + right),
    ("-", _SPAN, _SPAN): (_SPAN, lambda left, right: left + -right),
    ("*", _SPAN, _INT8): (_SPAN, _times),
}
