"""VALUES with more than constants: an INSERT of a query that computes its rows.

    INSERT INTO t VALUES (1, upper('a')), ((SELECT max(k) + 1 FROM t), 'b')

    SELECT 1, upper('a') UNION ALL SELECT (SELECT max(k) + 1 FROM t), 'b'

What has no type of its own, a text literal or a parameter, is cast to its column's.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ..builtins.templates import cast_to
from ..syntax.refusals import error_at
from ..syntax.walks import find_all
from .columns.column_values import is_default, refuse_computed
from .scalars import evaluates
from .types.rows import SERIES, check_series
from .types.types import untyped


def takes_query(values: exp.Values) -> bool:
    """Whether some item is neither DEFAULT nor evaluated in Python, and names no column itself."""
    return any(_foreign(item) for row in values.expressions for item in items_of(row))


def items_of(row: exp.Expr) -> Sequence[exp.Expr]:
    """The items of one row of VALUES."""
    return row.expressions if isinstance(row, exp.Tuple) else [row]


def _foreign(item: exp.Expr) -> bool:
    if is_default(item):
        return False
    if evaluates(item):
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
