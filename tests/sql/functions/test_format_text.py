"""format() by patterns that are no constants."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.decimal_series import decimal_series
from tailrace.sql.builtins.functions.format_text import format_text, quoted_name
from tailrace.sql.parse.lexer import tokenize
from tailrace.sql.parse.repairs.interval_fields import field_tokens, read_fields


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("%s|%I|%L", 'a b|"c\'"|NULL'),
        ("%2$s %1$s %s", "c' a b c'"),
        ("%-5s|%5s|%%", "a b  |   c'|%"),
    ],
)
def test_arguments_take_their_places(pattern: str, text: str) -> None:
    assert format_text(pattern, "a b", "c'", None) == text


def test_a_width_may_be_an_argument() -> None:
    assert format_text("%*s|", "-3", "x") == "x  |"
    assert format_text("%1$*2$s|", "x", "3") == "  x|"


@pytest.mark.parametrize("pattern", ["%", "%d", "%0$s", "%*1s", "%9$s", "%I"])
def test_patterns_that_say_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(SQLError):
        format_text(pattern, None)


def test_names_are_quoted_where_they_must_be() -> None:
    assert [quoted_name(name) for name in ("a_1", "A", "1a", "select", 'x"', "")] == [
        "a_1", '"A"', '"1a"', '"select"', '"x"""', '""',
    ]  # fmt: skip


def test_a_series_of_decimals_keeps_their_digits() -> None:
    assert decimal_series("1.0", "2", "0.5") == ["1.0", "1.5", "2.0"]
    assert decimal_series("1", "0", "-0.5") == ["1.0", "0.5", "0.0"]
    assert decimal_series("2", "1", "1") == []
    for step, sqlstate in (("0", "22023"), ("1e-9", "54000")):
        with pytest.raises(SQLError) as told:
            decimal_series("0", "1", step)
        assert told.value.sqlstate == sqlstate


@pytest.mark.parametrize(
    ("text", "first", "last", "read"),
    [
        ("1-2", "year", "month", "1 year 2 mons"),
        ("1 2", "day", "hour", "1 day 02:00:00"),
        ("12:30", "minute", "second", "00:12:30"),
        ("1.5", "hour", "hour", "01:00:00"),
        ("-1 02:03:04", "day", "minute", "-1 days +02:03:00"),
        ("1 year 40 days", "month", "month", "1 year"),
    ],
)
def test_fields_say_what_a_number_is(text: str, first: str, last: str, read: str) -> None:
    assert str(read_fields(text, first, last)) == read


def test_an_interval_may_end_a_statement() -> None:
    tokens = tokenize("SELECT '1 day'::INTERVAL")
    assert field_tokens(tokens) == tokens
