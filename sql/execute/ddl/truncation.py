"""TRUNCATE: of which tables, and by what way.

By itself it is a schema change: the table gets new, empty indexes, at one moment, and feeds are
told of a truncation. In a transaction that goes on, and of tables that refer to each other, it
deletes the rows: the transaction sees the tables empty at once, ROLLBACK brings every row back, and
feeds are told of each row that is deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.publish_rules import locked_error
from ....catalog.descriptors.relaxed_tables import refuse_other_writers
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....catalog.values.errors import SQLError
from ...runtime.authorization import Actor
from ...runtime.relations import changed_tables, find_table, unknown_relation
from ...syntax import schema_statements as s
from ...syntax.type_statements import SequenceChange
from ..changer import Changer
from ..write.mutations import Mutation
from ..write.row_rules import RowRules
from .sequences import change_sequence, owned_by

DELETED_ROWS_MAX = 20_000
"""Rows that TRUNCATE deletes one by one, some 0.1 s of them."""

SLICE_ROWS = 500
"""Rows that are deleted before the loop gets a turn."""


async def truncated_tables(
    actor: Actor, statement: s.Truncate
) -> tuple[list[TableDescriptor], list[TableDescriptor]]:
    """The tables that a TRUNCATE names, and with CASCADE those that refer to them, each once.

    Raises SQLError 42P01, and 0A000 where a table that is not among them refers to one.
    """
    found: dict[int, TableDescriptor] = {}
    for name in statement.tables:
        table = await find_table(actor.services, actor.reader, name, actor.database)
        if table is None:
            raise unknown_relation(name)
        found[table.id] = table
    named = list(found.values())
    pending = list(named)
    while pending:
        table = pending.pop()
        for referrer_id in table.referenced_by:
            if referrer_id in found:
                continue
            referrer = await actor.services.catalog.descriptors.read(actor.reader, referrer_id)
            assert isinstance(referrer, TableDescriptor), (table, referrer)
            if not statement.cascade:
                raise _referred_to(table, referrer)
            found[referrer_id] = referrer
            pending.append(referrer)
    return named, list(found.values())[len(named) :]


async def run_truncation(
    changer: Changer, statement: s.Truncate
) -> tuple[Sequence[TableDescriptor], str | None]:
    """Carries out the parts of a TRUNCATE that are no schema change. Returns the tables that are
    left to the schema changer, and a notice."""
    named, others = await truncated_tables(changer, statement)
    tables = [*named, *others]
    for table in tables:
        refuse_other_writers(table)
        if table.id < FIRST_USER_ID:
            raise SQLError("42501", f'permission denied: "{table.name}" is part of the system')
    # Unlocking would be the only change of the transaction: a sequence is another.
    locked = [table for table in tables if statement.restart_identity and table.locked]
    if statement.restart_identity:
        for sequence in [
            each for t in tables for each in await owned_by(changer.transaction, t.id)
        ]:
            await change_sequence(changer, sequence, SequenceChange(position=1, restarts=True))
    together = any(set(table.referenced_by) - {table.id} for table in tables)
    left = tables
    if together or locked or statement.within:
        left = [table for table in tables if not await _delete(changer, table)]
    if left and together:
        raise SQLError(
            "54000",
            f'table "{left[0].name}" has more than {DELETED_ROWS_MAX} rows, which foreign keys '
            "refer to",
            hint="Drop the foreign keys, or delete the rows in parts.",
        )
    if left and locked:
        raise locked_error(locked[0])
    notices = [f'truncate cascades to table "{table.name}"' for table in others]
    if left and statement.within:
        notices += [
            f'table "{table.name}" has more than {DELETED_ROWS_MAX} rows: it is emptied behind '
            "COMMIT, and the transaction sees them until then"
            for table in left
        ]
    return left, "; ".join(notices) or None


async def _delete(changer: Changer, found: TableDescriptor) -> bool:
    """Deletes the rows of a table, unless they are too many for that."""
    transaction = changer.transaction
    table = found
    if found.id not in changed_tables(transaction):
        table = await changer.scope.table(found.id, transaction.read_timestamp)
    rows = await transaction.scan(table.primary_span, limit=DELETED_ROWS_MAX + 1)
    if len(rows) > DELETED_ROWS_MAX:
        return False
    codec = RowRules.of(table).codec
    for start in range(0, len(rows), SLICE_ROWS):
        keys = [key for key, _ in rows[start : start + SLICE_ROWS]]
        await Mutation(codec, deletes=keys).apply_in(transaction)
        await asyncio.sleep(0)
    return True


def _referred_to(table: TableDescriptor, referrer: TableDescriptor) -> SQLError:
    return SQLError(
        "0A000",
        f'cannot truncate table "{table.name}", to which a foreign key refers',
        detail=f'Table "{referrer.name}" references "{table.name}".',
        hint=f'Truncate table "{referrer.name}" at the same time, or use TRUNCATE … CASCADE.',
    )
