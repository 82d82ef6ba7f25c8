"""Arithmetic of NUMERIC on the numbers of documents: exact, and a quotient with as many digits as
PostgreSQL's."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from .....catalog.values.errors import SQLError

Number = int | Decimal

_EXACT = Context(prec=4000, rounding=ROUND_HALF_UP)
_QUOTIENT_DIGITS_MIN = 16
_GROUP = 4
"""PostgreSQL keeps decimal digits in groups of four, from the point on, and counts by them."""


class DivisionByZero(SQLError):
    """A path may be asked to go on without it."""

    def __init__(self) -> None:
        super().__init__("22012", "division by zero")


def computed(sign: str, left: Number, right: Number) -> Number:
    a, b = Decimal(left), Decimal(right)
    match sign:
        case "+":
            return _EXACT.add(a, b)
        case "-":
            return _EXACT.subtract(a, b)
        case "*":
            return _EXACT.plus(_EXACT.multiply(a, b))  # there is no negative zero
    if b == 0:
        raise DivisionByZero
    return _EXACT.plus(_divided(sign, a, b))


def _divided(sign: str, a: Decimal, b: Decimal) -> Decimal:
    if sign == "/":
        return _EXACT.divide(a, b).quantize(_unit(_quotient_scale(a, b)), ROUND_HALF_UP, _EXACT)
    rest = _EXACT.subtract(a, _EXACT.multiply(_EXACT.divide(a, b).to_integral_value(ROUND_DOWN), b))
    return rest.quantize(_unit(max(scale_of(a), scale_of(b))), ROUND_DOWN, _EXACT)


def scale_of(number: Decimal) -> int:
    """How many digits are written behind the point."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), number
    return max(-exponent, 0)


def _unit(scale: int) -> Decimal:
    return Decimal(1).scaleb(-scale)


def _quotient_scale(a: Decimal, b: Decimal) -> int:
    (weight, first), (other_weight, other_first) = _leading(a), _leading(b)
    weight -= other_weight + (first <= other_first)
    return max(_QUOTIENT_DIGITS_MIN - weight * _GROUP, scale_of(a), scale_of(b), 0)


def _leading(number: Decimal) -> tuple[int, int]:
    """The place of the first group of digits that is not zero, and the group."""
    if number == 0:
        return 0, 0
    weight = number.adjusted() // _GROUP
    shifted = number.copy_abs().scaleb(-weight * _GROUP, _EXACT)
    return weight, int(shifted.to_integral_value(ROUND_DOWN))
