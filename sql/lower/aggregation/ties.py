"""FETCH FIRST … WITH TIES: the rows whose rank is among the first, which DuckDB says by QUALIFY.

    SELECT name FROM t ORDER BY points DESC OFFSET 1 FETCH FIRST 2 ROWS WITH TIES

    SELECT name FROM t QUALIFY rank() OVER (ORDER BY points DESC) <= 2 + 1
    ORDER BY points DESC OFFSET 1

A row that ties with the third has a rank of three or less, and no row behind it has.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...parse import folded, position_of
from ...syntax.walks import find_all


def rank_ties(query: exp.Expr) -> None:
    """Puts ranks for every WITH TIES of `query`, in place. Raises SQLError 42601 for one without
    an order and for PERCENT, and 0A000 where the rows are not those that a rank would see."""
    for fetch in list(find_all(query, exp.Fetch)):
        options = fetch.args.get("limit_options")
        if options is not None and options.args.get("percent"):
            raise SQLError(
                "42601",
                'syntax error at or near "PERCENT"',
                position=position_of(fetch),
                hint="FETCH takes a number of rows.",
            )
        if options is not None and options.args.get("with_ties"):
            _rank(fetch)


def _rank(fetch: exp.Fetch) -> None:
    select = fetch.parent
    order = select.args.get("order") if select is not None else None
    if order is None:
        raise SQLError(
            "42601",
            "WITH TIES cannot be specified without ORDER BY clause",
            position=position_of(fetch),
        )
    refused = _refused(select)
    if refused is not None:
        raise SQLError(
            "0A000",
            f"not supported: WITH TIES {refused}",
            position=position_of(fetch),
            hint="Put the query into FROM of another, which says WITH TIES.",
        )
    assert isinstance(select, exp.Select), select
    count = fetch.args.get("count") or exp.Literal.number(1)
    if isinstance(count.unnest(), exp.Null):
        raise SQLError("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause")
    offset = select.args.get("offset")
    if offset is not None:
        count = exp.Add(this=exp.paren(count), expression=exp.paren(offset.expression))
    keys = [_key(item, select) for item in order.expressions]
    rank = exp.Window(this=exp.Anonymous(this="rank"), order=exp.Order(expressions=keys))
    select.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=count.copy())))
    select.set("limit", None)


def _refused(query: exp.Expr | None) -> str | None:
    """What makes or drops rows behind the place where DuckDB ranks them."""
    if not isinstance(query, exp.Select):
        return "behind UNION, INTERSECT and EXCEPT"
    if query.args.get("distinct"):
        return "behind DISTINCT"
    for item in query.expressions:
        series = item.find(exp.GenerateSeries, exp.Explode, exp.Unnest)
        if series is not None and series.find_ancestor(exp.Select) is query:
            return "beside functions that return sets"
    return None


def _key(item: exp.Expr, select: exp.Select) -> exp.Expr:
    """An item of ORDER BY, with what it means where that is a number or a name of a result."""
    item = item.copy()
    key = item.this.unnest()
    meant: exp.Expr | None = None
    if isinstance(key, exp.Literal) and key.is_int and int(key.this) <= len(select.expressions):
        meant = select.expressions[int(key.this) - 1].unalias()
    elif isinstance(key, exp.Column) and not key.table and isinstance(key.this, exp.Identifier):
        named = [part for part in select.expressions if isinstance(part, exp.Alias)]
        name = folded(key.this)
        meant = next((part.this for part in named if folded(part.args["alias"]) == name), None)
    if meant is not None:
        item.set("this", meant.copy())
    return item
