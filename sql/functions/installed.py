"""The functions by their names in DuckDB, and how its columns become values and values columns.

Each takes whole columns, of whatever types it is given: the signatures that `sql.postgres` checks
say which those are. A row with a NULL among its values has NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.errors import SQLError
from ...kvlayer.clock import WallClock
from ..errors import ERROR_MARK
from ..postgres.macros import PREFIX
from . import byte_strings, degrees, identifiers, pairs, unicode_forms
from .clock_texts import timeofday

_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "BLOB": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
}

_FUNCTIONS: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("get_byte", byte_strings.get_byte, "BIGINT"),
    ("set_byte", byte_strings.set_byte, "BLOB"),
    ("get_bit", byte_strings.get_bit, "BIGINT"),
    ("set_bit", byte_strings.set_bit, "BLOB"),
    ("bit_count", byte_strings.bit_count, "BIGINT"),
    ("sha224", byte_strings.hashed("sha224"), "BLOB"),
    ("sha384", byte_strings.hashed("sha384"), "BLOB"),
    ("sha512", byte_strings.hashed("sha512"), "BLOB"),
    ("bytes_part", byte_strings.part, "BLOB"),
    ("bytes_position", byte_strings.position, "BIGINT"),
    ("bytes_joined", byte_strings.joined, "BLOB"),
    ("bytes_trimmed", byte_strings.trimmed, "BLOB"),
    ("bytes_overlaid", byte_strings.overlaid, "BLOB"),
    ("bytes_escaped", byte_strings.escaped, "VARCHAR"),
    ("bytes_unescaped", byte_strings.unescaped, "BLOB"),
    ("parse_ident", identifiers.parse_ident, "VARCHAR[]"),
    ("normalize", unicode_forms.normalize, "VARCHAR"),
    ("is_normalized", unicode_forms.is_normalized, "BOOLEAN"),
    ("unistr", unicode_forms.unistr, "VARCHAR"),
    ("sind", degrees.sind, "DOUBLE"),
    ("cosd", degrees.cosd, "DOUBLE"),
    ("tand", degrees.tand, "DOUBLE"),
    ("cotd", degrees.cotd, "DOUBLE"),
    ("asind", degrees.asind, "DOUBLE"),
    ("acosd", degrees.acosd, "DOUBLE"),
    ("atand", degrees.atand, "DOUBLE"),
    ("atan2d", degrees.atan2d, "DOUBLE"),
    *((name, compute, "DOUBLE") for name, compute in pairs.AGGREGATES.items()),
)
"""Names, functions of plain values, and DuckDB's types of what they return."""


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    # Its stubs know no function over Arrow's columns.
    define: Any = connection.create_function
    for name, function, result in _FUNCTIONS:
        call = _over_columns(function, _TYPES[result])
        define(f"{PREFIX}{name}", call, None, result, type="arrow", null_handling="special")


def install_clock(connection: duckdb.DuckDBPyConnection, wall: WallClock, zone: str) -> None:
    """`wall_clock_us()`: microseconds since 1970, read anew for every row; and a moment as
    timeofday() writes it in the zone."""
    define: Any = connection.create_function
    define("wall_clock_us", wall.unix_us, [], "BIGINT", side_effects=True)
    told = _over_columns(timeofday(zone), pa.string())
    define(f"{PREFIX}timeofday", told, None, "VARCHAR", type="arrow", null_handling="special")


def _over_columns(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Any]:
    def call(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([_of_row(function, row) for row in rows], type)
        except SQLError as error:
            raise ValueError(f"{ERROR_MARK}{error.sqlstate}: {error.message}") from None

    return call


def _of_row(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    return None if None in values else function(*values)
