"""What is looked at when a transaction commits: its deferred foreign keys; and SET CONSTRAINTS."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey
from ....catalog.schema_change.references import read_datums
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import Physical
from ....kvlayer.access import Transaction
from ...results.results import Result
from ...runtime.deferred_keys import Deferrals, DeferredKeys, Orphans
from ...runtime.services import Services
from ...runtime.transactions import OpenTransaction
from ...syntax.names import ObjectName
from ...syntax.statements import SetConstraints
from .foreign_keys import (
    absent,
    find_table_in,
    not_present,
    referring_rows,
    still_referenced,
    table_in,
)


async def check_deferred(opened: OpenTransaction) -> None:
    """Looks at what the transaction's statements noted. Raises SQLError 23503 where a row still
    refers to one that is not there."""
    deferred = opened.deferred
    if deferred.orphans:
        await opened.statement(lambda: _check(opened.transaction, deferred, Deferrals(all=False)))


async def _check(transaction: Transaction, deferred: DeferredKeys, deferrals: Deferrals) -> None:
    """Looks at the keys that `deferrals` do not defer."""
    with transaction.tracking(True):
        for (table_id, name), orphans in deferred.orphans.items():
            table = await find_table_in(transaction, table_id)
            if table is None or table.dropped:
                continue
            key = next((key for key in table.foreign_keys if key.name == name), None)
            if key is not None and not deferrals.defers(table_id, key):
                await _check_key(transaction, table, key, orphans)


async def _check_key(
    transaction: Transaction, table: TableDescriptor, key: ForeignKey, orphans: Orphans
) -> None:
    referenced = await table_in(transaction, key.referenced_id)
    missing: dict[tuple[Datum, ...], tuple[Physical, ...]] = {}
    stored = (stored for stored, _ in orphans.values())
    async for each in absent(transaction, key, referenced, stored):
        missing[read_datums(table, key.columns, each)] = each
    if not missing:
        return
    for values, _ in await referring_rows(transaction, referenced, key, table, missing):
        _, inserted = orphans[values]
        if inserted:
            raise not_present(table, key, referenced, values)
        raise still_referenced(referenced, key, table, values)


async def set_constraints(
    services: Services, opened: OpenTransaction | None, database: str, statement: SetConstraints
) -> Result:
    """SET CONSTRAINTS. IMMEDIATE looks at once at what was noted of the keys: SQLError 23503."""
    tag = "SET CONSTRAINTS"
    if opened is None:
        return Result(tag=tag, notice=f"{tag} can only be used in transaction blocks")
    deferred = opened.deferred
    deferrals = Deferrals(all=statement.deferred)
    if statement.names:
        some = dict(deferred.deferrals.some)
        for name in statement.names:
            for table_id in await _tables_of(services, opened.transaction, database, name):
                some[table_id, name.parts[-1]] = statement.deferred
        deferrals = Deferrals(all=deferred.deferrals.all, some=some)
    if not statement.deferred:
        await _check(opened.transaction, deferred, deferrals)
    deferred.deferrals = deferrals
    return Result(tag=tag)


async def _tables_of(
    services: Services, transaction: Transaction, database: str, name: ObjectName
) -> list[int]:
    """The tables that have a foreign key of this name, in the schema that is named or in `public`.

    Raises SQLError 42704 where none has, and 42809 where one is not deferrable.
    """
    *schema, constraint = name.parts
    tables = await services.catalog.list_tables(transaction, database, *schema[-1:])
    found = [
        table
        for table in tables
        if table.find_constraint(constraint) or table.find_index(constraint)
    ]
    if not found:
        raise SQLError("42704", f'constraint "{constraint}" does not exist', position=name.position)
    for table in found:
        key = table.find_constraint(constraint)
        if not (isinstance(key, ForeignKey) and key.deferrable):
            raise SQLError(
                "42809", f'constraint "{constraint}" is not deferrable', position=name.position
            )
    return [table.id for table in found]
