"""Aggregates that are computed of the list of what they are over, as Python functions."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...builtins.templates import call


def over_list(node: exp.Expr, operands: Sequence[exp.Expr], name: str) -> None:
    """Puts `name`(list of rows) in the place of an aggregate, with its FILTER, its OVER and the
    order of what it is over. A row has the operands as `a` and `b`."""
    row: exp.Expr = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(field), expression=operand.copy())
            for field, operand in zip("ab", operands, strict=False)
        ]
    )
    inner = node.this
    if isinstance(inner, exp.Order):
        row = exp.Order(this=row, expressions=[key.copy() for key in inner.expressions])
    listed: exp.Expr = exp.ArrayAgg(this=row)
    whole = node
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    if whole is not node:
        node.replace(listed)
        listed = whole.copy()
    whole.replace(call(name, listed))
