"""Columns that a query implies: those that depend on a grouped primary key, put into GROUP BY, for
DuckDB knows of no keys, and those of documents' elements.

    SELECT c.*, count(o.id) FROM customers c LEFT JOIN orders o ON … GROUP BY c.id ORDER BY c.name
                                                     GROUP BY c.id, c.email, c.name

A group has one row of the table, or none of an outer join, and so one value of each of its columns:
the groups stay the same, whichever columns join them: those that the query names outside of
aggregates. As in PostgreSQL the key is a primary one and whole, and the table is named in the FROM
clause of the very query that groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope
from sqlglot.optimizer.scope import Scope as QueryScope

from ..analyze.binder import Relations, descriptor_of
from ..analyze.columns.output_columns import Sources, owner_of, sources_in
from ..syntax.trees import CALLED, find_all, folded, paced


def group_by_keys(query: exp.Expr, relations: Relations, scopes: Sequence[QueryScope]) -> None:
    """Adds the columns that depend on grouped keys to every GROUP BY of `query`, in place."""
    if not any(_plain_columns(group) for group in find_all(query, exp.Group)):
        return
    for scope in scopes:
        select = scope.expression
        if isinstance(select, exp.Select):
            group = select.args.get("group")
            if group is not None and _plain_columns(group):
                _complete(select, group, sources_in(scope, relations))


def _plain_columns(group: exp.Group) -> bool:
    """Whether it is a list of expressions: of several sets of them each is another grouping, in
    which a column may be left out."""
    return group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None


def _complete(select: exp.Select, group: exp.Group, sources: Sources) -> None:
    grouped = {
        owner_of(column, sources)
        for column in (_meant(item, select, sources) for item in group.expressions)
        if isinstance(column, exp.Column)
    }
    dependent = {
        alias: table
        for alias, table in sources.items()
        if table is not None
        and table.view is None
        and table.key_columns
        and {(alias, key.name) for key in table.key_columns} <= grouped
    }
    named = list(group.expressions)
    for column in paced(select.walk(prune=_in_aggregate)) if dependent else ():
        owner = owner_of(column, sources)
        table = None if owner is None or owner in grouped else dependent.get(owner[0])
        if owner is None or table is None or table.find_column(owner[1]) is None:
            continue
        if column not in named:
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


def _in_aggregate(node: exp.Expr) -> bool:
    """Whether what stands below is of the rows of a group, not of the group."""
    return isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)


# The elements of a document, by the name of the function that gives them.
#
#     SELECT e FROM docs, jsonb_array_elements(docs.tags) e
#     SELECT e.value AS e FROM docs, jsonb_array_elements(docs.tags) e
#
# The column is called `value`, and the name of a function that returns one column is a value too. A
# column of that name, of any other source, comes first.


def name_elements(relations: Relations, scopes: Sequence[Scope]) -> None:
    """Says the column where a query says the function, in place."""
    for scope in scopes:
        called = {name: only for name, source in scope.sources.items()
                  if (only := _only_column(source)) not in (None, name)}  # fmt: skip
        for column in scope.columns if called else ():
            name = folded(column.this) if isinstance(column.this, exp.Identifier) else None
            if name not in called or column.args.get("table") is not None:
                continue
            if any(_has(source, name, relations) for source in scope.sources.values()):
                continue
            made: exp.Expr = exp.column(called[name], table=name, quoted=True)
            made.meta[CALLED] = name
            if isinstance(column.parent, exp.Select) and column.arg_key == "expressions":
                made = exp.alias_(made, name, quoted=True)
            column.replace(made)


def _only_column(source: exp.Expr | Scope) -> str | None:
    """Returns the only column of an UNNEST in FROM that replaced a function's call; None for any
    other source."""
    tree = source.expression if isinstance(source, Scope) else source
    alias = tree.args.get("alias") if isinstance(tree, exp.Unnest) else None
    columns = alias.columns if isinstance(alias, exp.TableAlias) else []
    return columns[0].name if len(columns) == 1 else None


def _has(source: exp.Expr | Scope, name: str, relations: Relations) -> bool:
    descriptor = descriptor_of(source, relations)
    if descriptor is not None:
        return descriptor.find_column(name) is not None
    if isinstance(source, Scope):
        if not isinstance(source.expression, exp.Query):
            return _only_column(source) == name
        return name in [found.lower() for found in source.expression.named_selects]
    return _only_column(source) == name
