"""Arrow under a name of a DuckDB connection."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from tailrace.changefeed.sinks.duckdb.arrow_source import ArrowSource


def test_source_is_made_without_its_connection() -> None:
    """It may be busy: a schema change comes while the file's lane flushes."""
    connection = duckdb.connect(":memory:")
    connection.close()
    ArrowSource(connection, "rows_in", pa.schema([("k", pa.int64())])).close()


def test_source_is_made_while_a_result_is_unread() -> None:
    """A lookup whose row was too new to replace leaves its result behind."""
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t AS SELECT 5 AS k")
        assert connection.execute("SELECT k FROM t WHERE k = 5").fetchone() == (5,)
        rows = pa.table({"k": [7]})
        source = ArrowSource(connection, "rows_in", rows.schema)
        with source.holding(rows):
            connection.execute("INSERT INTO t SELECT * FROM rows_in")
        assert connection.execute("SELECT max(k) FROM t").fetchall() == [(7,)]
