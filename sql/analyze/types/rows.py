"""Rows as values and sets of rows: what PostgreSQL refuses, and DuckDB would make something of."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.trees import error_at, unsupported
from .types import Types

_NO_ROWS = (exp.Cast, exp.Array, exp.ArrayAgg, exp.Coalesce, exp.Select)


_STARS = (exp.Select, exp.Returning, exp.Tuple, exp.Anonymous)
"""The nodes in which a star stands for several columns, ROW(…) among them."""


def check_whole_row(column: exp.Column, types: Types) -> None:
    """Raises SQLError 0A000 for `SELECT t FROM … t` and `count(t.*)`."""
    starred = isinstance(column.this, exp.Star) and not isinstance(column.parent, _STARS)
    if starred or types.names_row(column):
        raise row_as_value(column)


def check_row(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 0A000 for `ROW(…)` and `(a, b)` as an item, a text, a document, in an array,
    or in a row of VALUES."""
    parent = tree.parent
    while isinstance(parent, exp.Paren | exp.Alias | exp.Is | exp.Order):
        parent = parent.parent
    listed = isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Values)
    function = parent.name if isinstance(parent, exp.Anonymous) else parent.key if parent else ""
    document = isinstance(parent, exp.Func) and "json" in function.lower()
    if listed or document or isinstance(parent, _NO_ROWS):
        raise row_as_value(tree)


def is_row(tree: exp.Expr) -> bool:
    """Whether a tree is `ROW(…)` or `(a, b)`."""
    named = isinstance(tree, exp.Anonymous) and tree.name.upper() == "ROW"
    return named or isinstance(tree, exp.Tuple)


def entries(tree: exp.Expr) -> list[exp.Expr] | None:
    """Returns the entries of `(a, b)` or `ROW(a, b)`; None for any other node."""
    inner = tree.unnest()
    return list(inner.expressions) if is_row(inner) else None


def row_as_value(tree: exp.Expr) -> SQLError:
    """Returns the error (0A000) for a row where one value is expected."""
    return unsupported(
        "a row as a value", tree, "Select its entries one by one, or compare it with another row."
    )


def several_dimensions(tree: exp.Expr) -> SQLError:
    """Returns the error (0A000) for an array of several dimensions."""
    return unsupported(
        "arrays of several dimensions",
        tree,
        "Keep the inner ones as rows, or as a document (JSONB).",
    )


def check_dimensions(tree: exp.Expr, types: Types) -> None:
    """Raises SQLError 0A000 for an array of arrays, and 42P18 for one of nothing at all."""
    if isinstance(tree, exp.Array) and not tree.expressions:
        if not isinstance(tree.parent, exp.Cast):
            raise error_at(
                tree,
                "42P18",
                "cannot determine type of empty array",
                "Explicitly cast to the desired type, for example ARRAY[]::INT8[].",
            )
        return
    if types.of_elements(tree) is not None:
        raise several_dimensions(tree)


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
        for text in (item.unalias().sql(), item.alias_or_name, item.unalias().name)
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
