"""Numbers: exact quotients and averages, rounding, and text that is cast to them.

DuckDB divides decimals as floats. Here a quotient of decimals is that of two whole numbers,
computed with one digit more than it keeps, so that it is rounded rightly:

    10.00 / 3      (1000 * 10^17) // (3 * 100) = 3.33333333333333333  ->  3.3333333333333333
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from sqlglot import exp

from ...catalog.values.column_types import INT8, ColumnType
from ...catalog.values.literals import read_float
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ..analyze.types.derived_types import constant_places, literal_type, quotient_scale
from ..analyze.types.types import Types
from ..builtins.known_functions import operand_of
from ..builtins.macros import call, duckdb, number, plain
from ..syntax.trees import error_at
from .aggregates import around, in_place_of

_EXACT = (TypeKind.INT8, TypeKind.DECIMAL)
_DIGITS_MAX = 38


def divided(tree: exp.Div, types: Types) -> exp.Expr | None:
    """`a / b` where both are exact and one is a decimal, and that of an interval; None where DuckDB
    is right."""
    left, right = types.of(tree.this), types.of(tree.expression)
    if left is not None and left.kind is TypeKind.INTERVAL:
        return call("interval_over", tree.this, tree.expression)
    if left is None or right is None or left.kind not in _EXACT or right.kind not in _EXACT:
        return None
    if left.kind is TypeKind.INT8 and right.kind is TypeKind.INT8:
        return None
    return quotient(tree.this, left, tree.expression, right)


def quotient(
    left: exp.Expr, left_type: ColumnType, right: exp.Expr, right_type: ColumnType
) -> exp.Expr:
    """The exact quotient of two numbers that are no floats."""
    scales = [_scale(left_type), _scale(right_type)]
    kept = quotient_scale(*scales)
    shift = kept + 1 + scales[1] - scales[0]
    product = f"CAST({_whole(':a', scales[0])} AS HUGEINT) * CAST('1{'0' * shift}' AS HUGEINT)"
    whole = f"({product}) // CAST({_whole(':b', scales[1])} AS HUGEINT)"
    last = f"CAST('0.{'0' * kept}1' AS DECIMAL(38, {kept + 1}))"
    return duckdb(
        f"CAST(CAST(({whole}) AS DECIMAL(38, 0)) * {last} AS DECIMAL(38, {kept}))", a=left, b=right
    )


_SCALE_OF_PRODUCT_MAX = 6
"""A decimal of more fractional digits is made whole by its text: times 10^scale it would overflow
where it has half the digits that a decimal may have."""


def _whole(operand: str, scale: int) -> str:
    """The decimal without its point."""
    if scale == 0:
        return operand
    exact = f"CAST({operand} AS DECIMAL(38, {scale}))"
    if scale > _SCALE_OF_PRODUCT_MAX:
        return f"replace(CAST({exact} AS VARCHAR), '.', '')"
    return f"({exact} * CAST('1{'0' * scale}' AS DECIMAL(38, 0)))"


def _scale(type: ColumnType) -> int:
    return type.decimal[1] if type.kind is TypeKind.DECIMAL else 0


def averaged(tree: exp.Avg, types: Types) -> None:
    """avg() of integers and decimals, with whatever FILTER and OVER it has, as sum by count."""
    type = types.of(operand_of(tree.this))
    if type is None or type.kind not in _EXACT:
        return
    summed, counted = (
        in_place_of(tree, aggregate(this=tree.this.copy())) for aggregate in (exp.Sum, exp.Count)
    )
    type_of_sum = ColumnType(TypeKind.DECIMAL, _DIGITS_MAX, _scale(type))
    around(tree).replace(quotient(summed, type_of_sum, counted, INT8))


def rounded(arguments: list[exp.Expr], types: Types) -> exp.Expr:
    """round(): floats to the nearest even number, decimals away from zero."""
    kind = types.kind(arguments[0])
    if len(arguments) == 1 and kind is TypeKind.FLOAT8:
        return plain("round_even", arguments[0], number(0))
    if len(arguments) == 1 and kind is TypeKind.INT8:
        return exp.cast(arguments[0].copy(), "DOUBLE")
    if len(arguments) == 2 and kind is TypeKind.FLOAT8:
        raise error_at(
            arguments[0],
            "42883",
            "function round(double precision, integer) does not exist",
            "Cast the number to NUMERIC.",
        )
    places = constant_places(arguments[1]) if len(arguments) == 2 else None
    if places is not None and kind in _EXACT:
        return duckdb(f"CAST(round(:x, {places}) AS DECIMAL(38, {places}))", x=arguments[0])
    return plain("round", *arguments)


def sign(argument: exp.Expr, types: Types) -> exp.Expr:
    name = "DECIMAL(38, 0)" if types.kind(argument) is TypeKind.DECIMAL else "DOUBLE"
    return duckdb(f"CAST(sign(:x) AS {name})", x=argument)


def exact_literal(tree: exp.Literal, types: Types) -> exp.Expr | None:
    """`1.5e3`, which DuckDB takes for a float, as the decimal that it is."""
    text: str = tree.this
    if tree.is_string:
        return None
    try:
        written = Decimal(text)
    except InvalidOperation:
        return None
    if not _fits(written):
        _check_float(tree, types)
        return None
    if "e" not in text.lower():
        return None
    scale = literal_type(text).decimal if not text.isdecimal() else (38, 0)
    return duckdb(f"CAST('{written:f}' AS DECIMAL(38, {scale[1]}))")


def _fits(written: Decimal) -> bool:
    """Whether a decimal of ours holds all digits of a number."""
    _, digits, exponent = written.as_tuple()
    assert isinstance(exponent, int), written
    whole = max(len(digits) + exponent, 0) if written else 0
    return whole + max(-exponent, 0) <= _DIGITS_MAX


def _check_float(tree: exp.Literal, types: Types) -> None:
    """Raises SQLError 22003 for a number that no decimal holds, unless it meets a float and is one:
    DuckDB would make a float of it anywhere."""
    parent = tree.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    parts = [] if parent is None or isinstance(parent, exp.Query) else parent.iter_expressions()
    if not any(types.kind(part) in FLOATS for part in (parent, *parts)):
        raise error_at(
            tree,
            "22003",
            f"{tree.this[:60]} has more digits than a DECIMAL, which has {_DIGITS_MAX}",
            "Cast it to FLOAT8 where that is near enough.",
        )
    read_float(tree.this)
