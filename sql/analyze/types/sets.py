"""Checks of whole queries that PostgreSQL makes and DuckDB does not."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...parse import position_of
from ...syntax.refusals import unsupported
from ...syntax.walks import find_all
from .rows import is_row, row_as_value


def check_order_of_distinct(tree: exp.Select) -> None:
    """Raises SQLError 42P10 where DISTINCT leaves open what rows are ordered by."""
    distinct, order = tree.args.get("distinct"), tree.args.get("order")
    if distinct is None or distinct.args.get("on") is not None or order is None:
        return
    if any(item.is_star for item in tree.expressions):
        return
    listed = {item.unalias().sql() for item in tree.expressions}
    listed |= {item.alias_or_name for item in tree.expressions}
    listed |= {item.name for item in tree.expressions}
    for ordered in order.expressions:
        key = ordered.this
        plain = isinstance(key, exp.Column) and key.name in listed
        if not plain and not isinstance(key, exp.Literal) and key.sql() not in listed:
            raise SQLError(
                "42P10",
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                position=position_of(key),
            )


def check_fetch(tree: exp.Fetch) -> None:
    """Raises SQLError 0A000 for WITH TIES, and 42601 for PERCENT."""
    options = tree.args.get("limit_options")
    if options is not None and options.args.get("percent"):
        raise SQLError(
            "42601",
            'syntax error at or near "PERCENT"',
            position=position_of(tree),
            hint="FETCH takes a number of rows.",
        )
    if options is not None and options.args.get("with_ties"):
        raise unsupported(
            "WITH TIES",
            tree,
            "Select the rows whose rank() OVER (ORDER BY …) is within the number.",
        )


def check_distinct_series(tree: exp.Select) -> None:
    """Raises SQLError 0A000 for DISTINCT ON of what makes rows: DuckDB does that behind it."""
    distinct = tree.args.get("distinct")
    if distinct is None or distinct.args.get("on") is None:
        return
    for item in tree.expressions:
        series = item.find(*_SERIES)
        if series is not None and series.find_ancestor(exp.Select) is tree:
            raise unsupported(
                "DISTINCT ON of a function that returns a set",
                series,
                "Put the function into FROM.",
            )


_SERIES = (exp.GenerateSeries, exp.Explode, exp.Unnest)


def check_conditional_series(query: exp.Expr) -> None:
    """Raises SQLError 0A000 for what makes rows where it may not be evaluated at all."""
    for series in find_all(query, *_SERIES):
        around = series.find_ancestor(exp.Case, exp.Coalesce, exp.Query)
        if isinstance(around, exp.Case | exp.Coalesce):
            raise SQLError(
                "0A000",
                f"set-returning functions are not allowed in {around.key.upper()}",
                position=position_of(series),
                hint="Put the function into FROM, behind LATERAL.",
            )


def check_listed_series(values: exp.Values) -> None:
    """Raises SQLError 0A000 for what makes rows in one of several rows of VALUES."""
    around = values.find_ancestor(exp.Select)
    for series in find_all(values, *_SERIES) if len(values.expressions) > 1 else ():
        if series.find_ancestor(exp.Select) is around:
            raise SQLError(
                "0A000",
                "set-returning functions are not allowed in VALUES",
                position=position_of(series),
                hint="INSERT INTO … SELECT takes them.",
            )


def check_rows(tree: exp.Select) -> None:
    """Raises SQLError 0A000 for a row as a value, which DuckDB would write in its own way."""
    for item in tree.expressions:
        inner = item.unalias().unnest()
        if isinstance(inner, exp.Is):
            inner = inner.this.unnest()
        if is_row(inner):
            raise row_as_value(inner)
