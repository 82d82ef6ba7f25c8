"""The columns of a scope are those that sqlglot finds, which climbs for each."""

from __future__ import annotations

import pytest
from sqlglot import parse_one
from sqlglot.optimizer.scope import traverse_scope

from tailrace.sql.analyze.binder import scopes_in


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a || b || c AS x FROM t ORDER BY x, a",
        "SELECT a AS x, rank() OVER (ORDER BY x) FROM t GROUP BY x HAVING max(x) > 1",
        "SELECT DISTINCT ON (x) a AS x FROM t ORDER BY t.x",
        "SELECT * FROM t, LATERAL (SELECT t.a + u.b FROM u) v, unnest(t.c) w",
        "SELECT (SELECT max(b) FROM u WHERE u.a = t.a AND c = d) FROM t",
        "SELECT array_agg(a ORDER BY b) AS b, mode() WITHIN GROUP (ORDER BY a) FROM t",
        "WITH q AS (SELECT a FROM t) SELECT q.* FROM q UNION SELECT a FROM q ORDER BY a",
        "SELECT a FROM t, generate_series(t.a, b) s WHERE EXISTS (SELECT 1 FROM u WHERE a = b)",
    ],
)
def test_columns_are_those_of_sqlglot(text: str) -> None:
    tree = parse_one(text, dialect="postgres")
    theirs = [list(map(id, scope.columns)) for scope in traverse_scope(tree)]
    assert [list(map(id, scope.columns)) for scope in scopes_in(tree)] == theirs
