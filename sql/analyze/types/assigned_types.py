"""Types of what INSERT … SELECT and UPDATE give to columns: a text is no member of an enumeration.

Literals are of the type of their column; what is not plain to see is looked at when it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column
from ...syntax.statements import Insert, Update
from ..binder import Relations, joined, reading_query, scopes_in, table_called
from ..columns.column_values import check_assignable
from ..columns.stars import expand_stars, hoist_first_joins
from .types import Types


def check_inserted(statement: Insert, columns: Sequence[Column], relations: Relations) -> None:
    """Raises SQLError 42804 where a column of the query cannot be stored in its target."""
    assert statement.source is not None, statement
    query = statement.source.copy()
    types = _typed(query, relations)
    if not types.strict:
        return
    _, parts = types.parts_of(query)
    for column, several in zip(columns, parts, strict=False):
        for part in several:
            check_assignable(types.of(part), column.type, column.name, part)


def check_updated(
    statement: Update, given: Sequence[tuple[Column, exp.Expr]], relations: Relations
) -> None:
    """The same for the right sides of SET."""
    query = reading_query(statement, [value for _, value in given])
    name = statement.table.parts[-1:]
    target = table_called(name, statement.alias or name[0])
    own = dict(relations)
    own[name] = relations[statement.table.parts]
    query = joined(query, [target]) if statement.sources else query.from_(target)
    types = _typed(query, own)
    if not types.strict:
        return
    for (column, _), item in zip(given, query.expressions, strict=True):
        check_assignable(types.of(item), column.type, column.name, item)


def _typed(query: exp.Expr, relations: Relations) -> Types:
    hoist_first_joins(query)
    expand_stars(query, relations, scopes_in(query))
    return Types(query, relations)
