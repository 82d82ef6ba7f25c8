"""Rows as values: what DuckDB would write as a struct of its own, and compare as one."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.refusals import error_at, unsupported
from .types import Types

_NO_ROWS = (exp.Cast, exp.Array, exp.ArrayAgg, exp.Coalesce, exp.Select)


def check_whole_row(column: exp.Column, types: Types) -> None:
    """Raises SQLError 0A000 for `SELECT t FROM … t`."""
    if types.names_row(column):
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
