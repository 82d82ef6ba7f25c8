"""The functions that an evaluator's DuckDB is given beside its own: those of Python, and macros.

A function of Python takes whole columns. A row with NULL among its values has NULL, and an SQLError
passes through DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from inspect import Parameter, Signature
from itertools import repeat
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.array_text import read_array
from ...catalog.values.arrow_columns import column_array
from ...catalog.values.column_types import ColumnType, coerce
from ...catalog.values.errors import SQLError
from ...catalog.values.interval import interval_of
from ...catalog.values.physical import to_physical
from ...catalog.values.session_zone import UTC_NAME, SessionZone, follow, forget, zone_of
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.clock import WallClock
from ..results.errors import passed_on
from .macros import PREFIX, definitions

_TEXT = ("VARCHAR", pa.string())
TEXTS_READ = (
    TypeKind.FLOAT4, TypeKind.FLOAT8, TypeKind.BYTES, TypeKind.DATE, TypeKind.TIME,
    TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL, TypeKind.UUID,
)  # fmt: skip
"""The kinds whose texts are read as literals are, which DuckDB reads in its own way: `text_as_date`
and its kin. Numbers and truths are macros."""


IN_PYTHON = re.compile(
    r"\b(jsonb_\w+|text_as_\w+|interval_text|wall_clock_us"
    rf"|{PREFIX}zone_abbreviation(?:_in)?)\(",
    re.IGNORECASE,
)
"""Calls of functions that run in Python, and of macros that call these, in DuckDB's SQL."""


_ZONE = "current_setting('TimeZone')"
"""The time zone of a query's cursor, which DuckDB knows when it binds the query."""


def install(connection: duckdb.DuckDBPyConnection, wall: WallClock) -> None:
    """Defines them in an evaluator's database."""
    create: Any = connection.create_function  # its stubs know no function over Arrow's columns
    define(connection, "interval_text", lambda value: str(interval_of(value)), _TEXT, ["INTERVAL"])
    for kind in TEXTS_READ:
        type = ColumnType(kind)
        name = f"text_as_{kind.value.lower()}"
        create(f"{name}_in", _reader(type), ["VARCHAR"] * 2, type.duckdb_name, type="arrow",
               null_handling="special")  # fmt: skip
        connection.execute(f"CREATE MACRO {name}(s) AS {name}_in(s, {_ZONE})")
    texts = ("VARCHAR[]", pa.list_(pa.string()))
    define(connection, "text_as_array", read_array, texts, ["VARCHAR"])
    name = f"{PREFIX}zone_abbreviation"
    define(connection, f"{name}_in", _abbreviation, _TEXT)
    connection.execute(f"CREATE MACRO {name}(m) AS {name}_in(m, {_ZONE})")
    create("wall_clock_us", wall.unix_us, [], "BIGINT", side_effects=True)
    for statement in definitions():
        connection.execute(statement)


Reader = Callable[[Any], list[Any]]


def values_of(column: Any) -> list[Any]:
    """The plain values of a column."""
    return list(column.to_pylist())


def define(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    function: Callable[..., Any],
    result: tuple[str, pa.DataType],
    parameters: Sequence[str] | None = None,
    readers: Sequence[Reader] = (),
) -> None:
    """Defines a function of plain values in an evaluator's database, NULL where a value is NULL.
    `result` is its type for DuckDB and for Arrow. Without `parameters` it takes columns of whatever
    types and number; `readers` say how they are read, where not as `values_of`."""

    def call(*columns: Any) -> Any:
        values = [
            read(column)
            for read, column in zip(readers or repeat(values_of), columns, strict=False)
        ]
        rows = zip(*values, strict=True)
        return pa.array([None if None in row else function(*row) for row in rows], result[1])

    create: Any = connection.create_function  # its stubs know no function over Arrow's columns
    count = None if parameters is None else len(parameters)
    of_columns = told(call, count)
    create(name, of_columns, parameters, result[0], type="arrow", null_handling="special")


def told(function: Callable[..., Any], count: int | None = None) -> Callable[..., Any]:
    """Returns the function with errors that pass through DuckDB, which sees `count` parameters."""

    def call(*columns: Any) -> Any:
        try:
            return function(*columns)
        except SQLError as error:
            raise passed_on(error) from None

    if count is not None:
        places = (Parameter(f"argument_{at}", Parameter.POSITIONAL_ONLY) for at in range(count))
        call.__signature__ = Signature(list(places))  # type: ignore[attr-defined]  # DuckDB reads it
    return call


def _abbreviation(moment: datetime, zone: str) -> str | None:
    return moment.astimezone(zone_of(zone)).tzname()


def _reader(type: ColumnType) -> Callable[[Any, Any], Any]:
    def read(texts: Any, zones: Any) -> Any:
        zone = zones[0].as_py() if len(zones) else UTC_NAME
        before = follow(SessionZone(zone))  # DuckDB's threads are no session's
        try:
            datums = [None if text is None else coerce(type, text) for text in texts.to_pylist()]
        finally:
            forget(before)
        return column_array(type, [to_physical(type, datum) for datum in datums])

    return told(read, 2)
