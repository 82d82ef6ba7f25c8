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
from .row_functions import define

_DAY_SECONDS = 86_400


def install_intervals(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    result = ("INTERVAL", pa.month_day_nano_interval())
    for name, function, parameters in _FUNCTIONS:
        define(connection, name, _of_datums(function), result, parameters)


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


def _of_datums(function: Callable[..., Interval | None]) -> Callable[..., Any]:
    """The function on Arrow's values."""

    def call(*values: Any) -> Any:
        made = function(*(interval_of(value) or value for value in values))
        return None if made is None else (made.months, made.days, made.microseconds * 1000)

    return call
