"""Hypothetical-set aggregates: where a row would stand, were it among those that are there.

rank(3) WITHIN GROUP (ORDER BY n)           count(*) FILTER (WHERE n < 3) + 1
dense_rank(3) WITHIN GROUP (ORDER BY n)     count(DISTINCT n) FILTER (WHERE n < 3) + 1
percent_rank(3) WITHIN GROUP (ORDER BY n)   of the ranks below by all rows
cume_dist(3) WITHIN GROUP (ORDER BY n)      of the rows up to it by all, itself among them
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...builtins.templates import duckdb
from ...parse import position_of
from ...syntax.walks import find_all

RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)


def placed(node: exp.WithinGroup) -> None:
    """Puts the counts in the place of the aggregate and its FILTER. Raises SQLError 42883, 42803
    and 0A000."""
    given, order = list(node.this.expressions), node.expression
    _check_given(given, node)
    keys = list(order.expressions)
    if len(given) != len(keys):
        raise SQLError(
            "42883",
            f"function {node.this.key} takes as many direct arguments as ordering columns",
            position=position_of(node),
            hint=f"There are {len(given)} direct arguments and {len(keys)} ordering columns.",
        )
    whole, condition = _filtered(node)
    kept = condition or exp.true()
    before, equal = _before(given, keys), _equal(given, keys)
    rows = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(f"k{place}"), expression=key.this.copy())
            for place, key in enumerate(keys)
        ]
    )
    whole.replace(duckdb(_TEMPLATES[type(node.this)], b=before, e=equal, f=kept, r=rows))


def _check_given(given: list[exp.Expr], node: exp.WithinGroup) -> None:
    """A direct argument is one value of the group. Where it names a column it is compared within
    the rows: so there must be a grouping, and one alone, in which a row and its group agree."""
    select = node.find_ancestor(exp.Select)
    column = next((c for argument in given for c in find_all(argument, exp.Column)), None)
    if column is None or select is None:
        return
    group = select.args.get("group")
    if group is None:
        raise SQLError(
            "42803",
            f'column "{column.name}" must appear in the GROUP BY clause or be used in an aggregate',
            position=position_of(column),
        )
    if group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None:
        raise SQLError(
            "0A000",
            f"not supported: {node.this.key}() of a column beside ROLLUP, CUBE or GROUPING SETS",
            position=position_of(column),
        )


_RANK = "count(*) FILTER (WHERE :b AND :f)"
_ALL = "count(*) FILTER (WHERE :f)"
_TEMPLATES: dict[type[exp.Expr], str] = {
    exp.Rank: f"{_RANK} + 1",
    exp.DenseRank: "count(DISTINCT :r) FILTER (WHERE :b AND :f) + 1",
    exp.PercentRank: f"coalesce(CAST({_RANK} AS DOUBLE) / CAST(nullif({_ALL}, 0) AS DOUBLE), 0)",
    exp.CumeDist: "CAST(count(*) FILTER (WHERE (:b OR :e) AND :f) + 1 AS DOUBLE) "
    f"/ CAST({_ALL} + 1 AS DOUBLE)",
}


def _filtered(node: exp.WithinGroup) -> tuple[exp.Expr, exp.Expr | None]:
    parent = node.parent
    if isinstance(parent, exp.Filter) and node.arg_key == "this":
        return parent, parent.expression.this.copy()
    return node, None


def _before(given: list[exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    """Whether a row stands before the one that is asked for: at the first key that differs."""
    found: list[exp.Expr] = []
    for place, (argument, key) in enumerate(zip(given, keys, strict=True)):
        earlier = [_equal(given[:place], keys[:place])] if place else []
        found.append(exp.and_(*earlier, _sorts_before(argument, key)))
    return exp.or_(*found)


def _equal(given: list[exp.Expr], keys: list[exp.Expr]) -> exp.Expr:
    return exp.and_(
        *(
            duckdb("(:k IS NOT DISTINCT FROM :a)", k=key.this, a=argument)
            for argument, key in zip(given, keys, strict=True)
        )
    )


def _sorts_before(argument: exp.Expr, key: exp.Expr) -> exp.Expr:
    sign = ">" if key.args.get("desc") else "<"
    first, last = (":k", ":a") if key.args.get("nulls_first") else (":a", ":k")
    template = f"(coalesce(:k {sign} :a, false) OR ({first} IS NULL AND {last} IS NOT NULL))"
    return duckdb(template, k=key.this, a=argument)
