"""One type for what must have one: branches of CASE, columns of UNION, rows of VALUES.

coalesce(price, '0')         '0' is a DECIMAL, of as many digits as price
SELECT 1 UNION SELECT 'x'    'x' is an INT8, which is 22P02
CASE … THEN 1 ELSE now()     42804: they have none in common
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.column_types import ColumnType
from ...catalog.errors import SQLError
from ...catalog.type_kinds import TypeKind
from ..parser import position_of
from .blanks import agree_as_char
from .derived_types import FLOAT4, decimal, matched, widest
from .literal_casts import digits_of
from .sets import check_listed_series
from .templates import cast_to
from .type_names import type_name
from .types import Types, untyped


def check_columns(node: exp.SetOperation | exp.Values, types: Types) -> None:
    """The columns of both sides of UNION, and of the rows of VALUES."""
    if isinstance(node, exp.Values):
        check_listed_series(node)
        _, columns = types.parts_of(node)
        for column in columns:
            have_one_type(column, "VALUES", types)
        return
    _, left = types.parts_of(node.this)
    _, right = types.parts_of(node.args["expression"])
    if len(left) == len(right):
        for one, other in zip(left, right, strict=True):
            # What is nothing but literals on both sides of an inner UNION is a text there.
            inner = [types.common(side) for side in (one, other) if len(side) > 1]
            have_one_type([*one, *other], node.key.upper(), types, of_inner=inner)


def have_one_type(
    parts: Sequence[exp.Expr],
    what: str,
    types: Types,
    *,
    of_inner: Sequence[ColumnType | None] = (),
) -> None:
    known = [(part, type) for part in parts if (type := types.of(part)) is not None]
    known = [(parts[0], type) for type in of_inner if type is not None] + known
    if not known:
        return
    if known[0][1].kind is TypeKind.STRING:
        agree_as_char(parts, types)
    first = known[0][1]
    for part, type in known[1:] if types.strict else ():
        if not matched(first, type):
            raise _unmatched(what, first, type, part)
    common = widest([type for _, type in known])
    made = [as_type(part, common, types) for part in parts]
    if common.kind is TypeKind.DECIMAL:
        have_one_scale(made, types)
    if common.kind is TypeKind.FLOAT4:
        as_singles(made, types)


def _unmatched(what: str, first: ColumnType, type: ColumnType, part: exp.Expr) -> SQLError:
    """PostgreSQL tells types of one category from those of several."""
    arrays = first.element is not None and type.element is not None
    alike = any({first.kind, type.kind} <= kinds for kinds in _ALIKE)
    if arrays or alike:
        return SQLError(
            "42846",
            f"{what} could not convert type {type_name(type)} to {type_name(first)}",
            position=position_of(part),
        )
    return SQLError(
        "42804",
        f"{what} types {type_name(first)} and {type_name(type)} cannot be matched",
        position=position_of(part),
    )


_ALIKE = (
    {TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ},
    {TypeKind.BYTES, TypeKind.UUID, TypeKind.JSONB},
)


def have_one_scale(parts: Sequence[exp.Expr], types: Types, *, least: int = 0) -> None:
    """Decimals of as many digits as any of them has: DuckDB would drop some of 38."""
    scales = {
        type.decimal[1] if type.kind is TypeKind.DECIMAL else 0
        for part in parts
        if (type := types.of(part)) is not None
    }
    if len(scales) < 2:
        return
    common = decimal(max(*scales, least))
    for part in parts:
        if types.of(part) not in (None, common) and (least or not isinstance(part, exp.Literal)):
            _cast_part(part, common)


def as_singles(parts: Sequence[exp.Expr], types: Types) -> None:
    """Alternatives that have FLOAT4 in common: numbers are cast to it."""
    for part in parts:
        if types.kind(part) in (TypeKind.INT8, TypeKind.DECIMAL):
            _cast_part(part, FLOAT4)


def _cast_part(part: exp.Expr, type: ColumnType) -> None:
    """Casts one of several alternatives; a column of a query keeps its name."""
    made: exp.Expr = cast_to(part.copy(), type)
    if isinstance(part.parent, exp.Select) and part.output_name:
        made = exp.alias_(made, part.output_name, quoted=True)
    part.replace(made)


def as_type(tree: exp.Expr, type: ColumnType | None, types: Types) -> exp.Expr:
    """Casts a text literal to the type that is wanted of it. Returns what stands there then."""
    if type is None or type.kind is TypeKind.STRING or not untyped(tree):
        return tree
    inner = tree.unnest()
    if isinstance(inner, exp.Null):
        return tree
    assert isinstance(inner, exp.Literal), inner
    if type.enum is not None:
        type.enum.checked(inner.this)
    if type.kind is TypeKind.DECIMAL:
        type = digits_of(inner.this, type)
    made = cast_to(inner.copy(), type)
    inner.replace(made)
    if inner is tree:
        return made
    types.say(tree, type)
    return tree
