"""The types of users in statements that define columns: found before the columns are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from ....catalog.values.column_types import ColumnType
from ....catalog.values.type_kinds import SQL_NAMES
from ...syntax import statements
from ...syntax.names import TypeName, UserTypeName
from ...syntax.schema_statements import AddColumn, AlterCommand, AlterTable, AlterType
from ..changer import Changer
from .enum_types import named_type

S = TypeVar("S")

Resolved = Callable[[TypeName], TypeName]


async def with_named_types(changer: Changer, statement: S) -> S:
    """The statement with its types' names resolved. An unknown one is left, to be told of."""
    if not isinstance(statement, statements.CreateTable | AlterTable):
        return statement
    types: dict[str, ColumnType] = {}
    for given in type_names(statement):
        if given.name.removesuffix("[]") in SQL_NAMES:
            continue
        found = await named_type(
            changer.services, changer.transaction, given.name, given.position, changer.database
        )
        if found is not None:
            types[given.name] = found
    if not types:
        return statement

    def resolved(given: TypeName) -> TypeName:
        type = types.get(given.name)
        if type is None:
            return given
        return UserTypeName(given.name, given.arguments, given.position, type)

    if isinstance(statement, statements.CreateTable):
        columns = tuple(replace(c, type=resolved(c.type)) for c in statement.columns)
        return replace(statement, columns=columns)
    commands = tuple(_command(command, resolved) for command in statement.commands)
    return replace(statement, commands=commands)


def type_names(statement: statements.CreateTable | AlterTable) -> list[TypeName]:
    """The types that a statement gives to columns."""
    if isinstance(statement, statements.CreateTable):
        return [column.type for column in statement.columns]
    names: list[TypeName] = []
    for command in statement.commands:
        match command:
            case AddColumn(definition=definition):
                names.append(definition.type)
            case AlterType(type=type):
                names.append(type)
    return names


def _command(command: AlterCommand, resolved: Resolved) -> AlterCommand:
    match command:
        case AddColumn(definition=definition):
            return replace(command, definition=replace(definition, type=resolved(definition.type)))
        case AlterType(type=type):
            return replace(command, type=resolved(type))
    return command
