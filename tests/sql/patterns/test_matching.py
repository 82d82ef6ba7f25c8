"""Matches of patterns, as DuckDB finds them: PostgreSQL 15's own answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.patterns import native_pattern
from tests.sql.patterns.by_duckdb import found


def test_newlines_are_letters() -> None:
    assert found("a\nb", "a.b")
    assert not found("a\nb", "^b")


@pytest.mark.parametrize(
    ("pattern", "native"),
    [
        ("a.c", "a(?s:.)c"),
        ("^a$", r"\Aa\z"),
        (r"a\.b", r"a\.b"),
        ("(a|b)*?", "(a|b)*?"),
    ],
)
def test_nothing_is_left_to_the_options_of_re2(pattern: str, native: str) -> None:
    assert native_pattern(pattern, any_case=False) == native


@pytest.mark.parametrize("pattern", ["a" * 70_000, r"\S" * 1000, "[\x01-\uffff]"])
def test_a_pattern_that_is_too_large_is_an_error(pattern: str) -> None:
    with pytest.raises(SQLError, match="too complex") as raised:
        native_pattern(pattern, any_case=True)
    assert raised.value.sqlstate == "2201B"


def test_a_long_repetition_takes_linear_time() -> None:
    assert not found("a" * 200_000, "(?:a*)*b")
