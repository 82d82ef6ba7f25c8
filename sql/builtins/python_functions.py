"""The functions of PostgreSQL that nothing in DuckDB is like, as Python computes them for it.

Each takes whole columns, of whatever types it is given: the signatures that `sql.analyze` checks
say which those are. A row with a NULL among its values has NULL. A row costs a microsecond and what
its function takes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from ...catalog.values.session_zone import zone_of
from ...kvlayer.clock import WallClock
from .hashes import hashtext
from .macros import PREFIX
from .row_functions import define

_TYPES: dict[str, pa.DataType] = {"BIGINT": pa.int64(), "BLOB": pa.binary()}


def _hashed(algorithm: str) -> Callable[[bytes], bytes]:
    return lambda value: hashlib.new(algorithm, value).digest()


_FUNCTIONS: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("sha224", _hashed("sha224"), "BLOB"),
    ("sha384", _hashed("sha384"), "BLOB"),
    ("sha512", _hashed("sha512"), "BLOB"),
    ("hashtext", hashtext, "BIGINT"),
)
"""Names, functions of plain values, and the DuckDB types of their results."""


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    for name, function, result in _FUNCTIONS:
        define(connection, f"{PREFIX}{name}", function, (result, _TYPES[result]))


def install_in_zone(connection: duckdb.DuckDBPyConnection, zone: str) -> None:
    """Defines the functions that read the session's time zone, `zone`, in an evaluator's
    database."""

    def abbreviation(moment: datetime) -> str | None:
        return moment.astimezone(zone_of(zone)).tzname()

    define(connection, f"{PREFIX}zone_abbreviation", abbreviation, ("VARCHAR", pa.string()))


def install_clock(connection: duckdb.DuckDBPyConnection, wall: WallClock) -> None:
    """`wall_clock_us()`: microseconds since 1970, read anew for every row."""
    create: Any = connection.create_function
    create("wall_clock_us", wall.unix_us, [], "BIGINT", side_effects=True)
