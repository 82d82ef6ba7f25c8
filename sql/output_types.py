"""The types that tables give a query's columns.

Expressions are computed in broad types (`catalog.column_types`), but a column that a query only
passes on keeps its own, and so does an explicit cast:

    SELECT id, n + 1, s::VARCHAR(3) FROM t        INT4, unknown, VARCHAR(3)

What is unknown has the type that its computation has.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ..catalog.column_types import ColumnType
from .binder import Relations, declared_type, scopes_in
from .parser.queries import table_name
from .scalars import type_of_cast

Types = tuple[ColumnType | None, ...]


def declared_types(query: exp.Query, relations: Relations) -> Types:
    """A type, or None, for each column of a query; nothing at all where a star hides them.

    A set operation has the types that both its sides agree on, which nobody looks for here.
    """
    if not isinstance(query, exp.Select):
        return ()
    scope = next(scope for scope in scopes_in(query) if scope.expression is query)
    types: list[ColumnType | None] = []
    for item in query.expressions:
        inner = item.unalias()
        if isinstance(inner, exp.Star) or isinstance(inner.this, exp.Star):
            found = _of_star(query, scope, relations)
            if found is None:
                return tuple(types)
            types += found
        elif isinstance(inner, exp.Column):
            types.append(declared_type(inner, scope, relations))
        elif isinstance(inner, exp.Cast):
            types.append(type_of_cast(inner))
        else:
            types.append(None)
    return tuple(types)


def _of_star(query: exp.Select, scope: QueryScope, relations: Relations) -> list[ColumnType] | None:
    """All columns of the query's only table; None where there is more to it."""
    sources = list(scope.sources.values())
    if len(sources) != 1 or query.args.get("joins"):
        return None
    (source,) = sources
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        return None
    descriptor = relations.get(table_name(source).parts)
    return None if descriptor is None else [column.type for column in descriptor.shown_columns]
