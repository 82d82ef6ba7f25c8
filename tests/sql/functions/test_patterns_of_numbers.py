"""Numbers written and read by patterns. What is expected is what PostgreSQL 15 answers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.builtins.functions.number_reading import number_of
from tailrace.sql.builtins.functions.number_text import decimal_text, float8_text, integer_text


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
        ("485", "FMPL999", "+485"),
        ("-485", "999PR", "<485>"),
        ("485", "FMRN", "CDLXXXV"),
        ("482", "999th", " 482nd"),
        ("485", '"Good number:"999', "Good number: 485"),
        ("12.45", "99V9", " 125"),
        ("0.00", "FM999.000", ".000"),
        ("12345", "9999", " ####"),
        ("0.0004859", "9.99EEEE", " 4.86e-04"),
        ("99.99", "9EEEE", " 10e+01"),
    ],
)
def test_a_decimal_is_laid_under_its_pattern(number: str, pattern: str, text: str) -> None:
    assert decimal_text(number, pattern) == text


def test_a_float_shows_the_digits_that_it_has() -> None:
    assert float8_text(123456789.123456789, "999999999.999999999999") == " 123456789.123457"
    assert float8_text(float("nan"), "999") == " NaN"
    assert float8_text(float("inf"), "9.9EEEE") == " #.#####"
    assert integer_text(12, "99.9") == " 12.0"


@pytest.mark.parametrize(
    ("text", "pattern", "number"),
    [
        ("12,454.8-", "99G999D9S", "-12454.8"),
        ("-34,338,492", "99G999G999", "-34338492"),
        ("<564646.654564>", "999999.999999PR", "-564646.654564"),
        ("$1,234.56", "L99,999.99", "1234.56"),
        ("123", "9V99", "1.23"),
        (" 1 2", "99", "12"),
    ],
)
def test_a_number_is_read_by_its_pattern(text: str, pattern: str, number: str) -> None:
    assert number_of(text, pattern) == Decimal(number)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("9.9.9", "multiple decimal points"),
        ("S9S", 'cannot use "S" twice'),
        ("9.9V9", 'cannot use "V" and decimal point together'),
        ("9PR9", '"9" must be ahead of "PR"'),
        ("9EEEE9", '"EEEE" must be the last pattern used'),
        ("FM9EEEE", '"EEEE" is incompatible with other formats'),
    ],
)
def test_words_that_do_not_go_together_are_refused(pattern: str, message: str) -> None:
    with pytest.raises(SQLError, match=message):
        integer_text(1, pattern)
