"""Checks of sets of rows that PostgreSQL makes and DuckDB does not."""

from __future__ import annotations

from sqlglot import exp

from ...syntax.refusals import error_at, unsupported
from .types import Types


def check_order_of_distinct(tree: exp.Select) -> None:
    """Raises SQLError 42P10 where DISTINCT leaves open what rows are ordered by."""
    distinct, order = tree.args.get("distinct"), tree.args.get("order")
    if distinct is None or distinct.args.get("on") is not None or order is None:
        return
    if any(item.is_star for item in tree.expressions):
        return
    listed = {
        text
        for item in tree.expressions
        for text in (item.unalias().sql(), item.alias_or_name, item.name)
    }
    for ordered in order.expressions:
        key = ordered.this
        plain = isinstance(key, exp.Column) and key.name in listed
        if not plain and not isinstance(key, exp.Literal) and key.sql() not in listed:
            raise error_at(
                key, "42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            )


def check_fetch(tree: exp.Fetch, types: Types) -> None:
    """Raises SQLError 0A000 for WITH TIES and PERCENT."""
    options = tree.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise unsupported(
            "FETCH … WITH TIES and PERCENT",
            tree,
            "Select the rows whose rank() OVER (ORDER BY …) is within the number.",
        )


SERIES = (exp.GenerateSeries, exp.Explode, exp.Unnest)


def check_series(series: exp.Expr, types: Types | None = None) -> None:
    """Raises SQLError 0A000 for what makes rows where it may not be evaluated at all, in one of
    several rows of VALUES, and beside DISTINCT ON, which DuckDB does behind it."""
    around = series.find_ancestor(exp.Case, exp.Coalesce, exp.Values, exp.Query)
    if isinstance(around, exp.Case | exp.Coalesce):
        what = f"set-returning functions are not allowed in {around.key.upper()}"
        raise error_at(series, "0A000", what, "Put the function into FROM, behind LATERAL.")
    if isinstance(around, exp.Values) and len(around.expressions) > 1:
        what = "set-returning functions are not allowed in VALUES"
        raise error_at(series, "0A000", what, "INSERT INTO … SELECT takes them.")
    distinct = around.args.get("distinct") if isinstance(around, exp.Select) else None
    within = series.find_ancestor(exp.From, exp.Join, exp.Lateral, exp.Select)
    if distinct is not None and distinct.args.get("on") is not None and within is around:
        what = "DISTINCT ON of a function that returns a set"
        raise unsupported(what, series, "Put the function into FROM.")
