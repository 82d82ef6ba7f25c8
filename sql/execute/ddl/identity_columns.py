"""ALTER COLUMN … ADD, SET and DROP of identities, and identity columns that are added to a table.

An identity column draws from a sequence that it owns. The sequence is made with the statement; one
that is owned no more is dropped when nobody draws from it any longer: behind the schema change,
while which other sessions still write rows by the version before.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.schema_change.targets import FactsElement, Target
from ....catalog.values.errors import SQLError
from ...parse import text_of
from ...syntax import schema_statements as s
from ...syntax.names import ObjectName
from ...syntax.type_statements import CreateSequence, SequenceChange
from ..changer import Changer
from .given_columns import check_identity_type, column_type
from .schema_targets import TableChanges
from .sequences import DISOWNED, change_sequence, create_sequence, drawing_from, owned_by

IdentityCommand = s.AddIdentity | s.SetIdentity | s.DropIdentity


async def run_identity_command(
    changer: Changer, changes: TableChanges, command: IdentityCommand, table: ObjectName
) -> None:
    column = changes.column(command.name)
    match command:
        case s.AddIdentity(clause=clause):
            _refuse_locked(changes.table)
            _refuse_added(changes.table, column, command)
            default = await _sequence(changer, changes.table, column, table, clause.options)
            text = text_of(default)
            changed = replace(column, identity=clause.identity, default_expression=text)
            _add(changes, changed, f"add identity of {column.name}")
        case s.SetIdentity():
            _must_be_identity(changes.table, column)
            if command.identity is not None and command.identity is not column.identity:
                changed = replace(column, identity=command.identity)
                _add(changes, changed, f"set identity of {column.name}")
            if command.options is not None:
                if changes.targets:
                    _refuse_locked(changes.before)
                (sequence,) = await _owned(changer, changes.table, column)
                await change_sequence(changer, sequence, command.options)
        case s.DropIdentity():
            if column.identity is None and command.if_exists:
                return
            _must_be_identity(changes.table, column)
            _refuse_locked(changes.table)
            changed = replace(column, identity=None, default_expression=None)
            _add(changes, changed, f"drop identity of {column.name}")
            await _disown(changer, changes.table, column)


async def with_identity(
    changer: Changer, changes: TableChanges, command: s.AddColumn, table: ObjectName
) -> s.AddColumn:
    """ADD COLUMN with the default of its identity, whose sequence is made."""
    given = command.definition
    known = changes.table.find_column(given.name) is not None
    if given.identity is None or known:
        return command
    column = Column(id=changes.table.next_column_id, name=given.name, type=column_type(given.type))
    check_identity_type(column.type, given.type.position)
    _refuse_locked(changes.table)
    default = await _sequence(changer, changes.table, column, table, given.identity.options)
    return replace(command, definition=replace(given, default=default))


async def _disown(changer: Changer, table: TableDescriptor, column: Column) -> None:
    """Leaves the sequences of a column to whoever drops what nobody draws from."""
    for sequence in await _owned(changer, table, column):
        await changer.publish_next(replace(sequence, owner=(table.id, DISOWNED)))


def _refuse_locked(table: TableDescriptor) -> None:
    """Raises SQLError 57000. Unlocking is the only change of its transaction, and here a
    sequence changes with the table."""
    if table.locked:
        raise locked_error(table)


async def _owned(
    changer: Changer, table: TableDescriptor, column: Column
) -> list[SequenceDescriptor]:
    found = await owned_by(changer.transaction, table.id)
    return [s for s in found if s.owner is not None and s.owner[1] == column.id]


async def _sequence(
    changer: Changer,
    table: TableDescriptor,
    column: Column,
    name: ObjectName,
    options: SequenceChange,
) -> exp.Expr:
    """Makes the sequence of a column, and says how to draw from it."""
    made = options.name
    if made is None:
        *parents, _ = name.parts
        free = await _free_name(changer, table, f"{table.name}_{column.name}_seq")
        made = ObjectName((*parents, free), name.position)
    create = CreateSequence(name=made, change=options, if_not_exists=False)
    await create_sequence(changer, create, (table.id, column.id))
    return drawing_from(made)


async def _free_name(changer: Changer, table: TableDescriptor, wanted: str) -> str:
    """The name, or the first with a number behind it that nothing has."""
    descriptors = changer.descriptors
    name, number = wanted, 0
    while await descriptors.lookup(changer.transaction, table.database_id, table.schema_id, name):
        number += 1
        name = f"{wanted}{number}"
    return name


def _add(changes: TableChanges, column: Column, label: str) -> None:
    changes.add(Target(FactsElement(label=label, columns=(column,))))


def _refuse_added(table: TableDescriptor, column: Column, command: s.AddIdentity) -> None:
    check_identity_type(column.type, command.position)
    what = f'column "{column.name}" of relation "{table.name}"'
    if column.identity is not None:
        message = f"{what} is already an identity column"
    elif column.nullable:
        message = f"{what} must be declared NOT NULL before identity can be added"
    elif column.has_default or column.default_expression is not None:
        message = f"{what} already has a default value"
    else:
        return
    raise SQLError("55000", message)


def _must_be_identity(table: TableDescriptor, column: Column) -> None:
    if column.identity is None:
        raise SQLError(
            "55000", f'column "{column.name}" of relation "{table.name}" is not an identity column'
        )
