"""Columns and checks as statements give them: types, defaults, expressions of the right types, the
key of a table without one, and notices of what is not kept as PostgreSQL keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.enum_columns import enum_in
from ....catalog.values.column_types import INT8, ColumnType, Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import FLOATS, TypeKind
from ....kvlayer.clock import ZERO
from ...analyze.columns.column_values import check_assignable
from ...analyze.default_expressions import compile_default, generator_of, volatile
from ...analyze.scalars import Bindings
from ...parse import columns_in, text_of
from ...results.results import QueryEvaluator
from ...syntax import schema_statements as s
from ...syntax.statement import TypeName, UserTypeName, at
from ...syntax.trees import parts_in, position_of
from ..write.row_rules import compile_check, compile_expression, result_types

EPOCH = Bindings((), ZERO)


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


def with_default(column: Column, tree: exp.Expr) -> Column:
    """The column with a constant default, or one that is drawn for each row."""
    tree = without_own_cast(tree, column.type)
    scalar = compile_default(tree)
    if volatile(tree):
        check_assignable(scalar.type, column.type, column.name, tree)
        return replace(column, default_expression=text_of(tree))
    with at(position_of(tree)):
        datum: Datum = coerce(column.type, scalar.value(EPOCH), column=column.name)
    return replace(column, has_default=True, default=datum)


def without_own_cast(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    """A default less a cast of a text to the column's own enumeration, as pg_dump writes one."""
    enum = enum_in(type)
    if enum is None or not isinstance(tree, exp.Cast) or not isinstance(tree.this, exp.Literal):
        return tree
    name = tree.to.sql("postgres").replace('"', "").removesuffix("[]").rpartition(".")[2]
    return tree.this if name == enum.name else tree


_CLOCKS = frozenset({"clock_timestamp", "statement_timestamp", "transaction_timestamp"})


def _tells_time(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _CLOCKS
    return isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)


def with_computed(table: TableDescriptor, column: Column, tree: exp.Expr) -> Column:
    """Returns the column with a computed expression. Raises SQLError 42P17 for an expression of
    another computed column, of the time, or of drawn values."""
    for name in columns_in(tree):
        if table.column(name).computed is not None:
            raise SQLError(
                "42P17",
                f'computed column "{column.name}" cannot reference computed column "{name}"',
                position=position_of(tree),
            )
    if any(generator_of(node) is not None or _tells_time(node) for node in tree.walk()):
        raise SQLError(
            "42P17",
            f'computed column "{column.name}": its expression must give the same value every time',
            position=position_of(tree),
        )
    text = text_of(tree)
    compile_expression(table, text, column.type)
    return replace(column, computed=text)


def defaults_in(statement: object) -> Iterator[exp.Expr]:
    """The DEFAULT clauses of a statement that makes or alters a table."""
    for part in parts_in(statement, s.ColumnDefinition, s.SetDefault):
        match part:
            case s.ColumnDefinition(default=tree) if tree is not None:
                yield without_own_cast(tree, column_type(part.type))
            case s.SetDefault(default=exp.Cast(this=exp.Literal())):
                pass  # perhaps to the column's enumeration, which is not known yet
            case s.SetDefault(default=tree) if tree is not None:
                yield tree


# What Python does not evaluate is shown to DuckDB, so that a function that is not there is told of
# when the table is made, and not by each row that is written.

_NO_TEXTS = (TypeKind.INT8, TypeKind.DECIMAL, *FLOATS, TypeKind.BOOL)
"""Types that a text takes only by a cast."""


async def check_expressions(
    before: TableDescriptor | None, table: TableDescriptor, analytics: QueryEvaluator
) -> None:
    """Raises SQLError for checks and computed columns that the table has and `before` had not: as
    42883 where a function is unknown, 42804 where the type is wrong."""
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
        _check_type(column, next(types) if scalar is None else scalar.type, expression.tree)
    for check, expression in checks:
        type = expression.type if expression.scalar is not None else next(types)
        if type.kind is not TypeKind.BOOL and not isinstance(expression.tree, exp.Null):
            raise SQLError(
                "42804",
                f"argument of CHECK must be type boolean, not type {type.kind.value}",
                detail=f"The constraint is CHECK ({check.expression}).",
            )


def _check_type(column: Column, type: ColumnType | None, tree: exp.Expr) -> None:
    """A text is read as every type but those, as it is in INSERT."""
    if isinstance(tree, exp.Literal | exp.Null):
        return
    readable = type is not None and type.kind is TypeKind.STRING
    if not readable or column.type.broad.kind in _NO_TEXTS:
        check_assignable(type, column.type, column.name, tree)


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
        id=1,
        name=name,
        type=INT8,
        nullable=False,
        default_expression="unique_rowid()",
        hidden=True,
    )
