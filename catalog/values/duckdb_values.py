"""Datums as parameters of DuckDB, which takes most of them as they are."""

from __future__ import annotations

from collections.abc import Callable

from .column_types import ColumnType, Datum
from .interval import Interval
from .type_kinds import TypeKind

ParameterWriter = Callable[[Datum], object]


def parameter_writer(type: ColumnType) -> ParameterWriter | None:
    """Makes a parameter of a datum that is not NULL; None where the datum is one."""
    if type.element is not None:
        element = parameter_writer(type.element)
        return None if element is None else _array_writer(element)
    return _interval if type.kind is TypeKind.INTERVAL else None


def _interval(value: Datum) -> str:
    # A timedelta has no months, and DuckDB's module has no class of its own.
    assert isinstance(value, Interval), value
    return value.fields


def _array_writer(element: ParameterWriter) -> ParameterWriter:
    def write(items: Datum) -> list[object]:
        assert isinstance(items, list), items
        return [None if item is None else element(item) for item in items]

    return write
