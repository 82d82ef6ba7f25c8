"""Clauses that are about one row: RETURNING, VALUES, DEFAULT."""

from __future__ import annotations

from sqlglot import exp

from ..syntax.refusals import error_at
from ..syntax.walks import find_all
from .binder import TABLE_FUNCTIONS


def refuse_sets(tree: exp.Expr, clause: str, *, series: bool = False) -> None:
    """Raises SQLError for what is computed of several rows, outside of subqueries; and for
    functions that return sets, but in a clause that takes a `series`."""
    for node in find_all(tree, exp.AggFunc, exp.Window, *(() if series else TABLE_FUNCTIONS)):
        if node.find_ancestor(exp.Query) is not None:
            continue
        if isinstance(node, exp.Window):
            sqlstate, what = "42P20", "window functions"
        elif isinstance(node, TABLE_FUNCTIONS):
            sqlstate, what = "0A000", "set-returning functions"
        elif node.find_ancestor(exp.Window) is None:
            sqlstate, what = "42803", "aggregate functions"
        else:
            continue
        raise error_at(node, sqlstate, f"{what} are not allowed in {clause}")
