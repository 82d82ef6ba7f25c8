"""Documents as numbers and truths."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from ....catalog.values.errors import SQLError
from .slices import type_of

NUMERIC_SCALE = 9
"""Fractional digits of DECIMAL(38,9), the type of a bare NUMERIC."""


def integer_of(document: str) -> int:
    """A number cast to an integer: halves are rounded away from zero."""
    _check(document, "number", "bigint")
    whole = int(Decimal(document).to_integral_value(ROUND_HALF_UP))
    if not -(1 << 63) <= whole < 1 << 63:
        raise SQLError("22003", "bigint out of range")
    return whole


def number_of(document: str) -> str:
    """A number's digits, for a cast."""
    _check(document, "number", "numeric")
    return document


def bare_number_of(document: str) -> str:
    """A number for NUMERIC without a scale, which has no more than nine fractional digits."""
    number = number_of(document)
    if len(number.partition(".")[2]) > NUMERIC_SCALE:
        raise SQLError(
            "22003",
            f"NUMERIC keeps {NUMERIC_SCALE} fractional digits, and {number[:60]} has more: "
            "cast it to NUMERIC(38, n)",
        )
    return number


def truth_of(document: str) -> bool:
    _check(document, "boolean", "boolean")
    return document == "true"


def _check(document: str, wanted: str, target: str) -> None:
    found = type_of(document)
    if found != wanted:
        called = "numeric" if found == "number" else found
        raise SQLError("22023", f"cannot cast jsonb {called} to type {target}")
