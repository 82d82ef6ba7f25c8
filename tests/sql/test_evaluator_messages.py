"""What DuckDB says of types is told in PostgreSQL's words."""

from __future__ import annotations

import pytest

from tailrace.sql.execute.query.evaluator_messages import of_types


@pytest.mark.parametrize(
    ("message", "sqlstate", "told"),
    [
        (
            "No function matches the given name and argument types 'postgres_upper(BIGINT)'. You "
            "might need to add explicit type casts.",
            "42883",
            "function upper(bigint) does not exist",
        ),
        (
            "No function matches the given name and argument types 'f(DECIMAL(10,2), VARCHAR[])'.",
            "42883",
            "function f(numeric, text[]) does not exist",
        ),
        (
            'Could not choose a best candidate function for the function call "g(STRING_LITERAL)".',
            "42883",
            "function g(unknown) is not unique",
        ),
        (
            "Unimplemented type for cast (TIMESTAMP WITH TIME ZONE -> DECIMAL(18,3))",
            "42846",
            "cannot cast type timestamp with time zone to numeric",
        ),
        (
            "Could not convert string 'it's' to INT64 when casting from source column s",
            "22P02",
            'invalid input syntax for type bigint: "it\'s"',
        ),
    ],
)
def test_types_are_told_by_their_names(message: str, sqlstate: str, told: str) -> None:
    error = of_types(message)
    assert error is not None
    assert (error.sqlstate, error.message) == (sqlstate, told)


def test_other_messages_are_left() -> None:
    assert of_types("Division by zero") is None
