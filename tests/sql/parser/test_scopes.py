"""A column is of the sources of its own query, or of a query around it that it may name."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.values.column_types import ColumnType
from tailrace.sql.analyze.binder import Relations
from tailrace.sql.analyze.types.types import Types
from tests.harness.descriptors import INT8, KEY, STRING, table

RELATIONS: Relations = {
    ("t",): table(name="t"),
    ("u",): table(id=105, name="u", columns=(KEY, Column(id=2, name="w", type=STRING))),
}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT k || v FROM t", {"k": INT8, "v": STRING}),
        ("SELECT v AS x FROM t GROUP BY v HAVING max(k) > 1 ORDER BY x", {"k": INT8, "x": None}),
        ("SELECT k AS v FROM t ORDER BY v", {"k": INT8, "v": None}),
        ("SELECT k AS v FROM t ORDER BY t.v", {"v": STRING}),
        ("SELECT DISTINCT ON (w) v AS w FROM t, u ORDER BY w", {"v": STRING, "w": None}),
        ("SELECT k AS w, rank() OVER (ORDER BY w) FROM u", {"w": STRING}),
        (
            "SELECT (SELECT max(w) FROM u WHERE u.k = t.k AND w = v) FROM t",
            {"k": INT8, "v": STRING},
        ),
        ("SELECT * FROM t, LATERAL (SELECT t.v || w AS x FROM u) l", {"v": STRING, "w": STRING}),
        ("SELECT * FROM t, (SELECT v FROM u) l", {"v": None}),
        ("WITH q AS (SELECT v FROM u) SELECT k FROM t", {"v": None, "k": INT8}),
        ("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u UNION SELECT v FROM u)", {"v": STRING}),
    ],
)
def test_columns_are_found_in_their_scopes(text: str, types: dict[str, ColumnType | None]) -> None:
    query = parse_one(text, dialect="postgres")
    known = Types(query, RELATIONS)
    named = [column for column in query.find_all(exp.Column) if column.name in types]
    assert {column.name: known.of(column) for column in named} == types
