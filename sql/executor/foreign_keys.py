"""Foreign keys: what a statement's rows refer to must be there, and what is referred to must stay.

Both are looked up by the statement's own transaction behind its writes, the other table's
descriptor too: whatever changes there before the commit makes the transaction retry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...catalog.column_types import Datum
from ...catalog.descriptor import TableDescriptor
from ...catalog.descriptor_store import decode_stored, descriptor_key
from ...catalog.elements import ElementState, ForeignKey
from ...catalog.errors import SQLError
from ...catalog.index_codec import index_codec_for
from ...catalog.schema_change.references import (
    datums_of,
    physicals_of,
    referenced_index,
    referenced_key,
)
from ...catalog.show_create import plain_text
from ...kvlayer.access import Transaction
from ...kvlayer.span import Span, prefix_end


def has_references(table: TableDescriptor) -> bool:
    """Whether writing rows of the table takes looking at others."""
    return bool(table.foreign_keys or table.referenced_by)


async def check_references(
    transaction: Transaction,
    table: TableDescriptor,
    old: Mapping[bytes, bytes],
    new: Sequence[bytes],
) -> None:
    """Of the bodies of a statement's rows, `old` and `new`. Raises SQLError 23503.

    What is read must still hold at the commit, whatever the isolation: of two transactions, one
    that refers to a row and one that deletes it, each sees the other's write too late.
    """
    with transaction.tracking(True):
        for key in table.foreign_keys:
            referenced = await _table(transaction, key.referenced_id)
            await _check_present(transaction, table, key, referenced, new)
        if not old:
            return
        for referrer_id in table.referenced_by:
            referrer = await _table(transaction, referrer_id)
            for key in referrer.foreign_keys:
                if key.referenced_id == table.id and not referrer.dropped:
                    await _check_unused(transaction, table, key, referrer, old.values(), new)


async def _table(transaction: Transaction, table_id: int) -> TableDescriptor:
    key = descriptor_key(table_id)
    found = await transaction.get_with_timestamp(key)
    assert found is not None, table_id
    table = decode_stored(key, *found)
    assert isinstance(table, TableDescriptor), table
    return table


async def _check_present(
    transaction: Transaction,
    table: TableDescriptor,
    key: ForeignKey,
    referenced: TableDescriptor,
    bodies: Sequence[bytes],
) -> None:
    index = referenced_index(referenced, key)
    assert index is not None, (key, referenced)
    looked_up: set[bytes] = set()
    for body in bodies:
        wanted = referenced_key(referenced, key, body, index, table)
        if wanted is None or wanted in looked_up:
            continue
        looked_up.add(wanted)
        if await transaction.get(wanted) is None:
            names = ", ".join(table.column_by_id(id).name for id in key.columns)
            values = ", ".join(map(plain_text, datums_of(table, key.columns, body)))
            raise SQLError(
                "23503",
                f'insert or update on table "{table.name}" violates foreign key constraint '
                f'"{key.name}"',
                detail=f'Key ({names})=({values}) is not present in table "{referenced.name}".',
            )


async def _check_unused(
    transaction: Transaction,
    table: TableDescriptor,
    key: ForeignKey,
    referrer: TableDescriptor,
    old: Collection[bytes],
    new: Sequence[bytes],
) -> None:
    """Rows that are gone, or have other values now, must not be referred to."""
    left = {datums_of(table, key.referenced_columns, body) for body in new}
    gone = {datums_of(table, key.referenced_columns, body): body for body in old}
    gone = {values: gone[values] for values in gone if None not in values and values not in left}
    if not gone:
        return
    for span in _where_referred(table, key, referrer, list(gone.values())):
        async for rows in transaction.scan_slices(span):
            for _, body in rows:
                values = datums_of(referrer, key.columns, body)
                if values in gone:
                    raise _still_referenced(table, key, referrer, values)


def _where_referred(
    table: TableDescriptor, key: ForeignKey, referrer: TableDescriptor, bodies: Sequence[bytes]
) -> Sequence[Span]:
    """Where the rows are found that refer to rows with these bodies: in an index, if there is one
    that begins with the foreign key's columns, else among all rows."""
    count = len(key.columns)
    for index in referrer.indexes:
        if index.state is ElementState.PUBLIC and set(index.columns[:count]) == set(key.columns):
            break
    else:
        return [referrer.primary_span]
    codec = index_codec_for(referrer, index)
    referenced = dict(zip(key.columns, key.referenced_columns, strict=True))
    ordered = [referenced[column_id] for column_id in index.columns[:count]]
    starts = {codec.beginning(physicals_of(table, ordered, body)) for body in bodies}
    return [Span(start, prefix_end(start)) for start in sorted(starts)]


def _still_referenced(
    table: TableDescriptor, key: ForeignKey, referrer: TableDescriptor, values: Sequence[Datum]
) -> SQLError:
    names = ", ".join(table.column_by_id(id).name for id in key.referenced_columns)
    return SQLError(
        "23503",
        f'update or delete on table "{table.name}" violates foreign key constraint "{key.name}" '
        f'on table "{referrer.name}"',
        detail=f"Key ({names})=({', '.join(map(plain_text, values))}) is still referenced from "
        f'table "{referrer.name}".',
    )
