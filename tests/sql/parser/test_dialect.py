"""The dialect is ours alone: sqlglot is a library that a program may use beside the store."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from tailrace.sql.parse.dialect import POSTGRES

TEXT = "SELECT SUBSTR('abc', -1), MOD(7, 2), F(x -> x + 1), a[1]"


@pytest.mark.parametrize("dialect", ["postgres", "redshift", "materialize", "duckdb"])
def test_sqlglots_other_dialects_are_as_they_were(dialect: str) -> None:
    theirs = parse_one(TEXT, read=dialect).sql()
    assert "LAMBDA" in parse_one(TEXT, read=dialect).sql("duckdb")
    assert "postgres_" not in theirs.lower()
    ours = POSTGRES.parse(TEXT)[0]
    assert ours is not None
    assert "POSTGRES_MOD" in ours.sql()
