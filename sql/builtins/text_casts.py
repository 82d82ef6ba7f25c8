"""Texts that are cast to other types, read as literals of those types are.

DuckDB reads `'\\x0102'`, `1 mon` or `{1,2}` in its own way, and some of it as something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.array_text import read_array
from ...catalog.values.arrow_columns import column_array
from ...catalog.values.column_types import ColumnType, coerce
from ...catalog.values.physical import to_physical
from ...catalog.values.session_zone import SessionZone, follow, forget
from ...catalog.values.type_kinds import TypeKind
from .row_functions import define, told

PREFIX = "text_as_"
READ = (
    TypeKind.FLOAT4, TypeKind.FLOAT8, TypeKind.BYTES, TypeKind.DATE, TypeKind.TIME,
    TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL, TypeKind.UUID,
)  # fmt: skip
"""The kinds whose texts are read here. Numbers and truths are macros (`sql.builtins.macros`)."""


def install_text_casts(connection: duckdb.DuckDBPyConnection, zone: str) -> None:
    """Defines `text_as_date` and its kin in an evaluator's database, whose time zone is `zone`."""
    create: Any = connection.create_function  # its stubs know no type that is written as SQL's
    for kind in READ:
        type = ColumnType(kind)
        create(f"{PREFIX}{kind.value.lower()}", _reader(type, zone), ["VARCHAR"], type.duckdb_name,
               type="arrow", null_handling="special")  # fmt: skip
    texts = ("VARCHAR[]", pa.list_(pa.string()))
    define(connection, f"{PREFIX}array", read_array, texts, ["VARCHAR"])


def _reader(type: ColumnType, zone: str) -> Callable[[Any], Any]:
    def read(column: Any) -> Any:
        before = follow(SessionZone(zone))  # DuckDB's threads are no session's
        try:
            datums = [None if text is None else coerce(type, text) for text in column.to_pylist()]
        finally:
            forget(before)
        return column_array(type, [to_physical(type, datum) for datum in datums])

    return told(read, 1)
