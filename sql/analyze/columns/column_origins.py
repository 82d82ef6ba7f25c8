"""The table columns that a result's columns are, for tools that let their users edit what they see.

SELECT o.id, total + 1, c.* FROM orders o JOIN customers c ON …
orders.id, nothing, customers.id, customers.name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.descriptors.descriptor import TableDescriptor
from ...parse import folded
from ...results.results import Origin, ResultColumn
from ..binder import Relations, descriptor_of
from ..calls.oids import relation_oid

Origins = tuple[Origin | None, ...]
Sources = dict[str, TableDescriptor | None]
"""The tables and views of FROM by their names in small letters; None for what is neither, and for
a table whose columns have other names."""


def column_origins(query: exp.Query, relations: Relations, scopes: Sequence[QueryScope]) -> Origins:
    """An origin, or None, for each column of a query; nothing from where a star hides them."""
    if not isinstance(query, exp.Select):
        return ()
    scope = next(scope for scope in scopes if scope.expression is query)
    sources = sources_in(scope, relations)
    items = takewhile(lambda item: not item.is_star, query.expressions)
    return tuple(_of_item(item.unalias(), sources) for item in items)


def sources_in(scope: QueryScope, relations: Relations) -> Sources:
    found: Sources = {}
    for alias, (_, source) in scope.selected_sources.items():
        renamed = isinstance(source, exp.Table) and bool(source.alias_column_names)
        found[alias.lower()] = None if renamed else descriptor_of(source, relations)
    return found


def owner_of(column: exp.Expr, sources: Sources) -> tuple[str, str] | None:
    """The source that a column is of, and its name; None where that is not plain, or where it is no
    column."""
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return None
    name, qualifier = folded(column.this), column.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        return (wanted, name) if wanted in sources else None
    holding = [alias for alias, table in sources.items() if table and table.find_column(name)]
    plain = None not in sources.values() and len(holding) == 1
    return (holding[0], name) if plain else None


def with_origins(columns: Sequence[ResultColumn], origins: Origins) -> tuple[ResultColumn, ...]:
    """The columns of a result, as far as their origins are known with them."""
    if not any(origins):
        return tuple(columns)
    known = [*origins, *[None] * (len(columns) - len(origins))]
    return tuple(
        column if origin is None else replace(column, origin=origin)
        for column, origin in zip(columns, known, strict=False)
    )


def origin_of(table: TableDescriptor, name: str) -> Origin | None:
    column = table.find_column(name)
    return None if column is None else Origin(relation_oid(table.id, table.name), column.id)


def _of_item(item: exp.Expr, sources: Sources) -> Origin | None:
    owner = owner_of(item, sources)
    table = None if owner is None else sources[owner[0]]
    return None if owner is None or table is None else origin_of(table, owner[1])
