"""Checks of deferred foreign keys at a transaction's commit."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey
from ....catalog.schema_change.references import read_datums
from ....catalog.values.column_types import Datum
from ....catalog.values.physical import Physical
from ....kvlayer.access import Transaction
from ...runtime.deferred_keys import Deferrals, DeferredKeys, Orphans
from ...runtime.transactions import OpenTransaction
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
        await opened.statement(
            lambda: check_keys(opened.transaction, deferred, Deferrals(all=False))
        )


async def check_keys(
    transaction: Transaction, deferred: DeferredKeys, deferrals: Deferrals
) -> None:
    """Looks at what was noted of the keys that `deferrals` do not defer. Raises SQLError 23503."""
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
