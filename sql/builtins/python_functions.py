"""The functions by their names in DuckDB, and how its columns become values and values columns.

Each takes whole columns, of whatever types it is given: the signatures that `sql.lower` checks
say which those are. A row with a NULL among its values has NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from ....catalog.values.errors import SQLError
from ....catalog.values.session_zone import zone_of
from ....kvlayer.clock import WallClock
from ...results.passed_errors import passed_on
from ..macros import PREFIX
from . import byte_strings, hashes
from .decimal_series import decimal_series
from .format_text import format_text

_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "BLOB": pa.binary(),
    "VARCHAR": pa.string(),
    "VARCHAR[]": pa.list_(pa.string()),
}


_FUNCTIONS: tuple[tuple[str, Callable[..., Any], str], ...] = (
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
    ("hashtext", hashes.hashtext, "BIGINT"),
    ("hashtextextended", hashes.hashtextextended, "BIGINT"),
    ("decimal_series", decimal_series, "VARCHAR[]"),
)
"""Names, functions of plain values, and the DuckDB types of their results."""


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    # Its stubs know no function over Arrow's columns.
    define: Any = connection.create_function
    for name, function, result in _FUNCTIONS:
        call = _over_columns(function, _TYPES[result])
        define(f"{PREFIX}{name}", call, None, result, type="arrow", null_handling="special")
    formatted = _of_rows(format_text, pa.string())
    define(f"{PREFIX}formatted", formatted, None, "VARCHAR", type="arrow", null_handling="special")


def install_in_zone(connection: duckdb.DuckDBPyConnection, zone: str) -> None:
    """Defines the functions that read the session's time zone, `zone`, in an evaluator's
    database."""
    define: Any = connection.create_function

    def abbreviation(moment: datetime) -> str | None:
        return moment.astimezone(zone_of(zone)).tzname()

    call, name = _over_columns(abbreviation, pa.string()), "zone_abbreviation"
    define(f"{PREFIX}{name}", call, None, "VARCHAR", type="arrow", null_handling="special")


def install_clock(connection: duckdb.DuckDBPyConnection, wall: WallClock) -> None:
    """`wall_clock_us()`: microseconds since 1970, read anew for every row."""
    define: Any = connection.create_function
    define("wall_clock_us", wall.unix_us, [], "BIGINT", side_effects=True)


def _over_columns(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Any]:
    return _of_rows(lambda *row: None if None in row else function(*row), type)


def _of_rows(function: Callable[..., Any], type: pa.DataType) -> Callable[..., Any]:
    """The function on columns, NULL among their values, with errors that pass through DuckDB."""

    def call(*columns: Any) -> Any:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        try:
            return pa.array([function(*row) for row in rows], type)
        except SQLError as error:
            raise passed_on(error) from None

    return call
