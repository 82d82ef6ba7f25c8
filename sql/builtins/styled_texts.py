"""Dates, intervals and bytes as texts in a session's style, as functions of DuckDB.

    text_of_date(d, 'SQL DMY postgres hex')     17/12/1997

The style is an argument: a DuckDB is of a time zone, and shared by sessions of all styles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.column_types import ColumnType
from ...catalog.values.interval import interval_of
from ...catalog.values.session_zone import zone_of
from ...catalog.values.text_style import style_named, writer
from ...catalog.values.type_kinds import TypeKind

STYLED = (
    TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL, TypeKind.BYTES,
)  # fmt: skip
"""The kinds that a style may write otherwise."""


def styled_text_name(kind: TypeKind) -> str:
    return f"text_of_{kind.value.lower()}"


def install_styled_texts(connection: duckdb.DuckDBPyConnection, zone: str) -> None:
    """Defines them in an evaluator's database, whose time zone is `zone`."""
    define: Any = connection.create_function  # its stubs know no type that is written as SQL's
    for kind in STYLED:
        given = [ColumnType(kind).duckdb_name, "VARCHAR"]
        define(styled_text_name(kind), _writer(kind, zone), given, "VARCHAR", type="arrow")


def _writer(kind: TypeKind, zone: str) -> Callable[[Any, Any], Any]:
    def shown(value: Any) -> Any:
        match kind:
            case TypeKind.INTERVAL:
                return interval_of(value)
            case TypeKind.TIMESTAMPTZ:
                return value.astimezone(zone_of(zone))
        return value

    def write(column: Any, styles: Any) -> Any:
        name = next((style for style in styles.to_pylist() if style is not None), None)
        text = None if name is None else writer(kind, style_named(name))
        if text is None:
            return pa.nulls(len(column), pa.string())
        values = column.to_pylist()
        written = [None if value is None else text(shown(value)) for value in values]
        return pa.array(written, pa.string())

    return write
