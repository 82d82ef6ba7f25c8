"""A column is of the sources of its own query, or of a query around it that it may name. Scopes are
made in slices."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.sql.analyze.binder import Relations, scopes_in
from tailrace.sql.analyze.types.types import Types
from tests.harness.descriptors import INT8, KEY, STRING, table
from tests.harness.slices import run_in_least_slices

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


def slices_of(query: exp.Expr) -> int:
    return run_in_least_slices(lambda: scopes_in(query))[0]


def test_scopes_are_made_one_by_one() -> None:
    sides = 100
    query = parse_one(" UNION ALL ".join(["SELECT 1"] * sides), dialect="postgres")
    made_looked_at_dismantled = 3 * (2 * sides - 1)
    assert slices_of(query) > made_looked_at_dismantled


ROWS = ", ".join(f"({k}, $1)" for k in range(500))
KEYS = ", ".join(f"${k}" for k in range(1, 500))


@pytest.mark.parametrize(
    "text", [f"SELECT * FROM (VALUES {ROWS}) v (a, b)", f"SELECT k FROM t WHERE k IN ({KEYS})"]
)
def test_long_constants_are_looked_at_in_slices(text: str) -> None:
    query = parse_one(text, dialect="postgres")
    before = query.copy()
    assert slices_of(query) > 499
    assert query == before


def test_constants_are_put_back_behind_an_error() -> None:
    query = parse_one(f"SELECT 1 FROM t, t WHERE k IN ({KEYS})", dialect="postgres")
    before = query.copy()
    with pytest.raises(SQLError, match="specified more than once"):
        slices_of(query)
    assert query == before
