"""Foreign keys: what a statement's rows refer to must be there, and who refers to what is gone.

Both are looked up by the statement's own transaction behind its writes, the other table's
descriptor too: whatever changes there before the commit makes the transaction retry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey
from ....catalog.rights.key_errors import ConstraintViolated
from ....catalog.rows.index_codec import index_codec_for
from ....catalog.schema_change.references import (
    datums_of,
    key_of_values,
    physicals_of,
    read_datums,
    referenced_index,
)
from ....catalog.store.descriptor_store import decode_stored, descriptor_key
from ....catalog.store.show_create import plain_text
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.physical import Physical
from ....kvlayer.access import Row, Transaction
from ....kvlayer.span import Span, prefix_end
from ...access.index_choice import readable_indexes
from ...runtime.transactions import Deferrals, DeferredKeys, OpenTransaction, Orphans
from ..query.reading import rows_of_entries

REFERRING_ROWS_MAX = 100_000
"""Rows that one statement changes by foreign keys, or looks at for them: they are held in memory
until it is done."""


def has_references(table: TableDescriptor) -> bool:
    """Whether writing rows of the table takes looking at others."""
    return bool(table.foreign_keys or table.referenced_by)


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row's key and body before and after a statement; None where there was or is none."""

    old: Row | None
    new: Row | None


def values_gone(
    table: TableDescriptor, key: ForeignKey, changes: Sequence[RowChange]
) -> dict[tuple[Datum, ...], RowChange]:
    """The values that rows had which a foreign key may refer to, and have no longer."""
    gone: dict[tuple[Datum, ...], RowChange] = {}
    for change in changes:
        if change.old is None:
            continue
        before = datums_of(table, key.referenced_columns, change.old[1])
        if None in before:
            continue
        if change.new is None or before != datums_of(table, key.referenced_columns, change.new[1]):
            gone[before] = change
    return gone


def stored_values(
    table: TableDescriptor, key: ForeignKey, gone: Mapping[tuple[Datum, ...], RowChange]
) -> dict[tuple[Datum, ...], tuple[Physical, ...]]:
    """The values that are gone, as they were stored."""
    return {
        values: physicals_of(table, key.referenced_columns, change.old[1])
        for values, change in gone.items()
        if change.old is not None
    }


async def table_in(transaction: Transaction, table_id: int) -> TableDescriptor:
    """A table as the transaction sees it. The read is tracked: another version fails the commit."""
    table = await find_table_in(transaction, table_id)
    assert table is not None, table_id
    return table


async def find_table_in(transaction: Transaction, table_id: int) -> TableDescriptor | None:
    """As `table_in`; None where the transaction sees no descriptor."""
    key = descriptor_key(table_id)
    found = await transaction.get_with_timestamp(key)
    if found is None:
        return None
    table = decode_stored(key, *found)
    assert isinstance(table, TableDescriptor), table
    return table


async def absent(
    transaction: Transaction,
    key: ForeignKey,
    referenced: TableDescriptor,
    values: Iterable[tuple[Physical, ...]],
) -> AsyncIterator[tuple[Physical, ...]]:
    """Returns the foreign key's values without a referenced row, each once."""
    index = referenced_index(referenced, key)
    assert index is not None, (key, referenced)
    looked_up: set[bytes] = set()
    for each in values:
        wanted = key_of_values(referenced, key, each, index)
        if wanted is None or wanted in looked_up:
            continue
        looked_up.add(wanted)
        if await transaction.get(wanted) is None:
            yield each


def not_present(
    table: TableDescriptor, key: ForeignKey, referenced: TableDescriptor, values: Sequence[Datum]
) -> SQLError:
    """Returns the error (23503) for a row whose foreign key refers to no row."""
    names = ", ".join(table.column_by_id(id).name for id in key.columns)
    return ConstraintViolated(
        "23503",
        f'insert or update on table "{table.name}" violates foreign key constraint "{key.name}"',
        detail=f"Key ({names})=({', '.join(map(plain_text, values))}) is not present in table "
        f'"{referenced.name}".',
        tables=[table, referenced],
    )


async def referring_rows(
    transaction: Transaction,
    table: TableDescriptor,
    key: ForeignKey,
    referrer: TableDescriptor,
    gone: Mapping[tuple[Datum, ...], tuple[Physical, ...]],
) -> list[tuple[tuple[Datum, ...], Row]]:
    """The rows that refer to values that are gone, given as they are stored too: the values, and
    key and body of each row."""
    found: list[tuple[tuple[Datum, ...], Row]] = []
    spans, in_index = _where_referred(key, referrer, list(gone.values()))
    for span in spans:
        async for rows in transaction.scan_slices(span):
            matching = [
                (values, row)
                for row in rows
                if (values := datums_of(referrer, key.columns, row[1])) in gone
            ]
            if in_index:
                entries = [row for _, row in matching]
                whole = await rows_of_entries(referrer, entries, transaction, covered=False)
                matching = [(pair[0], row) for pair, row in zip(matching, whole, strict=True)]
            found += matching
            if len(found) > REFERRING_ROWS_MAX:
                raise too_many_rows(table)
    return found


def too_many_rows(table: TableDescriptor) -> SQLError:
    """Returns the error (54000) for a change that concerns too many referring rows."""
    return SQLError(
        "54000",
        f'a change of table "{table.name}" concerns more than {REFERRING_ROWS_MAX} rows that refer '
        "to it",
        hint="Delete or update the referring rows first, some at a time.",
    )


def _where_referred(
    key: ForeignKey, referrer: TableDescriptor, wanted: Sequence[tuple[Physical, ...]]
) -> tuple[Sequence[Span], bool]:
    """The spans of the rows that refer with these values: in an index, if there is one that begins
    with the foreign key's columns (then True), else those of all rows."""
    count = len(key.columns)
    for index in readable_indexes(referrer):
        if set(index.columns[:count]) == set(key.columns):
            break
    else:
        return [referrer.primary_span], False
    codec = index_codec_for(referrer, index)
    places = [key.columns.index(column_id) for column_id in index.columns[:count]]
    starts = {codec.beginning([values[place] for place in places]) for values in wanted}
    return [Span(start, prefix_end(start)) for start in sorted(starts)], True


def still_referenced(
    table: TableDescriptor, key: ForeignKey, referrer: TableDescriptor, values: Sequence[Datum]
) -> SQLError:
    """Returns the error (23503) for a referenced row that goes or changes its key."""
    names = ", ".join(table.column_by_id(id).name for id in key.referenced_columns)
    return ConstraintViolated(
        "23503",
        f'update or delete on table "{table.name}" violates foreign key constraint "{key.name}" '
        f'on table "{referrer.name}"',
        detail=f"Key ({names})=({', '.join(map(plain_text, values))}) is still referenced from "
        f'table "{referrer.name}".',
        tables=[table, referrer],
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
