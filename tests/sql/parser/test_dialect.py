"""The dialect is ours alone: sqlglot is a library that a program may use beside the store."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from tailrace.sql.parse.dialect import POSTGRES, tokens_of

TEXT = "SELECT SUBSTR('abc', -1), MOD(7, 2), F(x -> x + 1), a[1]"


@pytest.mark.parametrize("dialect", ["postgres", "redshift", "materialize", "duckdb"])
def test_sqlglots_other_dialects_are_as_they_were(dialect: str) -> None:
    theirs = parse_one(TEXT, read=dialect).sql()
    assert "LAMBDA" in parse_one(TEXT, read=dialect).sql("duckdb")
    assert "postgres_" not in theirs.lower()
    ours = POSTGRES.parse(TEXT)[0]
    assert ours is not None
    assert "POSTGRES_MOD" in ours.sql()


def test_a_sign_behind_an_exponent_is_an_operator() -> None:
    """To sqlglot `1e9+3` is one number."""
    text = "1e9+3e5-2, 1E-3+0.5e1-1.5*1e+2, 'e1+1', 1e1+1"
    tokens = tokens_of(text, 0, len(text))
    words = "1e9 + 3e5 - 2 , 1E-3 + 0.5e1 - 1.5 * 1e+2 , e1+1 , 1e1 + 1"
    assert [token.text for token in tokens] == words.split()
    plain = [token for token in tokens if token.text != "e1+1"]
    assert [text[token.start : token.end + 1] for token in plain] == [each.text for each in plain]
