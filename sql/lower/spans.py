"""Intervals: their arithmetic, sums and casts, by functions of ours where DuckDB lacks them."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types
from ..builtins.templates import duckdb, plain
from .aggregation.aggregates import around, in_place_of

_FUNCTIONS = {exp.Sum: "interval_sum", exp.Avg: "interval_average"}
_TIME_OF_INTERVAL = """
CAST(TIMESTAMP '2000-01-01' + to_microseconds(CAST(date_part('hour', :x) * 3600000000
    + date_part('minute', :x) * 60000000 + date_part('microseconds', :x) AS BIGINT)) AS TIME)
"""
"""Hours beyond a day, and what is less than none, come round."""
_INTERVAL_OF_TIME = "to_microseconds(date_diff('microsecond', TIME '00:00:00', :x))"


def scaled(tree: exp.Mul | exp.Div, types: Types) -> exp.Expr | None:
    """An interval times or by a number; None for other operands, and where DuckDB is right."""
    if types.kind(tree) is not TypeKind.INTERVAL:
        return None
    interval, number = tree.this, tree.args["expression"]
    if types.kind(number) is TypeKind.INTERVAL:
        interval, number = number, interval
    if isinstance(tree, exp.Mul) and types.kind(number) is TypeKind.INT8:
        return None
    name = "interval_times" if isinstance(tree, exp.Mul) else "interval_over"
    return plain(name, interval, exp.cast(number.copy(), "DOUBLE"))


def summed(tree: exp.Sum | exp.Avg, types: Types) -> bool:
    """sum() and avg() of intervals, with whatever FILTER and OVER they have: of a list of them."""
    if types.kind(tree) is not TypeKind.INTERVAL:
        return False
    listed = in_place_of(tree, exp.ArrayAgg(this=tree.this.copy()))
    around(tree).replace(plain(_FUNCTIONS[type(tree)], listed))
    return True


def cast(node: exp.Cast, source: TypeKind | None, target: TypeKind | None) -> exp.Expr | None:
    """Casts between intervals, times of day and moments, where DuckDB has none."""
    match source, target:
        case TypeKind.TIME, TypeKind.INTERVAL:
            return duckdb(_INTERVAL_OF_TIME, x=node.this)
        case TypeKind.INTERVAL, TypeKind.TIME:
            return duckdb(_TIME_OF_INTERVAL, x=node.this)
        case TypeKind.TIMESTAMPTZ, TypeKind.TIME:
            return duckdb("CAST(CAST(:x AS TIMESTAMP) AS TIME)", x=node.this)
    return None
