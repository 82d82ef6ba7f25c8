"""RETURNING: what a statement that writes tells of its rows.

What Python evaluates row by row is evaluated so. Where one item is more than that, all of them are
a query over the rows that the statement writes, which are given to DuckDB under the table's name:

    UPDATE t AS x SET n = n + 1 RETURNING k, upper(v), (SELECT max(n) FROM u WHERE u.k = x.k)

    SELECT k, upper(v), (SELECT …) FROM "$returned"."rows" AS x ORDER BY "$row"

Subqueries see the tables as they were before the statement, as in Postgres.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.binder import TABLE_FUNCTIONS, Relations, check_columns, row_scope
from ..analyze.columns.column_origins import origin_of
from ..analyze.columns.output_names import output_name
from ..analyze.given_tables import ROW_NUMBER, given_table
from ..analyze.scalars import NotNative, Scalar, coerced, compile_scalar
from ..analyze.types.types import PlainTypes
from ..lower.transpile import transpile
from ..parse import folded, position_of
from ..parse.dml.writes import with_ctes
from ..results.results import ResultColumn
from ..syntax.walks import find_all
from .plans import Projection, ReturnedQuery

RETURNED = ("$returned", "rows")
"""The name of the rows in the query, which no statement can write."""

_NUMBER = 1_000_000
"""The number of the given table of rows, above those of a WITH's parts."""


_ANY_DIGITS = ColumnType(TypeKind.DECIMAL)
"""The Python type of arithmetic on decimals, and of numbers with a fraction."""


def _canonical(scalar: Scalar, type: ColumnType) -> Scalar:
    """A result has the digits that its type says: arithmetic on decimals gives more."""
    if type.kind is not TypeKind.DECIMAL:
        return scalar
    return coerced(scalar, type)


def projection(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str | None,
    relations: Relations,
    ctes: Sequence[exp.CTE] = (),
) -> Projection:
    """RETURNING over the rows of one table, which is called `relation`. Raises SQLError."""
    return projection_over(items, descriptor, relation or descriptor.name, (), relations, ctes)


def projection_over(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str,
    others: Sequence[tuple[str, ColumnType]],
    relations: Relations,
    ctes: Sequence[exp.CTE] = (),
) -> Projection:
    """The same over rows with more values behind the table's own, by names that are unique."""
    scope = dict(row_scope(descriptor))
    width, types = len(scope), dict(others)
    scope.update((name, (width + place, type.broad)) for place, (name, type) in enumerate(others))
    columns: list[ResultColumn] = []
    scalars: list[Scalar] = []
    shown = list(_shown(items, descriptor))
    native = True
    for item in shown:
        tree = item.unalias()
        if not others:
            check_columns(tree, descriptor, relation)
        declared = _declared(tree, descriptor, types)
        try:
            scalar = compile_scalar(tree, scope, relation)
        except NotNative:
            native = False
            _refuse_sets(tree)
            declared = declared or PlainTypes(lambda c: _declared(c, descriptor, types)).of(tree)
            columns.append(ResultColumn(output_name(item), declared or ColumnType(TypeKind.STRING)))
            continue
        type = scalar.type or ColumnType(TypeKind.STRING)
        plain = isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)
        if not plain and type == _ANY_DIGITS:  # how many there are, the query knows
            native = False
        origin = origin_of(descriptor, folded(tree.this)) if plain else None
        columns.append(ResultColumn(output_name(item), declared or type, origin))
        scalars.append(_canonical(scalar, type))
    if native:
        return Projection(tuple(columns), tuple(scalars))
    query = _query(shown, descriptor, relation, others, relations, ctes)
    return Projection(tuple(columns), (), query)


def _shown(items: Sequence[exp.Expr], descriptor: TableDescriptor) -> Iterator[exp.Expr]:
    """The items, stars written out."""
    for item in items:
        inner = item.unalias()
        qualified = isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        if qualified or isinstance(inner, exp.Star):
            for column in descriptor.shown_columns:
                yield exp.column(column.name, quoted=True)
        else:
            yield item


def _query(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str,
    others: Sequence[tuple[str, ColumnType]],
    relations: Relations,
    ctes: Sequence[exp.CTE],
) -> ReturnedQuery:
    own = [(column.name, column.type) for column in descriptor.visible_columns]
    rows = given_table(_NUMBER, relation, [*own, *others])
    schema, name = (exp.to_identifier(part, quoted=True) for part in RETURNED)
    alias = exp.TableAlias(this=exp.to_identifier(relation, quoted=True))
    query = exp.select(*(item.copy() for item in items))
    query = query.from_(exp.Table(this=name, db=schema, alias=alias))
    query = query.order_by(exp.column(ROW_NUMBER, table=relation, quoted=True))
    made = with_ctes(query, ctes)
    assert made is not None
    return ReturnedQuery(rows, transpile(made, {**relations, RETURNED: rows}))


def _refuse_sets(tree: exp.Expr) -> None:
    """Raises SQLError for expressions over several rows, as RETURNING is about one row at a
    time."""
    for node in find_all(tree, exp.AggFunc, exp.Window, *TABLE_FUNCTIONS):
        if node.find_ancestor(exp.Query) is not None:
            continue
        if isinstance(node, exp.Window):
            sqlstate, what = "42P20", "window functions"
        elif isinstance(node, TABLE_FUNCTIONS):
            sqlstate, what = "0A000", "set-returning functions"
        elif node.find_ancestor(exp.Window) is not None:
            continue
        else:
            sqlstate, what = "42803", "aggregate functions"
        raise SQLError(sqlstate, f"{what} are not allowed in RETURNING", position=position_of(node))


def _declared(
    tree: exp.Expr, descriptor: TableDescriptor, others: Mapping[str, ColumnType]
) -> ColumnType | None:
    """The type of an item that is a column; None for all else."""
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return None
    column = descriptor.find_column(folded(tree.this))
    return others.get(folded(tree.this)) if column is None else column.type
