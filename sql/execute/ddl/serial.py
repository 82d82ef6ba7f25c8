"""Columns that own the sequences they draw from: identity columns, and SERIAL ones where
`SET serial_normalization = sql_sequence`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ....catalog.descriptors.descriptor import TableDescriptor
from ...parse.statements.tables import SERIAL
from ...syntax import statements
from ...syntax.names import ObjectName
from ...syntax.schema_statements import AddColumn, AlterTable, ColumnDefinition
from ...syntax.type_statements import CreateSequence, SequenceChange
from ..changer import Changer
from .sequences import create_sequence

OWNED = "owned_sequence"
"""Marks a default for which a sequence is made: by its name with a table, or with a column."""


def with_sequences(statement: statements.CreateTable, *, serials: bool) -> statements.CreateTable:
    """The statement whose identity columns, and SERIAL ones where `serials`, draw from sequences,
    which it makes."""
    columns = []
    for column in statement.columns:
        serial = column.default is not None and column.default.meta.get(SERIAL)
        if (serial and serials) or column.identity is not None:
            *parents, table = statement.table.parts
            name = ".".join([*parents, f"{table}_{column.name}_seq"])
            if column.identity is not None and column.identity.options.name is not None:
                name = ".".join(column.identity.options.name.parts)
            default = exp.Anonymous(this="nextval", expressions=[exp.Literal.string(name)])
            default.meta[OWNED] = name
            column = replace(column, default=default)
        columns.append(column)
    return replace(statement, columns=tuple(columns))


def with_added_sequences(statement: AlterTable) -> AlterTable:
    """The statement whose added SERIAL columns are to draw from sequences (`identity_columns`)."""
    commands = tuple(
        replace(command, definition=_drawing(command.definition))
        if isinstance(command, AddColumn)
        else command
        for command in statement.commands
    )
    return replace(statement, commands=commands)


def _drawing(column: ColumnDefinition) -> ColumnDefinition:
    if column.default is None or not column.default.meta.get(SERIAL):
        return column
    default = column.default.copy()
    default.meta[OWNED] = True
    return replace(column, default=default)


async def create_owned(
    changer: Changer, statement: statements.CreateTable, table: TableDescriptor
) -> None:
    """Makes the sequences that the columns of a new table own."""
    for column in statement.columns:
        name = None if column.default is None else column.default.meta.get(OWNED)
        if isinstance(name, str):
            clause = column.identity
            plain = SequenceChange(position=column.position)
            change = plain if clause is None else clause.options
            create = CreateSequence(
                name=ObjectName(tuple(name.split(".")), column.position),
                change=change,
                if_not_exists=False,
            )
            owner = (table.id, table.column(column.name).id)
            await create_sequence(changer, create, owner)
