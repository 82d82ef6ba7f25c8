"""Aggregates that PostgreSQL has otherwise: what is distinct, and floats that are none."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.type_kinds import TypeKind
from .templates import duckdb
from .types import Types

SPREADS = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
)  # fmt: skip


def sorted_distinct(tree: exp.ArrayAgg | exp.GroupConcat) -> None:
    """Distinct values are listed in their order, where no other is asked for."""
    distinct = tree.this
    if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 1:
        key = exp.Ordered(this=distinct.expressions[0].copy(), nulls_first=False)
        tree.set("this", exp.Order(this=distinct.copy(), expressions=[key]))


def spread(tree: exp.Expr, types: Types) -> None:
    """The deviation of floats, of which one that is no number makes all of it none."""
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
