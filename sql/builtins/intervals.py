"""Arithmetic on intervals that DuckDB lacks, as functions that it calls with whole columns.

A month is thirty days where a fraction of one is left over, and a day twenty-four hours, as
PostgreSQL has it (`interval_mul` and its neighbours in its `timestamp.c`):

    1 month / 2      15 days
    sum, avg         of months, days and time, each by itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.errors import SQLError
from ...catalog.values.interval import MONTH_DAYS, Interval, interval_of
from ..results.passed_errors import passed_on

_DAY_SECONDS = 86_400


def install_intervals(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    define: Any = connection.create_function  # its stubs know no type that is written as SQL's
    for name, function, parameters in _FUNCTIONS:
        define(name, _by_columns(function, len(parameters)), parameters, "INTERVAL", type="arrow",
               null_handling="special")  # fmt: skip


def times(interval: Interval, factor: float) -> Interval:
    return _scaled(interval, lambda part: part * factor)


def over(interval: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise SQLError("22012", "division by zero")
    return _scaled(interval, lambda part: part / divisor)


def _scaled(interval: Interval, scale: Callable[[int], float]) -> Interval:
    try:
        months, days = int(scale(interval.months)), int(scale(interval.days))
        rest_days = _rounded((scale(interval.months) - months) * MONTH_DAYS)
        whole_days = int(rest_days)
        seconds = scale(interval.days) - days + rest_days - whole_days
        seconds = _rounded(seconds * _DAY_SECONDS)
        if abs(seconds) >= _DAY_SECONDS:
            more = int(seconds / _DAY_SECONDS)
            days, seconds = days + more, seconds - more * _DAY_SECONDS
        microseconds = round(scale(interval.microseconds) + seconds * 1_000_000)
    except (OverflowError, ValueError):  # infinities, and what is no number
        raise SQLError("22008", "interval out of range") from None
    return Interval(months=months, days=days + whole_days, microseconds=microseconds)


def _rounded(number: float) -> float:
    """To the microsecond, which hides what binary fractions lose."""
    return round(number * 1_000_000) / 1_000_000


def total(several: Sequence[object]) -> Interval | None:
    """Returns the sum of intervals, None among them left out; None for no interval."""
    intervals = [found for one in several if (found := interval_of(one)) is not None]
    if not intervals:
        return None
    return Interval(
        months=sum(one.months for one in intervals),
        days=sum(one.days for one in intervals),
        microseconds=sum(one.microseconds for one in intervals),
    )


def average(several: Sequence[object]) -> Interval | None:
    """Returns the average of intervals, None among them left out; None for no interval."""
    summed = total(several)
    return None if summed is None else over(summed, sum(one is not None for one in several))


_FUNCTIONS: tuple[tuple[str, Callable[..., Interval | None], list[str]], ...] = (
    ("interval_times", times, ["INTERVAL", "DOUBLE"]),
    ("interval_over", over, ["INTERVAL", "DOUBLE"]),
    ("interval_sum", total, ["INTERVAL[]"]),
    ("interval_average", average, ["INTERVAL[]"]),
)


def _by_columns(function: Callable[..., Interval | None], count: int) -> Callable[..., Any]:
    """The function on columns: NULL where an operand is, and errors that pass through DuckDB."""

    def row(values: Sequence[Any]) -> Any:
        if None in values:
            return None
        made = function(*(interval_of(value) or value for value in values))
        if made is None:
            return None
        return (made.months, made.days, made.microseconds * 1000)

    def several(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([row(values) for values in rows], pa.month_day_nano_interval())
        except SQLError as error:
            raise passed_on(error) from None

    # DuckDB counts the parameters of what it is given.
    one: Callable[..., Any] = lambda column: several(column)  # noqa: E731
    two: Callable[..., Any] = lambda first, second: several(first, second)  # noqa: E731
    return one if count == 1 else two
