"""PostgreSQL's functions on arrays and intervals, for DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from ...catalog.values.interval import interval_of
from .row_functions import define

_MACROS = (
    "array_upper(l, d) AS if(d = 1, nullif(len(l), 0), NULL)",
    "array_lower(l, d) AS if(d = 1 AND len(l) > 0, 1::BIGINT, NULL)",
    "array_ndims(l) AS if(len(l) > 0, 1::BIGINT, NULL)",
    "array_remove(l, x) AS list_filter(l, lambda e: e IS DISTINCT FROM x)",
    "array_replace(l, x, y) AS "
    "list_transform(l, lambda e: CASE WHEN e IS NOT DISTINCT FROM x THEN y ELSE e END)",
    "array_join(a, b) AS CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a "
    "ELSE list_concat(a, b) END",
    "array_slice_of(l, low, high) AS CASE WHEN low IS NULL OR high IS NULL THEN NULL "
    "ELSE list_slice(l, greatest(low, 1), greatest(high, 0)) END",
    "array_text(l) AS '{' || array_to_string(list_transform(l, lambda e: CASE "
    "WHEN e IS NULL THEN 'NULL' "
    "WHEN e = '' OR upper(e) = 'NULL' OR regexp_matches(e, '[\\s{},\"\\\\]') "
    """THEN '"' || replace(replace(e, '\\', '\\\\'), '"', '\\"') || '"' """
    "ELSE e END), ',') || '}'",
    "interval_greatest(a, b) AS CASE WHEN b IS NULL OR a >= b THEN a ELSE b END",
    "interval_least(a, b) AS CASE WHEN b IS NULL OR a <= b THEN a ELSE b END",
    "array_position_from(l, x, f) AS list_extract(list_filter(range(greatest(f, 1), len(l) + 1), "
    "lambda i: l[i] IS NOT DISTINCT FROM x), 1)",
    "array_filled(x, n) AS CASE WHEN len(n) = 1 THEN list_transform(range(n[1]), lambda i: x) "
    "WHEN n IS NOT NULL THEN error('0A000|arrays of several dimensions are not supported') END",
    "trim_array(l, n) AS CASE WHEN n < 0 OR n > len(l) "
    "THEN error('2202E|number of elements to trim must be between 0 and ' || len(l)) "
    "ELSE list_slice(l, 1, len(l) - n) END",
    "array_has_all_of(a, b) AS CASE WHEN a IS NOT NULL AND b IS NOT NULL "
    "THEN list_has_all(a, b) AND len(list_filter(b, lambda e: e IS NULL)) = 0 END",
    "array_dims(l) AS CASE WHEN len(l) > 0 THEN '[1:' || len(l) || ']' END",
    "any_of(m) AS CASE WHEN list_contains(m, true) THEN true WHEN m IS NULL "
    "OR len(list_filter(m, lambda e: e IS NULL)) > 0 THEN NULL ELSE false END",
    "all_of(m) AS CASE WHEN list_contains(m, false) THEN false WHEN m IS NULL "
    "OR len(list_filter(m, lambda e: e IS NULL)) > 0 THEN NULL ELSE true END",
    "array_positions(l, x) AS list_filter(range(1, len(l) + 1), "
    "lambda i: l[i] IS NOT DISTINCT FROM x)",
)


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Defines them in an evaluator's database."""
    text = ("VARCHAR", pa.string())
    define(connection, "interval_text", lambda value: str(interval_of(value)), text, ["INTERVAL"])
    for macro in _MACROS:
        connection.execute(f"CREATE MACRO {macro}")
