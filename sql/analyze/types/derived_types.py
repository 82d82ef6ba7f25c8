"""Types that follow from others: of alternatives, of quotients, of numbers as they are written."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.values.column_types import (
    FLOAT4,
    FLOAT8,
    INT8,
    TIMESTAMP,
    TIMESTAMPTZ,
    ColumnType,
    array_of,
)
from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS, related
from ...syntax.trees import CAST_TYPE

INT8_MAX = 2**63 - 1

SCALE_UNKNOWN = 12
"""Fractional digits that are kept of a decimal about which nothing more is known."""


def widest(types: Sequence[ColumnType]) -> ColumnType:
    """Returns the type of alternatives: the first one's, unless another holds more."""
    kinds = {type.kind for type in types}
    if kinds <= set(NUMBERS):
        if TypeKind.FLOAT8 in kinds:
            return FLOAT8
        if TypeKind.FLOAT4 in kinds:
            return FLOAT4
        scales = [type.decimal[1] for type in types if type.kind is TypeKind.DECIMAL]
        return decimal(max(scales)) if scales else INT8
    for kind in (TypeKind.TIMESTAMPTZ, TypeKind.TIMESTAMP):
        if kind in kinds and kinds <= {TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ}:
            return ColumnType(kind)
    return types[0]


def matched(left: ColumnType, right: ColumnType) -> bool:
    """Whether two types have one in common that both are converted to without being asked."""
    moments = {TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ}
    if left.element is not None or right.element is not None:
        return left == right or (left.element is not None and related(left, right))
    return related(left, right) or {left.kind, right.kind} <= moments


def decimal(scale: int) -> ColumnType:
    return ColumnType(TypeKind.DECIMAL, 38, scale)


def quotient_scale(left: int, right: int) -> int:
    """The number of a quotient's fractional digits: sixteen, as PostgreSQL's has from 1 to 9999."""
    return max(16, left, right)


def constant_places(tree: exp.Expr) -> int | None:
    """The number of fractional digits that round() is asked for, if it is plain to see."""
    text = tree.this if isinstance(tree, exp.Literal) else ""
    return int(text) if text.isdecimal() and int(text) <= 30 else None


def literal_type(text: str) -> ColumnType:
    """Digits are an INT8 that they fit, anything else is a decimal with the digits that are
    written."""
    if text.isdecimal():
        return INT8 if int(text) <= INT8_MAX else decimal(0)
    mantissa, _, exponent = text.lower().partition("e")
    scale = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return decimal(min(max(scale, 0), 38))


def of_bare_numeric(node: exp.Cast, source: ColumnType | None) -> ColumnType | None:
    """Returns the type of a cast to NUMERIC without digits: its scale is the operand's."""
    inner = node.to
    several = inner.this == exp.DType.ARRAY and len(inner.expressions) == 1
    inner = inner.expressions[0] if several else inner
    if inner.this != exp.DType.DECIMAL or inner.expressions or node.meta.get(CAST_TYPE):
        return None
    element = source.element if source is not None and several else source
    if element is None:
        return None
    match element.kind:
        case TypeKind.INT8:
            made = ColumnType(TypeKind.DECIMAL, 38, 0)
        case TypeKind.DECIMAL:
            made = ColumnType(TypeKind.DECIMAL, 38, element.decimal[1])
        case TypeKind.FLOAT4 | TypeKind.FLOAT8 | TypeKind.STRING:
            made = ColumnType(TypeKind.DECIMAL, 38, SCALE_UNKNOWN)
        case _:
            return None
    return array_of(made) if several else made


def whole_of_recursion(tree: exp.Expr) -> exp.Expr:
    """The UNION of a common table expression, whose first side alone is what its columns are known
    by while they are asked for."""
    above = tree.parent
    first = isinstance(above, exp.SetOperation) and tree.arg_key == "this"
    return above if above is not None and first and isinstance(above.parent, exp.CTE) else tree


AT_ZONE: dict[TypeKind | None, ColumnType] = {
    **dict.fromkeys((TypeKind.TIMESTAMPTZ, TypeKind.DATE), TIMESTAMP),
    TypeKind.TIMESTAMP: TIMESTAMPTZ,
}
"""The types of moments `AT TIME ZONE`."""


def series(bounds: Sequence[ColumnType | None]) -> ColumnType | None:
    """Returns the type of generate_series() by its start, its end and its step."""
    start = bounds[0]
    if start is not None and start.kind is TypeKind.DATE:
        return TIMESTAMPTZ
    known = [bound for bound in bounds if bound is not None]
    decimals = any(bound.kind is TypeKind.DECIMAL for bound in known)
    return widest(known) if decimals and all(bound.kind in NUMBERS for bound in known) else start
