"""CREATE and DROP RELAXED LOG: which tables a log alone may write; SHOW RELAXED LOGS."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.relaxed.logs import RelaxedLog, create_log, drop_log, find_log, list_logs
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.values.errors import SQLError
from ...results.results import Result, Row, listing
from ...runtime.authorization import Actor
from ...syntax.schema_statements import CreateRelaxedLog, DropRelaxedLog, ShowRelaxedLogs
from ...syntax.statement import ObjectName
from ..changer import Changer, Skipped
from ..write.relaxed_load import domain_states


async def create(changer: Changer, statement: CreateRelaxedLog) -> None:
    """CREATE RELAXED LOG."""
    tables = [await _suited(changer, name) for name in statement.tables]
    await create_log(changer.descriptors, changer.transaction, statement.name, tables)


async def drop(changer: Changer, statement: DropRelaxedLog) -> None:
    """DROP RELAXED LOG, which changes its tables. Raises SQLError 42501."""
    try:
        log = await find_log(changer.transaction, statement.name)
    except SQLError:
        if not statement.if_exists:
            raise
        raise Skipped(f'relaxed log "{statement.name}" does not exist') from None
    for table_id in log.table_ids:
        await changer.need_descriptor(table_id, Privilege.CREATE)
    for table_id in log.table_ids:
        await changer.wait_for_room(await changer.table(table_id))
    await drop_log(changer.descriptors, changer.transaction, log)


async def _suited(changer: Changer, name: ObjectName) -> TableDescriptor:
    """The table, with room for its next version. Raises SQLError 0A000 where its rows cannot be
    made of cells: a key of one column, and all others may be without a value."""
    table = await changer.found(name)
    reason = None
    if table.keyless or len(table.key_columns) != 1:
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


async def show_relaxed_logs(actor: Actor, statement: ShowRelaxedLogs) -> Result:
    """Lists the logs, a row for each domain, and one row for a log without domains. A user sees
    the logs on each of whose tables it has a right."""
    rows: list[Row] = []
    for log in await list_logs(actor.reader):
        names = await _tables(actor, log)
        if names is None:
            continue
        states = await domain_states(actor.services, actor.reader, log)
        if not states:
            rows.append((log.name, names, None, None, 0, None, None))
        for state in states:
            cut = None if state.position is None else f"{state.position:016x}"
            gaps = "; ".join(map(str, state.gaps)) or None
            domain = f"{state.domain:016x}"
            open_epoch = f"{state.open_since:016x}" if state.open_since is not None else None
            rows.append((log.name, names, domain, cut, state.pending, open_epoch, gaps))
    columns = "log_name tables domain last_cut pending_events:i open_epoch gaps"
    return listing("SHOW RELAXED LOGS", columns, rows)


async def _tables(actor: Actor, log: RelaxedLog) -> str | None:
    """The names of the log's tables; None where its user may not know of them."""
    admin, rights = await actor.admin(), await actor.rights()
    names = []
    for table_id in log.table_ids:
        table = await actor.services.catalog.descriptors.read(actor.reader, table_id)
        assert isinstance(table, TableDescriptor), table_id
        if not admin and not rights.held(actor.user, securable(table)):
            return None
        names.append(table.name)
    return ", ".join(names)
