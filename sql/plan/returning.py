"""RETURNING: what a statement that writes tells of its rows.

What Python evaluates row by row is evaluated so. Where one item is more than that, all of them are
a query over the rows that the statement writes, which are given to DuckDB under the table's name:

    UPDATE t AS x SET n = n + 1 RETURNING k, upper(v), (SELECT max(n) FROM u WHERE u.k = x.k)

    SELECT k, upper(v), (SELECT …) FROM "$returned"."rows" AS x ORDER BY "$row"

Subqueries see the tables as they were before the statement, as in Postgres. The tables of FROM and
USING are not told of. What a part of a WITH that writes returns is a table for the parts behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.binder import (
    STEPS,
    Relations,
    check_columns,
    parts_of,
    row_scope,
    table_called,
)
from ..analyze.columns.column_origins import origin_of
from ..analyze.columns.output_names import output_name
from ..analyze.given_tables import ROW_NUMBER, given_table
from ..analyze.one_row import refuse_sets
from ..analyze.scalars import NotNative, Scalar, coerced, compile_scalar
from ..analyze.statement_trees import trees_in
from ..analyze.types.types import PlainTypes
from ..lower.transpile import transpile
from ..parse import folded, position_of
from ..parse.dml.writes import with_ctes
from ..parse.queries import table_name
from ..results.results import STRING, ResultColumn
from ..syntax.refusals import error_at
from ..syntax.statements import Delete, Update, WithWrites, WritingStep
from ..syntax.walks import find_all
from .plans import Projection, ReturnedQuery

RETURNED = ("$returned", "rows")
"""The name of the rows in the query, which no statement can write."""

_NUMBER = 1_000_000
"""The number of the given table of rows, above those of a WITH's parts."""


_ANY_DIGITS = ColumnType(TypeKind.DECIMAL)
"""The Python type of arithmetic on decimals, and of numbers with a fraction."""


def projection(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str | None,
    relations: Relations,
    ctes: Sequence[exp.CTE] = (),
) -> Projection:
    """RETURNING over the rows of the table that is written, which is called `relation`. Raises
    SQLError."""
    relation = relation or descriptor.name
    scope = row_scope(descriptor)
    columns: list[ResultColumn] = []
    scalars: list[Scalar] = []
    shown = list(_shown(items, descriptor))
    native, types = True, PlainTypes(None, {}, lookup=lambda column: _declared(column, descriptor))
    for item in shown:
        tree = item.unalias()
        check_columns(tree, descriptor, relation)
        declared = _declared(tree, descriptor)
        try:
            scalar = compile_scalar(tree, scope, relation)
        except NotNative:
            native = False
            refuse_sets(tree, "RETURNING")
            declared = declared or types.of(tree)
            columns.append(ResultColumn(output_name(item), declared or STRING))
            continue
        type = scalar.type or STRING
        plain = isinstance(tree, exp.Column) and isinstance(tree.this, exp.Identifier)
        if not plain and type == _ANY_DIGITS:  # how many there are, the query knows
            native = False
        origin = origin_of(descriptor, folded(tree.this)) if plain else None
        columns.append(ResultColumn(output_name(item), declared or type, origin))
        # A result has the digits that its type says: arithmetic on decimals gives more.
        scalars.append(coerced(scalar, type) if type.kind is TypeKind.DECIMAL else scalar)
    if native:
        return Projection(tuple(columns), tuple(scalars))
    query = _query(shown, descriptor, relation, relations, ctes)
    return Projection(tuple(columns), (), query)


def refuse_others(
    statement: Update | Delete, descriptor: TableDescriptor, relation: str, relations: Relations
) -> None:
    """Raises SQLError 0A000 where RETURNING takes what may be a column of FROM or USING."""
    sources = [one for tree in statement.sources for one in find_all(tree, exp.Table, exp.Subquery)]
    others = {source.alias_or_name for source in sources} - {relation}
    tables = [relations.get(table_name(one).parts) for one in sources if isinstance(one, exp.Table)]

    def own(column: exp.Expr) -> bool:
        if not isinstance(column, exp.Column):
            return False
        qualifier = column.args.get("table")
        if qualifier is not None:
            return folded(qualifier) not in others
        if column.find_ancestor(exp.Query) is not None or not isinstance(
            column.this, exp.Identifier
        ):
            return True
        name = folded(column.this)
        elsewhere = any(table is not None and table.find_column(name) for table in tables)
        return descriptor.find_column(name) is not None and not elsewhere

    for item in statement.returning if sources else ():
        inner = item.unalias()
        for column in [inner] if isinstance(inner, exp.Star) else find_all(inner, exp.Column):
            if not own(column):
                raise SQLError(
                    "0A000",
                    f"RETURNING beside other tables is of the columns of {relation} alone",
                    hint=f"Name them as {relation}.column, and join what is returned with other "
                    "tables: WITH written AS (…) SELECT … FROM written JOIN ….",
                    position=position_of(column),
                )


def _shown(items: Sequence[exp.Expr], descriptor: TableDescriptor) -> Iterator[exp.Expr]:
    """The items, stars written out."""
    for item in items:
        if item.unalias().is_star:
            for column in descriptor.shown_columns:
                yield exp.column(column.name, quoted=True)
        else:
            yield item


def _query(
    items: Sequence[exp.Expr],
    descriptor: TableDescriptor,
    relation: str,
    relations: Relations,
    ctes: Sequence[exp.CTE],
) -> ReturnedQuery:
    own = [(column.name, column.type) for column in descriptor.visible_columns]
    rows = given_table(_NUMBER, relation, own)
    query = exp.select(*(item.copy() for item in items)).from_(table_called(RETURNED, relation))
    query = query.order_by(exp.column(ROW_NUMBER, table=relation, quoted=True))
    made = with_ctes(query, ctes)
    assert made is not None
    return ReturnedQuery(rows, transpile(made, {**relations, RETURNED: rows}))


def _declared(tree: exp.Expr, descriptor: TableDescriptor) -> ColumnType | None:
    """The type of an item that is a column; None for all else."""
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return None
    column = descriptor.find_column(folded(tree.this))
    return None if column is None else column.type


def returned_table(number: int, step: WritingStep, returning: Projection) -> TableDescriptor | None:
    """Returns the table of a step's RETURNING rows; None where the step has no RETURNING."""
    if not returning.columns:
        return None
    names = [column.name for column in returning.columns]
    if len(step.columns) > len(names):
        raise SQLError(
            "42P10",
            f'table "{step.name}" has {len(names)} columns available but {len(step.columns)} '
            "columns specified",
            position=step.position,
        )
    names[: len(step.columns)] = step.columns
    types = [column.type for column in returning.columns]
    return given_table(number, step.name, list(zip(names, types, strict=True)))


def refuse_unreturned(statement: WithWrites) -> None:
    """Raises SQLError 0A000 where a step is read that returns nothing."""
    silent = {step.name for step in statement.steps if not step.statement.returning}
    for part in parts_of(statement):
        for table in (table for tree in trees_in(part) for table in find_all(tree, exp.Table)):
            schema = table.args.get("db")
            if schema is not None and schema.name == STEPS and folded(table.this) in silent:
                raise error_at(
                    table.this,
                    "0A000",
                    f'WITH query "{table.name}" does not have a RETURNING clause',
                )
