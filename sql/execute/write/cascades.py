"""Referential actions of foreign keys: rows that go, or change, with the rows they refer to.

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

Whatever is read here must still hold at the commit, whatever the isolation: of two transactions,
one that refers to a row and one that deletes it, each sees the other's write too late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.elements import ReferentialAction
from ....catalog.rows.row_codec import codec_for
from ....catalog.schema_change.references import datums_of, physicals_of, read_datums
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.physical import Physical
from ....kvlayer.access import Transaction
from ...analyze.default_expressions import default_of
from ...analyze.scalars import Bindings
from ...results.results import Row
from .foreign_keys import Reference, RowChange, has_references, table_in
from .mutations import Mutation
from .row_rules import RowRules, encoded

_REFUSING = (ReferentialAction.NO_ACTION, ReferentialAction.RESTRICT)
_AT_ONCE = frozenset(ReferentialAction) - {ReferentialAction.NO_ACTION}


async def write_in(mutation: Mutation, transaction: Transaction, bindings: Bindings) -> None:
    """Writes a statement's rows through a transaction, and all that follows by foreign keys.

    Raises SQLError: 23505, 23503, and what writing a referring row raises (23502 where SET NULL
    meets NOT NULL); 54000 for too many rows. The transaction is then for rolling back.
    """
    changes = await mutation.apply_in(transaction)
    table = mutation.codec.descriptor
    if has_references(table):
        with transaction.tracking(True):
            await _Cascade(transaction, bindings).run(table, changes)


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
    """One statement's way through the foreign keys."""

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
        self,
        reference: Reference,
        action: ReferentialAction,
        change: RowChange,
        row: Row,
    ) -> Row:
        """Returns a referring row with its foreign key set as the referential action says."""
        referrer, key = reference.referrer, reference.key
        values = self._values(reference, action, change)
        changed = list(row)
        places = {column.id: place for place, column in enumerate(referrer.visible_columns)}
        for column_id, value in zip(key.columns, values, strict=True):
            changed[places[column_id]] = value
        return tuple(changed)

    def _values(
        self, reference: Reference, action: ReferentialAction, change: RowChange
    ) -> Sequence[Datum]:
        referrer, key = reference.referrer, reference.key
        columns = [referrer.column_by_id(column_id) for column_id in key.columns]
        match action:
            case ReferentialAction.CASCADE:
                assert change.new is not None, change
                values = datums_of(reference.table, key.referenced_columns, change.new[1])
                return [
                    coerce(column.type, value, column=column.name)  # it may be narrower
                    for column, value in zip(columns, values, strict=True)
                ]
            case ReferentialAction.SET_NULL:
                return [None] * len(key.columns)
            case ReferentialAction.SET_DEFAULT:
                return [
                    coerce(column.type, default_of(column).evaluate((), self._bindings))
                    for column in columns
                ]
        raise AssertionError(f"{action} changes no row")

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
            missing: dict[tuple[Datum, ...], tuple[Physical, ...]] = {}
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

    def _note(
        self,
        reference: Reference,
        missing: dict[tuple[Datum, ...], tuple[Physical, ...]],
        *,
        inserted: bool,
    ) -> None:
        if missing:
            assert self._bindings.deferral is not None, reference
            key = reference.key
            self._bindings.deferral.note(reference.referrer.id, key, missing, inserted=inserted)
