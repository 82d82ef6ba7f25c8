"""Numbers written by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.number_text import decimal_text, float8_text


@pytest.mark.parametrize(
    ("number", "pattern", "text"),
    [
        ("-0.1", "99.99", "  -.10"),
        ("-0.1", "FM9.99", "-.1"),
        ("0.1", "FM90.99", "0.1"),
        ("12", "9990999.9", "    0012.0"),
        ("485", "9 9 9", " 4 8 5"),
        ("1485", "9G999", " 1,485"),
        ("148.5", "999D999", " 148.500"),
        ("3148.5", "9G999D999", " 3,148.500"),
        ("-485", "999S", "485-"),
        ("-485", "999MI", "485-"),
        ("485", '"Good number:"999', "Good number: 485"),
        ("0.00", "FM999.000", ".000"),
        ("12345", "9999", " ####"),
    ],
)
def test_a_decimal_is_laid_under_its_pattern(number: str, pattern: str, text: str) -> None:
    assert decimal_text(number, pattern) == text


def test_a_float_shows_the_digits_that_it_has() -> None:
    assert float8_text(123456789.123456789, "999999999.999999999999") == " 123456789.123457"
    assert float8_text(float("nan"), "999") == " NaN"
    assert decimal_text("12", "99.9") == " 12.0"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("9.9.9", "multiple decimal points"),
        ("S9S", 'cannot use "S" twice'),
        ("FMRN", '"RN" in a pattern'),
    ],
)
def test_words_that_do_not_go_together_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(SQLError, match=message):
        decimal_text("1", pattern)
