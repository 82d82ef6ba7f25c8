"""Change sets of a relaxed log, as rows of its tables.

A cell is named by the text of its row's key and by its column, and its value is the text that a
quoted literal of the column's type would hold; of BYTES, the bytes themselves. A row is there while
a cell of it has a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pyarrow as pa

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.access import Transaction
from ....kvlayer.clock import Timestamp
from ....kvlayer.relaxed.reader import ChangeSet
from ...analyze.scalars import Bindings
from ...results.as_of import datetime_of
from ...runtime.services import Services
from .mutations import Mutation
from .row_rules import RowRules

SLICE_ROWS = 100
"""Rows between two turns of the loop: a few milliseconds of reading, merging and encoding."""

Cells = dict[str, tuple[bytes | None, bytes | None]]
"""Of one row: by column, the value before and the value behind."""


async def apply_change_set(
    services: Services,
    tables: Mapping[str, TableDescriptor],
    change_set: ChangeSet,
    transaction: Transaction,
    at: Timestamp,
) -> None:
    """Writes what has changed. `tables` are the log's, by name.

    Raises SQLError: 42P01 and 42703 for a table or column that the log's tables do not have, what
    a value that does not fit its column is told, and 55000 where a cell's value is not the one that
    the change set found: the store, or the table, was written behind the log's back.
    """
    rows: dict[str, dict[bytes, Cells]] = {name: {} for name in tables}
    for piece in change_set.changes.to_batches(max_chunksize=10 * SLICE_ROWS):
        _gather(rows, piece)
        await asyncio.sleep(0)
    for name, cells in rows.items():
        writing = _TableWrite(services, tables[name], transaction, at)
        if change_set.snapshot:
            await writing.replace_all(cells)
        else:
            await writing.change(cells)


def _gather(rows: dict[str, dict[bytes, Cells]], piece: pa.RecordBatch) -> None:
    columns = (column.to_pylist() for column in piece.columns)
    for table, row, column, old, new in zip(*columns, strict=True):
        if table not in rows:
            raise SQLError(
                "42P01",
                f'relation "{table}" is not of this relaxed log',
                hint=f"Its tables: {', '.join(rows)}.",
            )
        rows[table].setdefault(row, {})[column] = (old, new)


class _TableWrite:
    """Rows of one table, in one transaction."""

    def __init__(
        self, services: Services, table: TableDescriptor, transaction: Transaction, at: Timestamp
    ) -> None:
        self._services = services
        self._transaction = transaction
        self._rules = RowRules.of(table)
        self._table = table
        self._columns = table.visible_columns
        self._places = {column.name: place for place, column in enumerate(self._columns)}
        (self._key,) = table.key_columns
        self._key_place = self._places[self._key.name]
        self._bindings = Bindings((), datetime_of(at), generators=services.generators)

    async def change(self, rows: Mapping[bytes, Cells]) -> None:
        """Merges cells into the rows that there are."""
        codec, wanted = self._rules.codec, list(rows.items())
        for start in range(0, len(wanted), SLICE_ROWS):
            written, deletes = [], []
            for key_text, cells in wanted[start : start + SLICE_ROWS]:
                key_datum = self._datum(self._key, key_text)
                key = codec.encode_key((key_datum,))
                body = await self._transaction.get(key)
                row: list[Datum] = [None] * len(self._columns)
                if body is not None:
                    row[:] = codec.decode_row(key, body)[: len(row)]
                row[self._key_place] = key_datum
                self._merge(row, key_text, cells)
                if self._empty(row):
                    if body is not None:
                        deletes.append(key)
                else:
                    written.append(tuple(row))
            await self._write(written, deletes)

    async def replace_all(self, rows: Mapping[bytes, Cells]) -> None:
        """Makes the table hold these rows alone."""
        codec = self._rules.codec
        left = dict(await self._transaction.scan(self._table.primary_span))
        wanted = list(rows.items())
        for start in range(0, len(wanted), SLICE_ROWS):
            written = []
            for key_text, cells in wanted[start : start + SLICE_ROWS]:
                row: list[Datum] = [None] * len(self._columns)
                row[self._key_place] = self._datum(self._key, key_text)
                for name, (_, new) in cells.items():
                    row[self._place(name)] = self._value(name, new)
                key = codec.encode_key((row[self._key_place],))
                before = left.pop(key, None)
                if before is None or list(codec.decode_row(key, before)[: len(row)]) != row:
                    written.append(tuple(row))
            await self._write(written, [])
        keys = list(left)
        for start in range(0, len(keys), SLICE_ROWS):
            await self._write([], keys[start : start + SLICE_ROWS])

    async def _write(self, rows: list[tuple[Datum, ...]], deletes: list[bytes]) -> None:
        rules = self._rules
        complete = await rules.complete_all(rows, self._bindings, self._services.analytics)
        mutation = Mutation(rules.codec, deletes=deletes, carried=rules.carried)
        for row in complete:
            key, body = rules.codec.encode_row(row)
            mutation.keys.append(key)
            mutation.bodies.append(body)
        mutation.check_distinct()
        await mutation.apply_in(self._transaction)
        await asyncio.sleep(0)

    def _merge(self, row: list[Datum], key_text: bytes, cells: Cells) -> None:
        for name, (old, new) in cells.items():
            place = self._place(name)
            if row[place] != self._value(name, old):
                raise SQLError(
                    "55000",
                    f'cell "{name}" of row {key_text!r} of "{self._table.name}" was not '
                    f"{old!r}, as the log says",
                    hint="The store was written behind the log's back: send a snapshot.",
                )
            row[place] = self._value(name, new)

    def _empty(self, row: list[Datum]) -> bool:
        return all(value is None for place, value in enumerate(row) if place != self._key_place)

    def _place(self, name: str) -> int:
        column = self._table.column(name)
        place = self._places[column.name]
        if place == self._key_place:
            raise SQLError("42703", f'column "{name}" is the key, which names a row')
        return place

    def _value(self, name: str, value: bytes | None) -> Datum:
        return None if value is None else self._datum(self._columns[self._places[name]], value)

    def _datum(self, column: Column, value: bytes) -> Datum:
        if column.type.kind is TypeKind.BYTES:
            return coerce(column.type, value, column=column.name)
        try:
            text = value.decode()
        except UnicodeDecodeError:
            raise SQLError(
                "22021", f'column "{column.name}": {value!r} is not text in UTF-8'
            ) from None
        return coerce(column.type, text, column=column.name)
