"""Arithmetic on datums, by PostgreSQL's rules.

    INT8    with INT8       INT8; overflow is 22003
    DECIMAL with INT8       DECIMAL, exact
    FLOATs  with any        FLOAT8; overflow to infinity is 22003
    moments ± INTERVAL      TIMESTAMPTZ; TIMESTAMP of a TIMESTAMP and of a DATE
    DATE    ± INT8          DATE

NULL with anything is NULL. DuckDB computes what else there is: quotients and remainders, FLOAT4
with FLOAT4, moments with one another, intervals with numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isinf
from operator import add, mul, sub
from typing import Any

from ...catalog.values.column_types import (
    DECIMAL,
    FLOAT8,
    INT8,
    INT8_MAX,
    INT8_MIN,
    ColumnType,
    Datum,
)
from ...catalog.values.errors import SQLError
from ...catalog.values.interval import Interval, added
from ...catalog.values.session_zone import clock_of, instant, session_zone
from ...catalog.values.type_kinds import FLOATS, TypeKind

Operation = Callable[[Datum, Datum], Datum]

_EXACT = Context(prec=90, rounding=ROUND_HALF_UP)
"""Holds any product of two 38-digit decimals."""

OPERATORS = ("+", "-", "*")


def operation(
    operator: str, left: TypeKind, right: TypeKind
) -> tuple[ColumnType, Operation] | None:
    """The type and the function of `left operator right`; None where it is not arithmetic."""
    assert operator in OPERATORS, operator
    kinds = {left, right}
    if kinds == {TypeKind.INT8}:
        return INT8, _INTEGER[operator]
    if kinds <= {TypeKind.INT8, TypeKind.DECIMAL}:
        return DECIMAL, _DECIMAL[operator]
    if kinds != {TypeKind.FLOAT4} and kinds <= {TypeKind.INT8, TypeKind.DECIMAL, *FLOATS}:
        return FLOAT8, _FLOAT[operator]
    return _moved(operator, left, right)


def negate(kind: TypeKind, value: Datum) -> Datum:
    """Returns `-value`. Raises SQLError 22003 where the type has no such value."""
    match value:
        case int() if kind is TypeKind.INT8:
            return _in_range(-value)
        case float():
            return -value
        case Decimal():
            return value.copy_negate() if value else value
    assert value is None, value
    return None


def _in_range(number: int) -> int:
    if not INT8_MIN <= number <= INT8_MAX:
        raise SQLError("22003", "int8 out of range")
    return number


def _integers(compute: Callable[[int, int], int]) -> Operation:
    def apply(left: Any, right: Any) -> Datum:
        return None if left is None or right is None else _in_range(compute(left, right))

    return apply


def _decimals(compute: Callable[[Decimal, Decimal], Decimal]) -> Operation:
    def apply(left: Any, right: Any) -> Datum:
        if left is None or right is None:
            return None
        return compute(Decimal(left), Decimal(right))

    return apply


def _floats(compute: Callable[[float, float], float]) -> Operation:
    def apply(left: Any, right: Any) -> Datum:
        if left is None or right is None:
            return None
        first, second = float(left), float(right)
        result = compute(first, second)
        if isinf(result) and not (isinf(first) or isinf(second)):
            raise SQLError("22003", "float8 out of range")
        return result

    return apply


_INTEGER = {"+": _integers(add), "-": _integers(sub), "*": _integers(mul)}
_DECIMAL = {
    "+": _decimals(_EXACT.add), "-": _decimals(_EXACT.subtract), "*": _decimals(_EXACT.multiply),
}  # fmt: skip
_FLOAT = {"+": _floats(add), "-": _floats(sub), "*": _floats(mul)}


def _moved(operator: str, left: TypeKind, right: TypeKind) -> tuple[ColumnType, Operation] | None:
    """The type and the operation of a moment that is moved by an interval or by days."""
    exchanged = operator == "+" and (left, right) not in _MOVES
    found = _MOVES.get((right, left) if exchanged else (left, right))
    if found is None or operator == "*":
        return None
    kind, move = found

    def apply(first: Any, second: Any) -> Datum:
        if first is None or second is None:
            return None
        moment, by = (second, first) if exchanged else (first, second)
        return move(moment, -by if operator == "-" else by)

    return ColumnType(kind), apply


def _later(moment: datetime, interval: Interval) -> Datum:
    """Months and days are those of the session's calendar, hours are hours."""
    if moment.tzinfo is None or session_zone() is UTC:
        return added(moment, interval)
    days = Interval(months=interval.months, days=interval.days)
    moved = instant(added(clock_of(moment), days)) if interval.months or interval.days else moment
    return added(moved, Interval(microseconds=interval.microseconds))


def _days_later(day: date, count: int) -> Datum:
    try:
        return day + timedelta(days=count)
    except OverflowError:
        raise SQLError("22008", "date out of range") from None


_MOVES: dict[tuple[TypeKind, TypeKind], tuple[TypeKind, Callable[[Any, Any], Datum]]] = {
    (TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL): (TypeKind.TIMESTAMPTZ, _later),
    (TypeKind.TIMESTAMP, TypeKind.INTERVAL): (TypeKind.TIMESTAMP, _later),
    (TypeKind.DATE, TypeKind.INTERVAL): (
        TypeKind.TIMESTAMP,
        lambda day, interval: added(datetime.combine(day, time.min), interval),
    ),
    (TypeKind.DATE, TypeKind.INT8): (TypeKind.DATE, _days_later),
}
