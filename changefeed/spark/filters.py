"""Filters that the server applies; all others stay Spark's."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import datasource

COMPARISONS: dict[type[datasource.Filter], str] = {
    datasource.EqualTo: "=",
    datasource.LessThan: "<",
    datasource.LessThanOrEqual: "<=",
    datasource.GreaterThan: ">",
    datasource.GreaterThanOrEqual: ">=",
}
NULL_TESTS: dict[type[datasource.Filter], str] = {
    datasource.IsNull: "is null",
    datasource.IsNotNull: "is not null",
}

Condition = tuple[str, str, str | int | bool | None]


def condition_of(found: datasource.Filter, table: pa.Schema) -> Condition | None:
    """The condition that the server is asked for a filter, or None when Spark must apply it.

    Floats stay Spark's: it holds NaN to be the greatest, and equal to itself.
    """
    attribute: tuple[str, ...] = getattr(found, "attribute", ())
    if len(attribute) != 1 or attribute[0] not in table.names:
        return None
    name = attribute[0]
    if type(found) in NULL_TESTS:
        return name, NULL_TESTS[type(found)], None
    if type(found) not in COMPARISONS or pt.is_floating(table.field(name).type):
        return None
    value = _value(getattr(found, "value", None))
    return None if value is None else (name, COMPARISONS[type(found)], value)


def push(
    filters: Iterable[datasource.Filter], table: pa.Schema
) -> tuple[list[Condition], list[datasource.Filter]]:
    """The conditions that the server is asked, and the filters that are left to Spark."""
    asked: list[Condition] = []
    left: list[datasource.Filter] = []
    for found in filters:
        condition = condition_of(found, table)
        if condition is None:
            left.append(found)
        else:
            asked.append(condition)
    return asked, left


def _value(value: object) -> str | int | bool | None:
    match value:
        case bool() | int() | str():
            return value
        case decimal.Decimal() | datetime.date():  # a datetime is a date
            return value.isoformat() if isinstance(value, datetime.date) else str(value)
        case _:
            return None
