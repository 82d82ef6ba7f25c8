"""A pattern run by DuckDB, as the lowering has it run."""

from __future__ import annotations

from functools import cache

import duckdb

from tailrace.sql.builtins.patterns import native_pattern


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:")


def found(text: str, pattern: str, *, any_case: bool = False) -> bool:
    native = native_pattern(pattern, any_case)
    row = _connection().execute("SELECT regexp_matches($1, $2)", [text, native]).fetchone()
    assert row is not None, native
    return bool(row[0])
