"""Sequences: CREATE, ALTER and DROP, their values, and those that tables' columns own.

A sequence's value is one row under its own id: the value last handed out, and whether it was. Each
draw is a transaction by itself, whatever becomes of the statement, and is durable before anybody
sees a value: none is handed out twice, also behind a crash.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from ....catalog.descriptors.descriptor import Column, DescriptorState, TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor, SequenceOptions
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.descriptors.sequence_value import encode_value
from ....catalog.values.column_types import INT8_MAX, INT8_MIN
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ...analyze.calls.row_calls import draw_of
from ...parse import text_of
from ...runtime.relations import find_sequence, unknown_relation
from ...syntax import schema_statements as s
from ...syntax.statement import ObjectName, at
from ...syntax.trees import Tree, unsupported
from ..changer import Changer, all_of, found_of, skipped
from .given_columns import check_identity_type, column_type
from .schema_targets import TableChanges

INT8_BITS = 64

_NO_CACHE = "CACHE is kept and not obeyed: a statement draws at once what its rows need"


# Statements


async def create(
    changer: Changer, statement: s.CreateSequence, owner: tuple[int, int] | None = None
) -> str | None:
    """CREATE SEQUENCE."""
    name, parents, taken = await changer.place_of(statement.name)
    if taken:
        message = f'relation "{statement.name}" already exists'
        error = SQLError("42P07", message, position=statement.name.position)
        raise skipped(error, statement.if_not_exists)
    if owner is None:
        owner = await _owner(changer, statement.change)
    created = SequenceDescriptor(
        id=await changer.descriptors.allocate_id(),
        name=name,
        database_id=parents[0],
        schema_id=parents[1],
        options=changed_options(None, statement.change),
        owner=owner,
    )
    await changer.descriptors.publish(changer.transaction, created)
    return _NO_CACHE if created.options.cache > 1 else None


async def alter(changer: Changer, statement: s.AlterSequence) -> str | None:
    """ALTER SEQUENCE."""
    found = await _find(changer, statement.name)
    if found is None:
        raise skipped(unknown_relation(statement.name), statement.if_exists)
    change, owner = statement.change, found.owner
    if change.owned_by is not None:
        await _refuse_identity(changer, found)
        owner = await _owner(changer, change)
    await change_sequence(changer, replace(found, owner=owner), change)
    return _NO_CACHE if (change.cache or 1) > 1 else None


async def _find(changer: Changer, name: ObjectName) -> SequenceDescriptor | None:
    return await find_sequence(changer.services.catalog, changer.reader, name, changer.database)


async def _refuse_identity(changer: Changer, sequence: SequenceDescriptor) -> None:
    """Raises SQLError 0A000 where an identity column owns the sequence, which then stays its."""
    if sequence.owner is None:
        return
    table_id, column_id = sequence.owner
    table = await changer.table(table_id)
    if any(c.id == column_id and c.identity is not None for c in table.columns):
        raise SQLError(
            "0A000",
            "cannot change ownership of identity sequence",
            detail=f'Sequence "{sequence.name}" is linked to table "{table.name}".',
        )


async def change_sequence(
    changer: Changer, sequence: SequenceDescriptor, change: s.SequenceChange
) -> None:
    """Publishes the next version of a sequence, with the options that the change gives."""
    changed = replace(sequence, options=changed_options(sequence.options, change))
    if change.restarts:
        value = changed.options.start if change.restart is None else change.restart
        options = changed.options
        _refuse_outside("RESTART", value, options.minimum, options.maximum, change)
        await changer.transaction.put([sequence.key], [encode_value((value, False))])
    await changer.publish_next(changed)


def _refuse_outside(
    what: str, value: int, minimum: int, maximum: int, change: s.SequenceChange
) -> None:
    """Raises SQLError 22023 for a value that is not between the bounds."""
    if not minimum <= value <= maximum:
        below = f"less than MINVALUE ({minimum})"
        side = below if value < minimum else f"greater than MAXVALUE ({maximum})"
        message = f"{what} value ({value}) cannot be {side}"
        raise SQLError("22023", message, position=change.position)


async def drop(changer: Changer, statement: s.DropSequence) -> str | None:
    found, notice = await found_of(changer, statement, partial(_find, changer), "sequences")
    for each in found:
        await refuse_users(changer.transaction, each)
        await drop_sequence(changer, each)
    return notice


async def refuse_users(
    transaction: Transaction, sequence: SequenceDescriptor, going: Collection[int] = ()
) -> None:
    """Raises SQLError 2BP01 where a column's default draws from the sequence, but for tables that
    are `going` with it."""
    for table in await all_of(transaction, TableDescriptor):
        if table.id in going or table.database_id != sequence.database_id:
            continue
        for column in table.columns:
            if draws_from(column, sequence):
                raise SQLError(
                    "2BP01",
                    f'sequence "{sequence.name}" cannot be dropped: the default of column '
                    f'"{column.name}" of table "{table.name}" draws from it',
                    hint="Drop the column or its default first.",
                )


async def _owner(changer: Changer, change: s.SequenceChange) -> tuple[int, int] | None:
    if not change.owned_by:
        return None
    *table_parts, column = change.owned_by
    table = await changer.found(ObjectName(tuple(table_parts), change.position))
    return table.id, table.column(column).id


def changed_options(before: SequenceOptions | None, change: s.SequenceChange) -> SequenceOptions:
    """The options of a sequence, or of a new one. Raises SQLError 22023 for options that contradict
    each other."""

    def option(name: str, otherwise: int) -> int:
        for told in (change, before):
            value = getattr(told, name, None)
            if value is not None:
                return int(value)
        return otherwise

    increment, cache = option("increment", 1), option("cache", 1)
    if increment == 0:
        raise SQLError("22023", "INCREMENT must not be zero", position=change.position)
    rising = increment > 0
    smallest, largest = _bounds(change, before)
    minimum = option("minimum", 1 if rising else smallest)
    maximum = option("maximum", largest if rising else -1)
    start = option("start", minimum if rising else maximum)
    if minimum >= maximum:
        raise SQLError("22023", f"MINVALUE ({minimum}) must be less than MAXVALUE ({maximum})")
    if minimum < smallest or maximum > largest:
        side, value = ("MIN", minimum) if minimum < smallest else ("MAX", maximum)
        raise SQLError(
            "22023",
            f"{side}VALUE ({value}) is out of range for sequence data type",
            position=change.position,
        )
    _refuse_outside("START", start, minimum, maximum, change)
    if cache < 1:
        raise SQLError("22023", f"CACHE ({cache}) must be greater than zero")
    return SequenceOptions(
        start=start,
        increment=increment,
        minimum=minimum,
        maximum=maximum,
        cycle=bool(option("cycle", False)),
        cache=cache,
    )


def _bounds(change: s.SequenceChange, before: SequenceOptions | None) -> tuple[int, int]:
    """The least and the greatest value of the type. Raises SQLError where it would be another."""
    if change.bits is None or change.bits == INT8_BITS:
        return INT8_MIN, INT8_MAX
    if before is not None:
        hint = "Say MINVALUE and MAXVALUE."
        raise unsupported("changing the type of a sequence", change.position, hint)
    largest = 2 ** (change.bits - 1) - 1
    return -largest - 1, largest


# Sequences that go with what owns them

DISOWNED = 0
"""The column of a sequence that is to go when its table's schema change is done: no column has
this id."""


async def drop_sequence(changer: Changer, found: SequenceDescriptor) -> None:
    """Drops a sequence and its stored value."""
    await changer.publish_next(replace(found, state=DescriptorState.DROPPED))
    await changer.transaction.delete([found.key])


async def owned_by(transaction: Transaction, table_id: int) -> list[SequenceDescriptor]:
    """The sequences that a table's columns own."""
    found = await all_of(transaction, SequenceDescriptor)
    return [each for each in found if each.owner is not None and each.owner[0] == table_id]


def draws_from(column: Column, sequence: SequenceDescriptor) -> bool:
    """Whether a column's default names the sequence, whatever the schema."""
    text = (column.default_expression or "").lower()
    names = [literal.split(".")[-1].strip('"') for literal in text.split("'")[1::2]]
    return "nextval" in text and sequence.name.lower() in names


async def settle_owned(changer: Changer) -> None:
    """Drops the sequences whose columns are gone, or draw from them no longer.

    A column whose type was changed is another one that draws from the same sequence, and owns it.
    """
    for found in await all_of(changer.transaction, SequenceDescriptor):
        if found.owner is None:
            continue
        table_id, column_id = found.owner
        table = await changer.table(table_id)
        if table.schema_change_job is not None or any(c.id == column_id for c in table.columns):
            continue
        heir = next((column for column in table.columns if draws_from(column, found)), None)
        if heir is None:
            await drop_sequence(changer, found)
        else:
            await changer.publish_next(replace(found, owner=(table_id, heir.id)))


# ALTER COLUMN … ADD, SET and DROP of identities, and identity columns that are added to a table. A
# sequence that is owned no more is dropped when nobody draws from it any longer: behind the schema
# change, while which other sessions still write rows by the version before.


async def run_identity_command(
    changer: Changer,
    changes: TableChanges,
    command: s.AddIdentity | s.SetIdentity | s.DropIdentity,
    table: ObjectName,
) -> None:
    column = changes.table.column(command.name)
    match command:
        case s.AddIdentity(clause=clause):
            _refuse_locked(changes.table)
            _refuse_added(changes.table, column)
            await add_identity(changer, changes, column, clause, table)
        case s.SetIdentity():
            _must_be_identity(changes.table, column)
            if command.identity is not None and command.identity is not column.identity:
                changed = replace(column, identity=command.identity)
                changes.restate(changed, f"set identity of {column.name}")
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
            changes.restate(changed, f"drop identity of {column.name}")
            # Its sequences are left to whoever drops what nobody draws from.
            for sequence in await _owned(changer, changes.table, column):
                await changer.publish_next(replace(sequence, owner=(changes.table.id, DISOWNED)))


async def add_identity(
    changer: Changer,
    changes: TableChanges,
    column: Column,
    clause: s.IdentityClause,
    table: ObjectName,
) -> None:
    """Has a column of integers draw from a sequence of its own, which is made."""
    default = await _create_owned(changer, changes.table, column, table, clause.options)
    changed = replace(column, identity=clause.identity, default_expression=text_of(default))
    changes.restate(changed, f"add identity of {column.name}")


async def with_identity(
    changer: Changer, changes: TableChanges, command: s.AddColumn, table: ObjectName
) -> s.AddColumn:
    """ADD COLUMN with the default of its identity, whose sequence is made."""
    given = command.definition
    known = changes.table.find_column(given.name) is not None
    if given.identity is None or known:
        return command
    column = Column(id=changes.table.next_column_id, name=given.name, type=column_type(given.type))
    with at(given.type.position):
        check_identity_type(column.type)
    _refuse_locked(changes.table)
    options = given.identity.options
    default = await _create_owned(changer, changes.table, column, table, options)
    return replace(command, definition=replace(given, default=default))


def _refuse_locked(table: TableDescriptor) -> None:
    """Raises SQLError 57000. Unlocking is the only change of its transaction, and here a
    sequence changes with the table."""
    if table.locked:
        raise locked_error(table)


async def _owned(
    changer: Changer, table: TableDescriptor, column: Column
) -> list[SequenceDescriptor]:
    found = await owned_by(changer.transaction, table.id)
    return [each for each in found if each.owner is not None and each.owner[1] == column.id]


async def _create_owned(
    changer: Changer,
    table: TableDescriptor,
    column: Column,
    name: ObjectName,
    options: s.SequenceChange,
) -> Tree:
    """Makes the sequence of a column, of the name that its options say, or else of the first that
    nothing has, and says how to draw from it."""
    *parents, last = name.parts
    wanted, number = f"{last}_{column.name}_seq", 0
    made = options.name or ObjectName((*parents, wanted), name.position)
    while options.name is None and (await changer.place_of(made))[2]:
        number += 1
        made = ObjectName((*parents, f"{wanted}{number}"), name.position)
    statement = s.CreateSequence(name=made, change=options, if_not_exists=False)
    await create(changer, statement, (table.id, column.id))
    return draw_of(".".join(made.parts))


def _refuse_added(table: TableDescriptor, column: Column) -> None:
    check_identity_type(column.type)
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
