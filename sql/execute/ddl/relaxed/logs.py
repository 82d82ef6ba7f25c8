"""CREATE and DROP RELAXED LOG: which tables a log alone may write."""

from __future__ import annotations

from .....catalog.descriptors.descriptor import TableDescriptor
from .....catalog.relaxed.logs import create_log, drop_log, find_log
from .....catalog.rights.privileges import Privilege
from .....catalog.values.errors import SQLError
from ....results.results import Result
from ....runtime.authorization import Actor
from ....syntax.names import ObjectName
from ....syntax.relaxed_statements import CreateRelaxedLog, DropRelaxedLog, RelaxedStatement
from ...changer import Changer
from ...positions import at


async def check_relaxed(actor: Actor, statement: RelaxedStatement) -> None:
    """A log changes its tables, and writes them. Raises SQLError 42501."""
    if isinstance(statement, CreateRelaxedLog):
        for table in statement.tables:
            await actor.need_named(table, Privilege.CREATE)
        return
    try:
        log = await find_log(actor.reader, statement.name)
    except SQLError:
        return  # the statement says that there is none
    for table_id in log.table_ids:
        await actor.need_descriptor(table_id, Privilege.CREATE)


async def run_relaxed_statement(changer: Changer, statement: RelaxedStatement) -> Result:
    """Runs a statement about a relaxed log in the transaction. Raises SQLError."""
    with at(statement.position):
        if isinstance(statement, DropRelaxedLog):
            return await _drop(changer, statement)
        tables = [await _suited(changer, name) for name in statement.tables]
        await create_log(changer.descriptors, changer.transaction, statement.name, tables)
    return Result(tag="CREATE RELAXED LOG")


async def _drop(changer: Changer, statement: DropRelaxedLog) -> Result:
    try:
        log = await find_log(changer.transaction, statement.name)
    except SQLError:
        if not statement.if_exists:
            raise
        notice = f'relaxed log "{statement.name}" does not exist, skipping'
        return Result(tag="DROP RELAXED LOG", notice=notice)
    for table_id in log.table_ids:
        await changer.wait_for_room(await changer.table(table_id))
    await drop_log(changer.descriptors, changer.transaction, log)
    return Result(tag="DROP RELAXED LOG")


async def _suited(changer: Changer, name: ObjectName) -> TableDescriptor:
    """The table, with room for its next version. Raises SQLError 0A000 where its rows cannot be
    made of cells: a key of one column, and all others may be without a value."""
    table = await changer.found(name)
    reason = None
    if table.view is not None:
        reason = "it is a view"
    elif table.keyless or len(table.key_columns) != 1:
        reason = "its primary key is not one column"
    elif table.foreign_keys or table.referenced_by:
        reason = "it has foreign keys"
    for column in table.visible_columns:
        if column.id not in table.primary_key and not column.nullable:
            reason = f'column "{column.name}" is NOT NULL'
        if column.computed is not None or column.has_default or column.default_expression:
            reason = f'column "{column.name}" has a value that the log does not give'
    if reason is not None:
        raise SQLError(
            "0A000",
            f'table "{name}" cannot be of a relaxed log: {reason}',
            hint="A row is the cells of one key: one key column, and others that may be NULL.",
            position=name.position,
        )
    await changer.wait_for_room(table)
    return table
