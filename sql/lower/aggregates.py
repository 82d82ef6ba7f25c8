"""Aggregates and windows that PostgreSQL has otherwise.

array_agg(DISTINCT x)                   in their order
sum(a / b) FILTER (WHERE b <> 0)        computes nothing of the rows that are left out
"""

from __future__ import annotations

from sqlglot import exp

from ..analyze.types.types import Types


def around(aggregate: exp.Expr) -> exp.Expr:
    """Returns the aggregate with whatever FILTER and OVER it has."""
    whole = aggregate
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    return whole


def in_place_of(aggregate: exp.Expr, made: exp.Expr) -> exp.Expr:
    """Returns another aggregate with a copy of the FILTER and OVER that the first one has."""
    whole = around(aggregate)
    if whole is aggregate:
        return made
    copied = whole.copy()
    inner = copied.find(type(aggregate))
    assert inner is not None, whole
    inner.replace(made)
    return copied


def listed(tree: exp.ArrayAgg | exp.GroupConcat, types: Types) -> None:
    """Distinct values are listed in their order, where no other is asked for; string_agg(x, NULL)
    puts nothing between the texts."""
    distinct, between = tree.this, tree.args.get("separator")
    if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 1:
        key = exp.Ordered(this=distinct.expressions[0].copy(), nulls_first=False)
        tree.set("this", exp.Order(this=distinct.copy(), expressions=[key]))
    if isinstance(between.this if isinstance(between, exp.Cast) else between, exp.Null):
        tree.set("separator", exp.Literal.string(""))


_RAISING = (exp.Div, exp.Mod, exp.Cast, exp.Func)
"""Nodes that may raise an error for a row that FILTER leaves out."""
_VOLATILE = (exp.Rand, exp.Uuid)


def guard_filtered(tree: exp.Filter) -> None:
    """`sum(a / b) FILTER (WHERE b <> 0)` computes nothing of other rows; DuckDB computes first and
    leaves out then. So what is computed is a CASE too."""
    aggregate, condition = tree.this, tree.expression.this
    if condition.find(*_VOLATILE) is not None:
        return
    value = aggregate.this
    operands = [] if not isinstance(value, exp.Order) else [key.this for key in value.expressions]
    value = value.this if isinstance(value, exp.Order) else value
    operands += value.expressions if isinstance(value, exp.Distinct) else [value]
    for operand in operands:
        if isinstance(operand, exp.Expr) and operand.find(*_RAISING) is not None:
            branch = exp.If(this=condition.copy(), true=operand.copy())
            operand.replace(exp.Case(ifs=[branch]))
