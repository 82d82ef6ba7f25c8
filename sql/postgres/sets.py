"""What PostgreSQL asks of whole queries, and DuckDB lets pass."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.errors import SQLError
from ..parser import position_of


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


def check_rows(tree: exp.Select) -> None:
    """Raises SQLError 0A000 for a row as a value, which DuckDB would write in its own way."""
    for item in tree.expressions:
        inner = item.unalias().unnest()
        if isinstance(inner, exp.Is):
            inner = inner.this.unnest()
        row = isinstance(inner, exp.Anonymous) and inner.name.upper() == "ROW"
        if row or isinstance(inner, exp.Tuple):
            raise SQLError(
                "0A000",
                "a row as a value is not supported",
                position=position_of(inner),
                hint="Select its entries one by one, or compare it with another row.",
            )
