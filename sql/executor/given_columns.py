"""Columns as statements give them: types, defaults, expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from sqlglot import exp

from ...catalog.column_types import ColumnType, Datum, coerce
from ...catalog.descriptor import Column, TableDescriptor
from ...catalog.elements import Identity
from ...catalog.errors import SQLError
from ...catalog.type_kinds import TypeKind
from ..default_expressions import compile_default, volatile
from ..parser import columns_in, position_of, text_of
from ..parser import schema_statements as s
from ..parser.names import TypeName, UserTypeName
from ..row_expressions import compile_expression
from ..scalars import Bindings

EPOCH = Bindings((), datetime(1970, 1, 1, tzinfo=UTC))


def column_type(given: TypeName) -> ColumnType:
    if isinstance(given, UserTypeName):
        return given.resolved
    try:
        return ColumnType.from_sql(given.name, given.arguments)
    except SQLError as error:
        error.position = error.position or given.position
        raise


def identity_of(given: s.ColumnDefinition, type: ColumnType) -> Identity | None:
    """What an identity clause makes of the column. Raises SQLError 22023 where it is no integer."""
    if given.identity is None:
        return None
    if type.broad.kind is not TypeKind.INT8:
        raise SQLError(
            "22023",
            "identity column type must be smallint, integer, or bigint",
            position=given.type.position,
        )
    return given.identity.identity


def new_column(table: TableDescriptor, given: s.ColumnDefinition) -> tuple[Column, bool]:
    """The column that ADD COLUMN adds, and whether existing rows must be filled."""
    if given.identity is not None:
        raise SQLError(
            "0A000",
            f'identity column "{given.name}" cannot be added to a table that is there',
            hint="Make a sequence, and add the column with DEFAULT nextval('sequence').",
            position=given.position,
        )
    column = Column(
        id=table.next_column_id,
        name=given.name,
        type=column_type(given.type),
        nullable=given.nullable is not False,
    )
    if given.computed is not None:
        return with_computed(table, column, given.computed), True
    if given.default is None:
        return column, False
    column = with_default(column, given.default)
    if column.default_expression is not None:
        return column, True
    if column.default is None and not column.nullable:
        raise SQLError(
            "23502",
            f'column "{column.name}" is NOT NULL and its default is NULL',
            position=given.position,
        )
    return replace(column, missing=column.default), False


def with_default(column: Column, tree: exp.Expr) -> Column:
    """The column with a constant default, or one that is drawn for each row."""
    scalar = compile_default(tree)
    if volatile(tree):
        _check_default_type(column, scalar.type, tree)
        return replace(column, default_expression=text_of(tree))
    try:
        datum: Datum = coerce(column.type, scalar.value(EPOCH), column=column.name)
    except SQLError as error:
        error.position = error.position or position_of(tree)
        raise
    return replace(column, has_default=True, default=datum)


def _check_default_type(column: Column, type: ColumnType | None, tree: exp.Expr) -> None:
    times = (TypeKind.DATE, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)
    kind = None if type is None else type.kind
    both_times = kind in times and column.type.kind in times
    if kind is not column.type.broad.kind and not both_times:
        raise SQLError(
            "42804",
            f'column "{column.name}" is of type {column.type} but default expression is of type '
            f"{type}",
            position=position_of(tree),
        )


def with_computed(table: TableDescriptor, column: Column, tree: exp.Expr) -> Column:
    for name in columns_in(tree):
        if table.column(name).computed is not None:
            raise SQLError(
                "42P17",
                f'computed column "{column.name}" cannot reference computed column "{name}"',
                position=position_of(tree),
            )
    text = text_of(tree)
    compile_expression(table, text, column.type)
    return replace(column, computed=text)


def constraint_definitions(
    columns: Iterable[s.ColumnDefinition],
) -> Iterable[s.TableConstraint]:
    for column in columns:
        yield from column.constraints


def cast_name(type: ColumnType) -> str:
    """What is too long or too great for the type itself is an error when it is stored."""
    return type.broad.sql_name


def as_text(value: Datum) -> object:
    """A default as another type takes it: from its text, where it is not taken as it is."""
    return value if value is None or isinstance(value, bool) else str(value)
