"""Queries whose rows are stored: VALUES with more than constants, as a query that computes them,
and the types of what INSERT … SELECT and UPDATE give to columns.

    INSERT INTO t VALUES (1, upper('a')), ((SELECT max(k) + 1 FROM t), 'b')

    SELECT 1, upper('a') UNION ALL SELECT (SELECT max(k) + 1 FROM t), 'b'

What has no type of its own in VALUES, a text literal or a parameter, is cast to its column's.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.values.column_types import STRING
from ..builtins.macros import cast_to
from ..results.results import ResultColumn
from ..syntax.statements import Insert, Update
from ..syntax.trees import error_at, find_all
from .binder import Relations, joined, reading_query, scopes_in, table_called
from .columns.column_values import check_assignable, is_default, refuse_computed
from .columns.output_columns import output_name
from .columns.stars import expand_stars
from .scalars import evaluates
from .types.rows import SERIES, check_series
from .types.types import Types, untyped


def takes_query(values: exp.Values) -> bool:
    """Whether some item is neither DEFAULT nor evaluated in Python, and names no column itself."""
    return any(_foreign(item) for row in values.expressions for item in items_of(row))


def items_of(row: exp.Expr) -> Sequence[exp.Expr]:
    """The items of one row of VALUES."""
    return row.expressions if isinstance(row, exp.Tuple) else [row]


def _foreign(item: exp.Expr) -> bool:
    if isinstance(item, exp.Parameter | exp.Literal) or is_default(item) or evaluates(item):
        return False
    columns = find_all(item, exp.Column)
    return all(column.find_ancestor(exp.Query) is not None for column in columns)


def without_defaults(
    values: exp.Values, targets: Sequence[int]
) -> tuple[exp.Values, tuple[int, ...]]:
    """The rows without the places where each of them says DEFAULT, and the targets of the rest:
    what an INSERT leaves out takes its default, drawn anew for each row if that is its kind."""
    rows = [items_of(row) for row in values.expressions]
    places = range(len(rows[0]))
    left_out = {place for place in places if all(is_default(row[place]) for row in rows)}
    if not left_out:
        return values, tuple(targets)
    kept = [[item for place, item in enumerate(row) if place not in left_out] for row in rows]
    made = exp.Values(expressions=[exp.Tuple(expressions=list(row)) for row in kept])
    return made, tuple(target for place, target in enumerate(targets) if place not in left_out)


def values_query(
    values: exp.Values, targets: Sequence[int], descriptor: TableDescriptor
) -> exp.Expr:
    """The query. Every row has as many items, as the parser has seen to. Raises SQLError."""
    columns = [descriptor.visible_columns[place] for place in targets]
    width = len(items_of(values.expressions[0]))
    rows: list[exp.Select] = []
    for series in find_all(values, *SERIES) if len(values.expressions) > 1 else ():
        if series.find_ancestor(exp.Select) is None:
            check_series(series)
    for row in values.expressions:
        items = items_of(row)
        if width > len(columns):
            raise error_at(
                items[len(columns)], "42601", "INSERT has more expressions than target columns"
            )
        made = [_item(item, column) for item, column in zip(items, columns, strict=False)]
        rows.append(exp.select(*made))
    query: exp.Expr = rows[0]
    for following in rows[1:]:
        query = exp.Union(this=query, expression=following, distinct=False)
    return query


def _item(item: exp.Expr, column: Column) -> exp.Expr:
    if is_default(item):
        raise error_at(
            item,
            "0A000",
            f'DEFAULT of column "{column.name}" cannot stand beside what is not a constant',
            "Leave the column out of the list of columns.",
        )
    refuse_computed(column, item)
    bare = isinstance(item, exp.Parameter) or untyped(item)
    return cast_to(item.copy(), column.type) if bare else item.copy()


# Types of what INSERT … SELECT and UPDATE give to columns: a text is no member of an enumeration.
#
# Literals are of the type of their column; what is not plain to see is looked at when it is stored.


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
    """Raises SQLError 42804 where a right side of SET cannot be stored in its column."""
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


def columns_of_query(tree: exp.Expr, relations: Relations) -> tuple[ResultColumn, ...]:
    """Returns the columns of a SELECT whose rows a statement keeps while it runs. Raises SQLError
    0A000 for one whose type only DuckDB knows."""
    query = tree.copy()
    types = _typed(query, relations)
    columns: list[ResultColumn] = []
    for item in query.expressions:
        inner = item.unalias()
        type = types.passed_on(inner) or types.of(inner)
        if type is None and not types.untyped(inner):
            raise error_at(
                inner,
                "0A000",
                f'the type of column "{output_name(item)}" of a query that locks rows is not known',
                "Cast it to its type.",
            )
        columns.append(ResultColumn(output_name(item), type or STRING))
    return tuple(columns)


def _typed(query: exp.Expr, relations: Relations) -> Types:
    expand_stars(query, relations, scopes_in(query))
    return Types(query, relations)
