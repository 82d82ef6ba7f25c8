"""Literals with escapes: what they hold, and which of them are none."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse.lexer import tokenize


def held(literal: str) -> list[str]:
    return [token.text for token in tokenize(f"SELECT {literal}")[1:]]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"E'a\tb\'c''d\\'", "a\tb'c'd\\"),
        (r"E'\r\f\b\z'", "\r\f\bz"),
        (r"E'\\xABcd'", "\\xABcd"),
        (r"E'costs $1\n'", "costs $1\n"),
    ],
)
def test_an_escape_stands_for_its_letter(literal: str, text: str) -> None:
    assert held(literal) == [text]


@pytest.mark.parametrize(
    ("literal", "sqlstate"),
    [
        (r"E'\u00e9'", "0A000"),
        (r"E'\x41'", "0A000"),
        (r"E'\101'", "0A000"),
        (r"U&'\00e4'", "0A000"),
        (r"X'1F'", "0A000"),
        (r"B'101'", "0A000"),
    ],
)
def test_a_wrong_escape_is_an_error_at_its_literal(literal: str, sqlstate: str) -> None:
    with pytest.raises(SQLError) as raised:
        tokenize(f"SELECT {literal}")
    assert raised.value.sqlstate == sqlstate
    assert raised.value.position is not None
