"""FLOAT4 beside other numbers: what is computed in single precision, and what in double.

    f4 + f4, sum(f4), abs(f4)       FLOAT4, as every operator on two of them
    f4 + 1, f4 = 0.1, sqrt(f4)      FLOAT8: the other number is no FLOAT4, and is not made one
    coalesce(f4, 0.1)               FLOAT4: alternatives take the type that they have in common
    f4 IN (0.1, 0.2)                the same, and PostgreSQL's parser has it so for two items only

DuckDB makes a FLOAT of any number beside one.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.type_kinds import TypeKind
from ...builtins.signatures import NUMBERS
from ...builtins.templates import cast_in_place
from .common_types import as_singles
from .derived_types import FLOAT4, FLOAT8
from .types import Types


def compare_in_double(left: exp.Expr, right: exp.Expr, types: Types) -> bool:
    """A number that meets a FLOAT4 is compared with it as a FLOAT8. Returns whether it does."""
    kinds = {types.kind(left), types.kind(right)}
    if len(kinds) != 2 or TypeKind.FLOAT4 not in kinds or not kinds <= set(NUMBERS):
        return False
    # One of them as a double is enough: what a query or an array has cannot be cast in its place.
    first = [left, right] if types.of(right) == FLOAT4 else [right, left]
    for side in first:
        if not isinstance(side, exp.Any | exp.All) and not isinstance(side.unnest(), exp.Query):
            cast_in_place(side, FLOAT8)
            break
    return True


def widened(operand: exp.Expr, types: Types) -> None:
    """Casts a number to FLOAT8: DuckDB would make a FLOAT of one beside a FLOAT."""
    kind = types.kind(operand)
    if kind in NUMBERS and kind is not TypeKind.FLOAT8:
        cast_in_place(operand, FLOAT8)


def listed_as_singles(node: exp.In, types: Types) -> None:
    """`f4 IN (0.1, 0.2)`: two constants and more are an array of the type that all have in
    common."""
    constants = [item for item in node.expressions if item.find(exp.Column) is None]
    if len(constants) < 2:
        return
    if types.common([node.this, *constants]) == FLOAT4:
        as_singles(constants, types)


def is_sum(node: exp.Expr, types: Types) -> bool:
    """Whether the node is a sum() of FLOAT4, with whatever FILTER and OVER it has: a FLOAT4.

    DuckDB adds doubles, which are rounded once: PostgreSQL's sum of singles depends on their order.
    """
    if isinstance(node.parent, exp.Filter | exp.Window) and node.arg_key == "this":
        return False
    while isinstance(node, exp.Filter | exp.Window):
        node = node.this
    return isinstance(node, exp.Sum) and types.of(node) == FLOAT4
