"""Columns and checks as statements give them: types, defaults, expressions of the right types, the
key of a table without one, and notices of what is not kept as PostgreSQL keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.column_types import INT8, ColumnType
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ...analyze.columns.column_values import check_becomes, check_computed
from ...analyze.default_expressions import repeats, with_default
from ...lower.row_expressions import compile_check, compile_expression
from ...parse import columns_in, text_of
from ...results.results import QueryEvaluator
from ...syntax import schema_statements as s
from ...syntax.statement import TypeName, UserTypeName, at
from ...syntax.trees import Tree, error_at
from ..write.row_rules import default_type, result_types


def column_type(given: TypeName) -> ColumnType:
    """Returns the type of a column's declaration. Raises SQLError 42704 for an unknown type."""
    if isinstance(given, UserTypeName):
        return given.resolved
    with at(given.position):
        return ColumnType.from_sql(given.name, given.arguments)


def check_identity_type(type: ColumnType) -> None:
    """Raises SQLError 22023 for a type that is no integer."""
    if type.broad.kind is not TypeKind.INT8:
        raise SQLError("22023", "identity column type must be smallint, integer, or bigint")


def plain_column(id: int, given: s.ColumnDefinition) -> Column:
    """The column without its default, its identity and what computes it."""
    type, nullable = column_type(given.type), given.nullable is not False
    return Column(id=id, name=given.name, type=type, nullable=nullable, hidden=given.hidden)


def new_column(table: TableDescriptor, given: s.ColumnDefinition) -> tuple[Column, bool]:
    """The column that ADD COLUMN adds, and whether existing rows must be filled."""
    column = plain_column(table.next_column_id, given)
    if given.computed is not None:
        return with_computed(table, column, given.computed), True
    if given.default is None:
        return column, False
    column = with_default(column, given.default)
    if given.identity is not None:
        column = replace(column, identity=given.identity.identity)
    if column.default_expression is not None:
        return column, True
    return replace(column, missing=column.default), False


def with_computed(table: TableDescriptor, column: Column, tree: Tree) -> Column:
    """Returns the column with a computed expression. Raises SQLError 42P17 for an expression of
    another computed column, of the time, or of drawn values."""
    what = f'computed column "{column.name}"'
    for name in columns_in(tree):
        if table.column(name).computed is not None:
            raise error_at(tree, "42P17", f'{what} cannot reference computed column "{name}"')
    if not repeats(tree):
        message = f"{what}: its expression must give the same value every time"
        raise error_at(tree, "42P17", message)
    text = text_of(tree)
    compile_expression(table, text, column.type)
    return replace(column, computed=text)


# What Python does not evaluate is shown to DuckDB, so that a function that is not there is told of
# when the table is made, and not by each row that is written.


async def check_expressions(
    before: TableDescriptor | None, table: TableDescriptor, analytics: QueryEvaluator
) -> None:
    """Raises SQLError for defaults, checks and computed columns that the table has and `before` had
    not: as 42883 where a function is unknown, 42804 where the type is wrong."""
    drawn = {c.id: c.default_expression for c in before.columns} if before is not None else {}
    for column in table.visible_columns:
        text = column.default_expression
        if text is not None and drawn.get(column.id) != text:
            type = await default_type(text, analytics)
            hint = "Cast it, or drop it and set another one behind a change of the type."
            check_becomes(type, column.type, f'default for column "{column.name}"', hint, None)
    known = {c.id: c.computed for c in before.columns} if before is not None else {}
    computed = [
        (column, compile_expression(table, column.computed, column.type))
        for column in table.visible_columns
        if column.computed is not None and known.get(column.id) != column.computed
    ]
    there = {check.expression for check in before.checks} if before is not None else set()
    checks = [(c, compile_check(table, c)) for c in table.checks if c.expression not in there]
    new = [expression for _, expression in [*computed, *checks]]
    foreign = [expression.tree for expression in new if expression.scalar is None]
    types = iter(await result_types(table, foreign, analytics))
    for column, expression in computed:
        scalar = expression.scalar
        check_computed(next(types) if scalar is None else scalar.type, column, expression.tree)
    for check, expression in checks:
        type = expression.type if expression.scalar is not None else next(types)
        if type.kind is not TypeKind.BOOL and not expression.null:
            raise SQLError(
                "42804",
                f"argument of CHECK must be type boolean, not type {type.kind.value}",
                detail=f"The constraint is CHECK ({check.expression}).",
            )


# Notices


def ascending(elements: Iterable[object]) -> str | None:
    """A notice that names the columns of indexes that were to be descending; None without one.

    No result differs by it: a query is ordered by its ORDER BY, whatever it is read by.
    """
    columns = [
        f'"{column}"'
        for element in elements
        if isinstance(element, s.IndexDefinition)
        for column in element.descending
    ]
    if not columns:
        return None
    return f"ignored, for indexes are ascending, NULLs last: DESC of {', '.join(columns)}"


def notices(*told: str | None) -> str | None:
    """Joins several notices into one."""
    return "; ".join(filter(None, told)) or None


# Columns that are not in `SELECT *`: the key of a table that was made without one.

ROWID = "rowid"


def hidden_key(columns: Iterable[Column]) -> Column:
    """The key of a table that is made without one, as CockroachDB's: `rowid`, or `rowid_1`, …"""
    taken = {column.name for column in columns}
    name, number = ROWID, 0
    while name in taken:
        number += 1
        name = f"{ROWID}_{number}"
    return Column(
        id=1, name=name, type=INT8, nullable=False, default_expression="unique_rowid()", hidden=True
    )
