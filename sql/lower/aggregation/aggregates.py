"""Aggregates that PostgreSQL has otherwise: what is distinct, and floats that are none."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.type_kinds import TypeKind
from ...analyze.types.types import Types
from ...builtins.templates import duckdb

SPREADS = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
)  # fmt: skip


OF_PAIRS = (
    exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrAvgx, exp.RegrAvgy, exp.RegrSxx, exp.RegrSyy,
    exp.RegrSxy, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2,
)  # fmt: skip
"""Aggregates of two columns, Y and X."""


def sorted_distinct(tree: exp.ArrayAgg | exp.GroupConcat) -> None:
    """Distinct values are listed in their order, where no other is asked for."""
    distinct = tree.this
    if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 1:
        key = exp.Ordered(this=distinct.expressions[0].copy(), nulls_first=False)
        tree.set("this", exp.Order(this=distinct.copy(), expressions=[key]))


def joined_by_nothing(tree: exp.ArrayAgg | exp.GroupConcat) -> None:
    """string_agg(x, NULL) puts nothing between the texts."""
    between = tree.args.get("separator")
    plain = between.this if isinstance(between, exp.Cast) else between
    if isinstance(plain, exp.Null):
        tree.set("separator", exp.Literal.string(""))


def paired(node: exp.Expr) -> None:
    """An aggregate of Y and X, which are floats."""
    node.set("this", exp.cast(node.this.copy(), "DOUBLE"))
    node.set("expression", exp.cast(node.expression.copy(), "DOUBLE"))


def spread(tree: exp.Expr, types: Types) -> None:
    """Lowers the deviation of floats: a NaN among them makes the result NaN."""
    if types.kind(tree.this) is not TypeKind.FLOAT8:
        return
    whole = tree
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.arg_key == "this":
        whole = whole.parent
    summed = whole.copy()
    if whole is tree:
        summed = exp.Sum(this=tree.this.copy())
    else:
        inner = summed.find(type(tree))
        assert inner is not None, whole
        inner.replace(exp.Sum(this=tree.this.copy()))
    template = "CASE WHEN isnan(:s - :s) AND :v IS NOT NULL THEN CAST('NaN' AS DOUBLE) ELSE :v END"
    whole.replace(duckdb(template, s=summed, v=whole.copy()))


_RAISING = (exp.Div, exp.Mod, exp.Cast, exp.Func)
"""Nodes that may raise an error for a row that FILTER leaves out."""
_VOLATILE = (exp.Rand, exp.Uuid)


def guard_filtered(tree: exp.Filter) -> None:
    """`sum(a / b) FILTER (WHERE b <> 0)` computes nothing of other rows; DuckDB computes first and
    leaves out then. So what is computed is a CASE too."""
    aggregate, condition = tree.this, tree.expression.this
    if isinstance(aggregate, exp.WithinGroup) or condition.find(*_VOLATILE) is not None:
        return
    value = aggregate.this
    operands = [] if not isinstance(value, exp.Order) else [key.this for key in value.expressions]
    value = value.this if isinstance(value, exp.Order) else value
    operands += value.expressions if isinstance(value, exp.Distinct) else [value]
    for operand in operands:
        if isinstance(operand, exp.Expr) and operand.find(*_RAISING) is not None:
            branch = exp.If(this=condition.copy(), true=operand.copy())
            operand.replace(exp.Case(ifs=[branch]))
