"""The types that tables give a query's columns.

Expressions are computed in broad types (`catalog.values.column_types`), but a column that a query
only passes on keeps its own, and so does an explicit cast:

    SELECT id, n + 1, s::VARCHAR(3) FROM t        INT4, unknown, VARCHAR(3)

What is unknown has the type that its computation has.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import ColumnType
from .types import Types


def declared_types(query: exp.Query, types: Types) -> tuple[ColumnType | None, ...]:
    """A type, or None, for each column of a query; nothing from where a star hides them."""
    if isinstance(query, exp.SetOperation):
        return _united_enums(query, types)
    if not isinstance(query, exp.Select):
        return ()
    return tuple(types.passed_on(item.unalias()) for item in types.output(query))


def _united_enums(query: exp.SetOperation, types: Types) -> tuple[ColumnType | None, ...]:
    """The enumerations among the columns of a set operation. Narrow types of its sides are looked
    for where it is a part of a query, and not where it is the whole of one."""
    if any(item.is_star for item in query.selects):
        return ()
    _, found = types.columns_of(query)
    return tuple(None if type is None or enum_in(type) is None else type for type in found)
