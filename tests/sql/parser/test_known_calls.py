"""No text calls a function of DuckDB's that no registry has."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.analyze.calls.client_functions import _FACTS
from tailrace.sql.analyze.calls.row_calls import FUNCTIONS as SEQUENCE_FUNCTIONS
from tailrace.sql.builtins.session_functions import SESSION_FUNCTIONS
from tailrace.sql.parse import parse


@pytest.mark.parametrize(
    "call",
    [
        "write_log('x')", "getvariable('x')", "sleep_ms(1000000)", "stats(k)", "vector_type(k)",
        "current_query()", "current_connection_id()", "in_search_path('a', 'b')", "getenv('HOME')",
        "query('SELECT 1')", "\"write_log\"('x')", "hash(k)",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {}",
        "SELECT k FROM t, pg_catalog.pg_class WHERE {} IS NULL",
        "SELECT sum(k) FILTER (WHERE {} = 1) FROM t",
        "INSERT INTO t VALUES ({})",
        "UPDATE t SET k = {}",
        "COPY (SELECT {}) TO STDOUT",
        "CREATE TABLE u (k INT8 PRIMARY KEY, v STRING DEFAULT {})",
        "EXPLAIN ANALYZE SELECT {}",
    ],
)
def test_functions_of_no_registry_are_not_called(text: str, call: str) -> None:
    with pytest.raises(SQLError) as caught:
        parse(text.replace("{}", call))
    assert caught.value.sqlstate == "42883"
    assert caught.value.message.startswith("function ")


@pytest.mark.parametrize("name", [*SEQUENCE_FUNCTIONS, *SESSION_FUNCTIONS, *_FACTS])
def test_functions_of_registries_above_the_parser_are(name: str) -> None:
    parse(
        f"SELECT {name}()" if name not in ("current_role", "current_catalog") else f"SELECT {name}"
    )
