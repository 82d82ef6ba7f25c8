"""Expressions in Python: PostgreSQL's rules, value by value."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlglot import parse_one

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import timestamp_at
from tailrace.sql.analyze.scalars import Bindings, NotNative, compile_scalar

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = timestamp_at(unix_us=int(NOW.timestamp()) * 1_000_000)


def value(text: str, *parameters: object) -> object:
    scalar = compile_scalar(parse_one(text, dialect="postgres"), {})
    return scalar.value(Bindings(parameters, AT))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("1.10 + 2", Decimal("3.10")),
        ("0.1 * 0.1", Decimal("0.01")),
        ("'1.5'::float8 * 2", 3.0),
        ("1 + NULL::int8", None),
        ("'a' || 'b'::text", "ab"),
        ("-9223372036854775808", -(2**63)),
        ("- - 5", 5),
        ("now()", NOW),
        ("$1 + 1", 6),
        ("'12'::int8", 12),
        ("'t'::bool", True),
    ],
)
def test_expression_has_postgres_value(text: str, expected: object) -> None:
    found = value(text, "5") if "$" in text else value(text)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("9223372036854775807 + 1", "22003"),
        ("-9223372036854775808 - 1", "22003"),
        ("4611686018427387904 * 2", "22003"),
        ("'1e308'::float8 * 10", "22003"),
        ("'x'::int8", "22P02"),
    ],
)
def test_expression_fails_as_in_postgres(text: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as caught:
        value(text)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    "text", ["upper('a')", "7 / 2", "7 % 2", "'a' || 1", "x", "1 + 'a'::text", "$1 + $2", "1=1"]
)
def test_everything_else_is_left_to_duckdb(text: str) -> None:
    with pytest.raises(NotNative):
        value(text, 1, 2)
