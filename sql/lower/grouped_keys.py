"""Columns that depend on a grouped primary key, put into GROUP BY: DuckDB knows of no keys.

    SELECT c.*, count(o.id) FROM customers c LEFT JOIN orders o ON … GROUP BY c.id ORDER BY c.name
                                                     GROUP BY c.id, c.email, c.name

A group has one row of the table, or none of an outer join, and so one value of each of its columns:
the groups stay the same. As in PostgreSQL the key is a primary one and whole, and the table is
named in the FROM clause of the very query that groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ..analyze.binder import Relations
from ..analyze.columns.output_columns import Sources, owner_of, sources_in
from ..syntax.trees import find_all, folded


def group_by_keys(query: exp.Expr, relations: Relations, scopes: Sequence[QueryScope]) -> None:
    """Adds the columns that depend on grouped keys to every GROUP BY of `query`, in place."""
    if not any(_plain_columns(group) for group in find_all(query, exp.Group)):
        return
    for scope in scopes:
        select = scope.expression
        if isinstance(select, exp.Select):
            group = select.args.get("group")
            if group is not None and _plain_columns(group):
                _complete(select, group, scope, sources_in(scope, relations))


def _plain_columns(group: exp.Group) -> bool:
    """Whether it is a list of expressions: of several sets of them each is another grouping, in
    which a column may be left out."""
    return group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None


def _complete(select: exp.Select, group: exp.Group, scope: QueryScope, sources: Sources) -> None:
    grouped = {
        owner_of(column, sources)
        for column in (_meant(item, select, sources) for item in group.expressions)
        if isinstance(column, exp.Column)
    }
    dependent = [
        alias
        for alias, table in sources.items()
        if table is not None
        and table.view is None
        and {(alias, key.name) for key in table.key_columns} <= grouped
    ]
    if not dependent:
        return
    named = [column.copy() for column in group.expressions]
    for column in _used(select, scope):
        source = owner_of(column, sources)
        depends = source is not None and source[0] in dependent and source not in grouped
        if depends and column not in named:
            named.append(column.copy())
    group.set("expressions", named)


def _meant(item: exp.Expr, select: exp.Select, sources: Sources) -> exp.Expr | None:
    """Returns the expression of a GROUP BY item: its own, or that of the result's column which it
    names by number or name."""
    item = item.unnest()
    if isinstance(item, exp.Literal) and item.is_int:
        place = int(item.this) - 1
        return select.expressions[place].unalias() if place < len(select.expressions) else None
    if isinstance(item, exp.Column) and not item.table:
        name = folded(item.this)
        tables = sources.values()
        if not any(table is None or table.find_column(name) is not None for table in tables):
            named = [part for part in select.expressions if isinstance(part, exp.Alias)]
            return next((part.this for part in named if folded(part.args["alias"]) == name), item)
    return item


def _used(select: exp.Select, scope: QueryScope) -> Iterator[exp.Column]:
    """The columns that stand behind the grouping, those of this query in inner ones too."""
    inner = {id(column) for each in scope.subquery_scopes for column in each.external_columns}
    clauses = [select.args.get(name) for name in ("having", "order", "distinct", "qualify")]
    clauses += [*select.expressions, *(select.args.get("windows") or ())]
    for clause in clauses:
        for node in clause.walk(prune=_in_aggregate) if clause is not None else ():
            if isinstance(node, exp.Column) and (
                id(node) in inner or node.find_ancestor(exp.Query) is select
            ):
                yield node


def _in_aggregate(node: exp.Expr) -> bool:
    """Whether what stands below is of the rows of a group, not of the group."""
    return isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)
