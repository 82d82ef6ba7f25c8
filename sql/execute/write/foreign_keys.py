"""Foreign keys: what a statement's rows refer to must be there, and who refers to what is gone.

Both are looked up by the statement's own transaction behind its writes, the other table's
descriptor too: whatever changes there before the commit makes the transaction retry.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey, ReferentialAction
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
from ...access.key_access import readable_indexes
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


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of one table to another, as the transaction sees both."""

    table: TableDescriptor
    key: ForeignKey
    referrer: TableDescriptor

    def action_on(self, change: RowChange) -> ReferentialAction:
        return self.key.on_delete if change.new is None else self.key.on_update

    def gone(
        self, changes: Sequence[RowChange], actions: Collection[ReferentialAction]
    ) -> dict[tuple[Datum, ...], RowChange]:
        """The values that rows had which the foreign key may refer to, and have no longer, where it
        does then one of these."""
        columns = self.key.referenced_columns
        gone: dict[tuple[Datum, ...], RowChange] = {}
        for change in changes:
            if change.old is None:
                continue
            before = datums_of(self.table, columns, change.old[1])
            if None in before:
                continue
            if change.new is None or before != datums_of(self.table, columns, change.new[1]):
                gone[before] = change
        return {v: change for v, change in gone.items() if self.action_on(change) in actions}

    def stored(
        self, gone: Mapping[tuple[Datum, ...], RowChange]
    ) -> dict[tuple[Datum, ...], tuple[Physical, ...]]:
        """The values that are gone, as they were stored."""
        columns = self.key.referenced_columns
        return {
            values: physicals_of(self.table, columns, change.old[1])
            for values, change in gone.items()
            if change.old is not None
        }

    async def absent(
        self, transaction: Transaction, values: Iterable[tuple[Physical, ...]]
    ) -> AsyncIterator[tuple[Physical, ...]]:
        """Returns the foreign key's values without a referenced row, each once."""
        index = referenced_index(self.table, self.key)
        assert index is not None, self
        looked_up: set[bytes] = set()
        for each in values:
            wanted = key_of_values(self.table, self.key, each, index)
            if wanted is None or wanted in looked_up:
                continue
            looked_up.add(wanted)
            if await transaction.get(wanted) is None:
                yield each

    async def referring_rows(
        self, transaction: Transaction, gone: Mapping[tuple[Datum, ...], tuple[Physical, ...]]
    ) -> list[tuple[tuple[Datum, ...], Row]]:
        """The rows that refer to values that are gone, given as they are stored too: the values,
        and key and body of each row."""
        found: list[tuple[tuple[Datum, ...], Row]] = []
        spans, in_index = self._where_referred(list(gone.values()))
        for span in spans:
            async for rows in transaction.scan_slices(span):
                matching = [
                    (values, row)
                    for row in rows
                    if (values := datums_of(self.referrer, self.key.columns, row[1])) in gone
                ]
                if in_index:
                    entries = [row for _, row in matching]
                    whole = await rows_of_entries(
                        self.referrer, entries, transaction, covered=False
                    )
                    matching = [(pair[0], row) for pair, row in zip(matching, whole, strict=True)]
                found += matching
                self.refuse_many(len(found))
        return found

    def _where_referred(
        self, wanted: Sequence[tuple[Physical, ...]]
    ) -> tuple[Sequence[Span], bool]:
        """The spans of the rows that refer with these values: in an index, if there is one that
        begins with the foreign key's columns (then True), else those of all rows."""
        columns = self.key.columns
        for index in readable_indexes(self.referrer):
            if set(index.columns[: len(columns)]) == set(columns):
                break
        else:
            return [self.referrer.primary_span], False
        codec = index_codec_for(self.referrer, index)
        places = [columns.index(column_id) for column_id in index.columns[: len(columns)]]
        starts = {codec.beginning([values[place] for place in places]) for values in wanted}
        return [Span(start, prefix_end(start)) for start in sorted(starts)], True

    def refuse_many(self, count: int) -> None:
        """Raises SQLError 54000 where a change concerns too many referring rows."""
        if count > REFERRING_ROWS_MAX:
            raise SQLError(
                "54000",
                f'a change of table "{self.table.name}" concerns more than {REFERRING_ROWS_MAX} '
                "rows that refer to it",
                hint="Delete or update the referring rows first, some at a time.",
            )

    def not_present(self, values: Sequence[Datum]) -> SQLError:
        """Returns the error (23503) for a row whose foreign key refers to no row."""
        table = self.referrer
        return ConstraintViolated(
            "23503",
            f'insert or update on table "{table.name}" violates foreign key constraint '
            f'"{self.key.name}"',
            detail=f"{_told(table, self.key.columns, values)} is not present in table "
            f'"{self.table.name}".',
            tables=[table, self.table],
        )

    def still_referenced(self, values: Sequence[Datum]) -> SQLError:
        """Returns the error (23503) for a referenced row that goes or changes its key."""
        table = self.table
        return ConstraintViolated(
            "23503",
            f'update or delete on table "{table.name}" violates foreign key constraint '
            f'"{self.key.name}" on table "{self.referrer.name}"',
            detail=f"{_told(table, self.key.referenced_columns, values)} is still referenced from "
            f'table "{self.referrer.name}".',
            tables=[table, self.referrer],
        )


def _told(table: TableDescriptor, columns: Sequence[int], values: Sequence[Datum]) -> str:
    names = ", ".join(table.column_by_id(id).name for id in columns)
    return f"Key ({names})=({', '.join(map(plain_text, values))})"


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
                referenced = await table_in(transaction, key.referenced_id)
                await _check_key(transaction, Reference(referenced, key, table), orphans)


async def _check_key(transaction: Transaction, reference: Reference, orphans: Orphans) -> None:
    missing: dict[tuple[Datum, ...], tuple[Physical, ...]] = {}
    stored = (stored for stored, _ in orphans.values())
    async for each in reference.absent(transaction, stored):
        missing[read_datums(reference.referrer, reference.key.columns, each)] = each
    if not missing:
        return
    for values, _ in await reference.referring_rows(transaction, missing):
        _, inserted = orphans[values]
        raise reference.not_present(values) if inserted else reference.still_referenced(values)
