"""Which table's column a result's column is, for tools that let their users edit what they see.

SELECT o.id, total + 1, c.* FROM orders o JOIN customers c ON …
orders.id, nothing, customers.id, customers.name
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.descriptors.descriptor import TableDescriptor
from ...parse import folded
from ...results.results import Origin, ResultColumn
from ..binder import Relations, descriptor_of, scopes_in
from ..calls.oids import relation_oid
from .merged_columns import merges_columns

Origins = tuple[Origin | None, ...]
Source = tuple[str, TableDescriptor | None]


def column_origins(query: exp.Query, relations: Relations) -> Origins:
    """An origin, or None, for each column of a query; nothing from where a star hides them."""
    if not isinstance(query, exp.Select):
        return ()
    scope = next(scope for scope in scopes_in(query) if scope.expression is query)
    sources = [
        (alias.lower(), descriptor_of(source, relations))
        for alias, (_, source) in scope.selected_sources.items()
    ]
    found: list[Origin | None] = []
    for item in query.expressions:
        inner = item.unalias()
        star = inner if isinstance(inner, exp.Star) else inner.this
        if not isinstance(star, exp.Star):
            found.append(_of_item(inner, sources))
            continue
        behind = _of_star(inner, scope, sources)
        if behind is None:
            break
        found += behind
    return tuple(found)


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


def _of_item(item: exp.Expr, sources: Sequence[Source]) -> Origin | None:
    if not isinstance(item, exp.Column) or not isinstance(item.this, exp.Identifier):
        return None
    qualifier = item.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        sources = [source for source in sources if source[0] == wanted]
    elif any(table is None for _, table in sources):
        return None
    found = [
        origin
        for _, table in sources
        if table is not None and (origin := origin_of(table, folded(item.this))) is not None
    ]
    return found[0] if len(found) == 1 else None


def _of_star(
    star: exp.Expr, scope: QueryScope, sources: Sequence[Source]
) -> list[Origin | None] | None:
    """The columns of all sources, or of the one that a star names; None where it is not plain how
    many there are."""
    qualifier = star.args.get("table")
    if qualifier is not None:
        wanted = folded(qualifier).lower()
        sources = [source for source in sources if source[0] == wanted]
    elif any(map(merges_columns, scope.expression.args.get("joins") or ())):
        return None
    found: list[Origin | None] = []
    for _, table in sources:
        if table is None:
            return None
        found += [origin_of(table, column.name) for column in table.shown_columns]
    return found
