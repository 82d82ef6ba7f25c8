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

from ....catalog.descriptors.descriptor import TableDescriptor
from ...analyze.binder import Relations, scopes_in
from ...analyze.columns.merged_columns import merges_columns
from ...parse import folded
from ...parse.queries import table_name
from ...syntax.walks import find_all

Sources = dict[str, TableDescriptor | None]
"""Returns the tables of FROM in order; None for an item that is no table."""

Named = tuple[str, str]
"""A column and its source."""


def group_by_keys(query: exp.Expr, relations: Relations) -> None:
    """Adds the columns that depend on grouped keys to every GROUP BY of `query`, in place."""
    if not any(_plain_columns(group) for group in find_all(query, exp.Group)):
        return
    for scope in scopes_in(query):
        select = scope.expression
        if isinstance(select, exp.Select):
            group = select.args.get("group")
            if group is not None and _plain_columns(group):
                _complete(select, group, scope, _sources(scope, relations))


def _plain_columns(group: exp.Group) -> bool:
    """Whether it is a list of expressions: of several sets of them each is another grouping, in
    which a column may be left out."""
    return group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is None


def _sources(scope: QueryScope, relations: Relations) -> Sources:
    found: Sources = {}
    for alias, (node, source) in scope.selected_sources.items():
        renamed = node.args.get("alias") is not None and node.args["alias"].columns
        found[alias] = None
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            known = relations.get(table_name(source).parts)
            found[alias] = known if known and known.view is None and not renamed else None
    return found


def _complete(select: exp.Select, group: exp.Group, scope: QueryScope, sources: Sources) -> None:
    merged = _merged_names(select, sources)
    grouped = {
        _source_of(column, sources, merged)
        for column in (_meant(item, select, sources) for item in group.expressions)
        if isinstance(column, exp.Column)
    }
    dependent = [
        alias
        for alias, table in sources.items()
        if table is not None and {(alias, key.name) for key in table.key_columns} <= grouped
    ]
    if not dependent:
        return
    _spell_stars(select, sources)
    named = [column.copy() for column in group.expressions]
    for column in _used(select, scope):
        source = _source_of(column, sources, merged)
        if source is None:
            added = _whole_row(column, sources, dependent)
        else:
            added = [column.copy()] if source[0] in dependent and source not in grouped else []
        named += [each for each in added if each not in named]
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


def _source_of(column: exp.Column, sources: Sources, merged: set[str]) -> Named | None:
    """The source that a column is of; None where that is not plain, or where it is no column."""
    if not isinstance(column.this, exp.Identifier):
        return None
    name, qualifier = folded(column.this), column.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        return next(((alias, name) for alias in sources if alias.lower() == wanted), None)
    if any(table is None for table in sources.values()):
        return None
    holding = [alias for alias, table in sources.items() if table and table.find_column(name)]
    return (holding[0], name) if len(holding) == 1 or (holding and name in merged) else None


def _merged_names(select: exp.Select, sources: Sources) -> set[str]:
    """The columns of USING and NATURAL, which are the left side's where no row lacks that."""
    joins = select.args.get("joins") or ()
    if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
        return set()
    found: set[str] = set()
    for join in filter(merges_columns, joins):
        for name in join.args.get("using") or ():
            found.add(folded(name if isinstance(name, exp.Identifier) else name.this))
        right = sources.get(join.this.alias_or_name)
        if not join.args.get("using") and right is not None:
            others = [table for table in sources.values() if table not in (None, right)]
            names = {column.name for column in right.shown_columns}
            found |= {name for name in names if any(t and t.find_column(name) for t in others)}
    return found


def _spell_stars(select: exp.Select, sources: Sources) -> None:
    """Puts the columns of tables for the stars of the select list."""
    items: list[exp.Expr] = []
    for item in select.expressions:
        whole = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        qualifier = item.args.get("table") if whole else None
        wanted = None if qualifier is None else folded(qualifier).lower()
        meant = [alias for alias in sources if wanted is None or alias.lower() == wanted]
        known = all(sources[alias] is not None for alias in meant)
        if known and (whole or isinstance(item, exp.Star)):
            items += [column for alias in meant for column in _columns(alias, sources)]
        else:
            items.append(item)
    select.set("expressions", items)


def _columns(alias: str, sources: Sources) -> list[exp.Column]:
    table = sources[alias]
    shown = table.shown_columns if table is not None else ()
    return [exp.column(column.name, table=alias, quoted=True) for column in shown]


def _whole_row(column: exp.Column, sources: Sources, dependent: Sequence[str]) -> list[exp.Column]:
    """The columns of a table that depends on its key and stands by its name for its row."""
    bare = isinstance(column.this, exp.Identifier) and not column.table
    name = folded(column.this) if bare else None
    if any(table is None or table.find_column(name or "") for table in sources.values()):
        return []
    return _columns(name, sources) if name is not None and name in dependent else []


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
