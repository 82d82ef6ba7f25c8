"""Foreign keys: what rows refer to must be there, and rows go, or change, with those they refer to.

A statement's own writes come first. Then each change of a row that others refer to does to those
what the foreign key says, in the same transaction, and what it changes there is looked at in turn:

    DELETE FROM a WHERE k = 1
        b.a = 1    ON DELETE CASCADE     the row is deleted, and so on with who refers to b
        c.a = 1    ON DELETE SET NULL    c.a becomes NULL
        d.a = 1    RESTRICT              error, at once
        e.a = 1    NO ACTION             error, unless e's row is gone too when all is done

Old values are replaced by new ones all together, so that a statement that shifts keys (1 to 2, 2 to
3) shifts every reference by one. A cycle ends where it comes to a row that is gone already or says
already what it is to say. Each row is written like one of a statement: its checks, its computed
columns and its indexes hold, and feeds see it.

All is looked up by the statement's own transaction behind its writes, the other table's descriptor
too, and must still hold at the commit, whatever the isolation: of two transactions, one that refers
to a row and one that deletes it, each sees the other's write too late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ForeignKey, ReferentialAction
from ....catalog.rights.key_errors import ConstraintViolated
from ....catalog.rows.index_codec import index_codec_for
from ....catalog.rows.row_codec import codec_for
from ....catalog.schema_change.references import (
    datums_of,
    key_of_values,
    physicals_of,
    read_datums,
    referenced_index,
)
from ....catalog.store.descriptor_store import decode_stored, descriptor_key
from ....catalog.store.show_create import plain_text
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.errors import SQLError, Violated
from ....catalog.values.physical import Physical
from ....kvlayer.access import Row as StoredRow
from ....kvlayer.access import Transaction
from ....kvlayer.span import Span, prefix_end
from ...access.key_access import readable_indexes
from ...analyze.scalars import Bindings
from ...results.results import Row
from ...runtime.transactions import Deferrals, OpenTransaction, Orphans
from ..query.reading import rows_of_entries
from .mutations import Mutation, RowChange, has_references
from .row_rules import RowRules, encoded
from .steps import drop

_REFUSING = (ReferentialAction.NO_ACTION, ReferentialAction.RESTRICT)
_AT_ONCE = frozenset(ReferentialAction) - {ReferentialAction.NO_ACTION}

_Values = dict[tuple[Datum, ...], tuple[Physical, ...]]
"""Values of columns of a foreign key, each with what is stored of it."""

_Gone = dict[tuple[Datum, ...], RowChange]
"""Values that rows no longer have, each with the change of its row."""

REFERRING_ROWS_MAX = 100_000
"""Rows that one statement changes by foreign keys, or looks at for them: they are held in memory
until it is done."""


async def write_in(mutation: Mutation, transaction: Transaction, bindings: Bindings) -> None:
    """Writes a statement's rows through a transaction, and all that follows by foreign keys. The
    mutation is of no use behind it.

    Raises SQLError: 23505, 23503, and what writing a referring row raises (23502 where SET NULL
    meets NOT NULL); 54000 for too many rows. The transaction is then for rolling back.
    """
    changes = await mutation.apply_in(transaction)
    table = mutation.codec.descriptor
    if has_references(table):
        with transaction.tracking(True):
            await _Cascade(transaction, bindings).run(table, changes)
    await drop(mutation.bodies)


class _Changed:
    """Changes of a table, and the rows behind them by key."""

    def __init__(self, table: TableDescriptor) -> None:
        self.table = table
        self.changes: list[RowChange] = []
        self.rows: dict[bytes, bytes] = {}

    def note(self, changes: Sequence[RowChange]) -> None:
        self.changes += changes
        for change in changes:
            if change.old is not None:
                self.rows.pop(change.old[0], None)
        self.rows.update(change.new for change in changes if change.new is not None)


class _Cascade:
    """Follows the foreign keys to the rows that refer to those which one statement changes."""

    def __init__(self, transaction: Transaction, bindings: Bindings) -> None:
        self._transaction = transaction
        self._bindings = bindings
        self._pending: deque[tuple[TableDescriptor, Sequence[RowChange]]] = deque()
        self._changed: dict[int, _Changed] = {}
        self._row_count = 0

    async def run(self, table: TableDescriptor, changes: Sequence[RowChange]) -> None:
        self._pending.append((table, changes))
        while self._pending:
            table, changes = self._pending.popleft()
            self._changed.setdefault(table.id, _Changed(table)).note(changes)
            for reference in await self._references_to(table):
                await self._follow(reference, changes)
        for changed in self._changed.values():
            await self._check(changed)

    async def _references_to(self, table: TableDescriptor) -> list[Reference]:
        found: list[Reference] = []
        for referrer_id in table.referenced_by:
            referrer = await table_in(self._transaction, referrer_id)
            if not referrer.dropped:
                found += [
                    Reference(table, key, referrer)
                    for key in referrer.foreign_keys
                    if key.referenced_id == table.id
                ]
        return found

    async def _follow(self, reference: Reference, changes: Sequence[RowChange]) -> None:
        """Does to the rows that refer to what is gone what the foreign key says."""
        referrer, gone = reference.referrer, reference.gone(changes, _AT_ONCE)
        if not gone:
            return
        deleted: list[bytes] = []
        updated: list[tuple[bytes, Row]] = []
        for values, (row_key, body) in await reference.referring_rows(
            self._transaction, reference.stored(gone)
        ):
            action = reference.action_on(gone[values])
            if action is ReferentialAction.RESTRICT:
                raise reference.still_referenced(values)
            if action is ReferentialAction.CASCADE and gone[values].new is None:
                deleted.append(row_key)
                continue
            row = codec_for(referrer).decode_row(row_key, body)
            updated.append((row_key, self._updated(reference, action, gone[values], row)))
        self._row_count += len(deleted) + len(updated)
        reference.refuse_many(self._row_count)
        if deleted:
            await self._write(referrer, Mutation(RowRules.of(referrer).codec, deletes=deleted))
        if updated:
            await self._write(referrer, await self._rewritten(referrer, updated))

    def _updated(
        self, reference: Reference, action: ReferentialAction, change: RowChange, row: Row
    ) -> Row:
        """Returns a referring row with its foreign key set as the referential action says."""
        key, referrer = reference.key, reference.referrer
        columns = [referrer.column_by_id(column_id) for column_id in key.columns]
        values: Sequence[Datum] = [None] * len(columns)
        if action is ReferentialAction.CASCADE:
            assert change.new is not None, change
            values = datums_of(reference.table, key.referenced_columns, change.new[1])
        changed = list(row)
        for column, value in zip(columns, values, strict=True):
            place = referrer.visible_columns.index(column)
            changed[place] = coerce(column.type, value, column=column.name)  # it may be narrower
        return tuple(changed)

    async def _rewritten(
        self, referrer: TableDescriptor, updated: Sequence[tuple[bytes, Row]]
    ) -> Mutation:
        rules = RowRules.of(referrer)
        rows = [row for _, row in updated]
        if not rules.plain:
            rows = list(await rules.complete_all(rows, self._bindings))
        mutation = encoded(rules, rows)
        mutation.move_from([key for key, _ in updated])
        return mutation

    async def _write(self, table: TableDescriptor, mutation: Mutation) -> None:
        self._pending.append((table, await mutation.apply_in(self._transaction)))

    # When all is done

    async def _check(self, changed: _Changed) -> None:
        """Raises SQLError 23503 where a row refers to one that is not there, or notes it where that
        is for the transaction's commit to say."""
        table, rows = changed.table, list(changed.rows.values())
        for key in table.foreign_keys if rows else ():
            referenced = await table_in(self._transaction, key.referenced_id)
            reference = Reference(referenced, key, table)
            values = (physicals_of(table, key.columns, body) for body in rows)
            missing: _Values = {}
            async for each in reference.absent(self._transaction, values):
                datums = read_datums(table, key.columns, each)
                if not self._deferred(reference):
                    raise reference.not_present(datums)
                missing[datums] = each
            self._note(reference, missing, inserted=True)
        for reference in await self._references_to(table):
            key, gone = reference.key, reference.gone(changed.changes, _REFUSING)
            for body in rows if gone else ():  # another row may have the values now
                gone.pop(datums_of(table, key.referenced_columns, body), None)
            if not gone:
                continue
            missing = {}
            stored = reference.stored(gone)
            for found, _ in await reference.referring_rows(self._transaction, stored):
                restricted = reference.action_on(gone[found]) is ReferentialAction.RESTRICT
                if restricted or not self._deferred(reference):
                    raise reference.still_referenced(found)
                missing[found] = stored[found]
            self._note(reference, missing, inserted=False)

    def _deferred(self, reference: Reference) -> bool:
        deferral = self._bindings.deferral
        return deferral is not None and deferral.defers(reference.referrer.id, reference.key)

    def _note(self, reference: Reference, missing: _Values, *, inserted: bool) -> None:
        if missing:
            assert self._bindings.deferral is not None, reference
            key = reference.key
            self._bindings.deferral.note(reference.referrer.id, key, missing, inserted=inserted)


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

    def gone(self, changes: Sequence[RowChange], actions: Collection[ReferentialAction]) -> _Gone:
        """The values that rows had which the foreign key may refer to, and have no longer, where it
        does then one of these."""
        columns = self.key.referenced_columns
        gone: _Gone = {}
        for change in changes:
            if change.old is None:
                continue
            before = datums_of(self.table, columns, change.old[1])
            if None in before:
                continue
            if change.new is None or before != datums_of(self.table, columns, change.new[1]):
                gone[before] = change
        return {v: change for v, change in gone.items() if self.action_on(change) in actions}

    def stored(self, gone: _Gone) -> _Values:
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
        self, transaction: Transaction, gone: _Values
    ) -> list[tuple[tuple[Datum, ...], StoredRow]]:
        """The rows that refer to values that are gone, given as they are stored too: the values,
        and key and body of each row."""
        found: list[tuple[tuple[Datum, ...], StoredRow]] = []
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
            violated=Violated(table.name, constraint=self.key.name),
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
            violated=Violated(self.referrer.name, constraint=self.key.name),
            tables=[table, self.referrer],
        )


def _told(table: TableDescriptor, columns: Sequence[int], values: Sequence[Datum]) -> str:
    names = ", ".join(table.column_by_id(id).name for id in columns)
    return f"Key ({names})=({', '.join(map(plain_text, values))})"


async def check_deferred(opened: OpenTransaction) -> None:
    """Looks at what the transaction's statements noted. Raises SQLError 23503 where a row still
    refers to one that is not there."""
    if opened.deferred.orphans:
        await opened.statement(lambda: check_keys(opened, Deferrals(all=False)))


async def check_keys(opened: OpenTransaction, deferrals: Deferrals) -> None:
    """Looks at what was noted of the keys that `deferrals` do not defer. Raises SQLError 23503."""
    transaction = opened.transaction
    with transaction.tracking(True):
        for (table_id, name), orphans in opened.deferred.orphans.items():
            table = await find_table_in(transaction, table_id)
            if table is None or table.dropped:
                continue
            key = next((key for key in table.foreign_keys if key.name == name), None)
            if key is not None and not deferrals.defers(table_id, key):
                referenced = await table_in(transaction, key.referenced_id)
                await _check_key(transaction, Reference(referenced, key, table), orphans)


async def _check_key(transaction: Transaction, reference: Reference, orphans: Orphans) -> None:
    missing: _Values = {}
    stored = (stored for stored, _ in orphans.values())
    async for each in reference.absent(transaction, stored):
        missing[read_datums(reference.referrer, reference.key.columns, each)] = each
    if not missing:
        return
    for values, _ in await reference.referring_rows(transaction, missing):
        _, inserted = orphans[values]
        raise reference.not_present(values) if inserted else reference.still_referenced(values)
