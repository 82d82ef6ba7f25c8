"""Documents are equal as PostgreSQL's btree says, whatever digits they show, and have no order."""

from __future__ import annotations

from functools import cache

import duckdb
import pytest
from hypothesis import given, settings

from tailrace.catalog.values.json_text import read_json
from tailrace.sql.builtins.documents.functions import install
from tests.harness.documents import DOCUMENTS
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


@cache
def _evaluator() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    install(connection)
    return connection


def same(document: str) -> object:
    """The text that equal documents share, of a column and of what is computed."""
    asked = "SELECT document_same(j), document_trimmed(j) FROM (SELECT $1::JSON AS j)"
    ((column, computed),) = _evaluator().execute(asked, [document]).fetchall()
    assert column == computed
    return column


def compared(first: object, second: object) -> bool:
    """Whether two values are equal: truths are no numbers."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list) and isinstance(second, list):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(compared(*pair) for pair in pairs)
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            compared(value, second[name]) for name, value in first.items()
        )
    return (type(first) is type(second) is str and first == second) or _numbers(first, second)


def _numbers(first: object, second: object) -> bool:
    kinds = isinstance(first, str | list | dict) or isinstance(second, str | list | dict)
    return not kinds and first == second


@settings(max_examples=300)
@given(DOCUMENTS, DOCUMENTS)
def test_equal_documents_share_a_text(first: str, second: str) -> None:
    assert (same(first) == same(second)) == compared(read_json(first), read_json(second))


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ('{"a": 1.0}', '{"a": 1}'),
        ('{"a.0": "1.0"}', '{"a.0": "1.0"}'),
        ('["\\"1.0", 2.50, 10, 0.0]', '["\\"1.0", 2.5, 10, 0]'),
        ("100", "100"),
    ],
)
def test_zeros_go_from_numbers_alone(document: str, text: str) -> None:
    assert same(document) == text


@pytest.mark.parametrize(
    "query",
    [
        "SELECT doc FROM t UNION ALL SELECT doc FROM t ORDER BY 1",
        "SELECT doc FROM t UNION SELECT doc FROM t",
        "SELECT doc FROM t EXCEPT ALL SELECT doc FROM t",
        "SELECT greatest(doc, '1') FROM t",
        "SELECT array_agg(DISTINCT doc) FROM t",
        "SELECT k FROM t WHERE doc = ANY (ARRAY[doc])",
    ],
)
def test_what_would_unite_or_choose_documents_is_refused(query: str) -> None:
    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, doc JSONB)")
            await node.sql("INSERT INTO t VALUES (1, '{\"a\": 1.0}')")
            error = await node.error(query)
            assert (error.sqlstate, bool(error.hint)) == ("0A000", True)

    sim = Simulation(seed=1)
    sim.run(main())
