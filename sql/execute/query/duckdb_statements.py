"""A text cut into DuckDB's statements, as a mirror is asked in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import duckdb

from ....catalog.values.errors import SQLError


@dataclass(frozen=True, slots=True)
class DuckDBStatement:
    text: str
    parameter_count: int


def duckdb_statements(text: str) -> list[DuckDBStatement]:
    """The statements of a text in DuckDB's SQL. Raises SQLError 42601."""
    try:
        found = _parser().extract_statements(text)
    except duckdb.Error as error:
        raise SQLError("42601", str(error).strip()) from error
    return [DuckDBStatement(each.query, len(each.named_parameters)) for each in found]


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """A DuckDB connection without tables that only parses."""
    return duckdb.connect(config={"threads": "1"})
