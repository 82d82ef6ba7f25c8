"""Change sets of a relaxed log, as rows of its tables.

A cell is named by the text of its row's key and by its column, and its value is the text that a
quoted literal of the column's type would hold; of BYTES, the bytes themselves. A row is there while
a cell of it has a value.

Rows are merged in columns. The cells of a change set are sorted by column and row, once, so that
those of a column and of some rows are a slice:

    places of the cells    0     2              rows of the slice that the change set writes
    as the log says        a     c       old    compared with what the table has
    behind it              x     -       new    taken over; other rows keep what they have
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.rows.text_columns import cast_texts
from ....catalog.values.arrow_columns import AnyArray, constant_array, datum_array
from ....catalog.values.column_types import Datum, coerce
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import TypeKind
from ....kvlayer.access import Transaction
from ....kvlayer.process.offload import OffloadLane
from ....kvlayer.relaxed.events import rows_where
from ....kvlayer.relaxed.reader import ChangeSet
from ...analyze.scalars import Bindings
from ...runtime.services import Services
from .mutations import Mutation
from .row_rules import RowRules, encode_batch
from .steps import read_each

SLICE_ROWS = 1000
"""Rows between two turns of the loop: a few milliseconds of merging and encoding."""

GETS_PER_STEP = 100
"""Rows read between two turns of the loop: two milliseconds."""

_PLACES = pa.array(range(SLICE_ROWS), pa.int32())


async def apply_change_set(
    services: Services,
    tables: Mapping[str, TableDescriptor],
    change_set: ChangeSet,
    transaction: Transaction,
    beside: OffloadLane | None,
) -> None:
    """Writes what has changed. `tables` are the log's, by name. Where `beside` is given, cells are
    sorted there.

    Raises SQLError: 42P01 and 42703 for a table or column that the log's tables do not have, what
    a value that does not fit its column is told, and 55000 where a cell's value is not the one that
    the change set found: the store, or the table, was written behind the log's back.
    """
    changes = change_set.changes
    cells = await beside.run(lambda: _by_table(changes)) if beside else _by_table(changes)
    for name in cells:
        if name not in tables:
            raise SQLError(
                "42P01",
                f'relation "{name}" is not of this relaxed log',
                hint=f"Its tables: {', '.join(tables)}.",
            )
    for name, table in tables.items():
        writing = _TableWrite(services, table, transaction)
        if change_set.snapshot or name in cells:
            await writing.write(cells.get(name, _NO_CELLS), snapshot=change_set.snapshot)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The changes of one column: places of rows of the change set or of a slice of it, which
    ascend, with the value before and behind the change, as the log has it or parsed."""

    name: str
    places: AnyArray
    old: AnyArray
    new: AnyArray

    def within(self, start: int, end: int) -> _Cells:
        """The cells of the rows from `start` to `end`, with places counted from `start`."""
        first = bisect_left(self.places, start, key=pa.Int32Scalar.as_py)
        count = bisect_left(self.places, end, first, key=pa.Int32Scalar.as_py) - first
        places = pc.subtract(self.places.slice(first, count), pa.scalar(start, pa.int32()))
        old, new = self.old.slice(first, count), self.new.slice(first, count)
        return _Cells(self.name, places, old, new)


_ByColumn = tuple[AnyArray, Sequence[_Cells]]
"""The rows that a change set names, and the cells of each column."""

_NO_CELLS: _ByColumn = (pa.array([], pa.binary()), ())


@dataclass(frozen=True, slots=True)
class _Slice:
    """Some rows of a change set: their keys as texts and as keys, and their parsed cells."""

    texts: AnyArray
    key_values: AnyArray
    keys: list[bytes]
    cells: Sequence[_Cells]


class _TableWrite:
    """Rows of one table, in one transaction."""

    def __init__(
        self, services: Services, table: TableDescriptor, transaction: Transaction
    ) -> None:
        self._transaction = transaction
        self._rules = RowRules.of(table)
        self._table = table
        (self._key,) = table.key_columns
        self._columns = [each for each in table.visible_columns if each.id != self._key.id]
        self._bindings = Bindings(
            (),
            transaction.read_timestamp,
            generators=services.generators,
            analytics=services.analytics,
        )

    async def write(self, changes: _ByColumn, *, snapshot: bool) -> None:
        """Merges cells into the rows; a snapshot's rows are all that the table holds then."""
        left = dict(await self._transaction.scan(self._table.primary_span)) if snapshot else {}
        async for part in self._slices(changes):
            if snapshot:
                bodies = [left.pop(key, None) for key in part.keys]
            else:
                bodies = await self._bodies(part.keys)
            columns = self._decoded([None] * len(bodies) if snapshot else bodies)
            for cells in part.cells:
                current = columns[cells.name]
                if not snapshot:
                    self._check(part, cells, current)
                columns[cells.name] = _replaced(current, cells.places, cells.new)
            await self._write(part, columns, bodies, snapshot=snapshot)
        keys = list(left)
        for start in range(0, len(keys), SLICE_ROWS):
            await self._apply(Mutation(self._rules.codec, deletes=keys[start : start + SLICE_ROWS]))

    # Reading

    async def _slices(self, changes: _ByColumn) -> AsyncIterator[_Slice]:
        rows, cells = changes
        for start in range(0, len(rows), SLICE_ROWS):
            part = rows.slice(start, SLICE_ROWS)
            yield self._slice(part, [each.within(start, start + len(part)) for each in cells])
            await asyncio.sleep(0)

    def _slice(self, texts: AnyArray, cells: Sequence[_Cells]) -> _Slice:
        key_values = self._parsed(self._key, texts)
        keys = self._rules.codec.encode_keys([key_values])
        parsed: list[_Cells] = []
        for each in cells:
            column = self._named(each.name)
            if len(each.places):
                old, new = self._parsed(column, each.old), self._parsed(column, each.new)
                parsed.append(_Cells(each.name, each.places, old, new))
        return _Slice(texts, key_values, keys, parsed)

    async def _bodies(self, keys: Sequence[bytes]) -> list[bytes | None]:
        if await self._transaction.first_existing(keys) is None:
            return [None] * len(keys)
        return await read_each(self._transaction, keys, GETS_PER_STEP)

    def _decoded(self, bodies: Sequence[bytes | None]) -> dict[str, AnyArray]:
        """Columns of the rows as they are, without a value where there is no row."""
        found = [body for body in bodies if body is not None]
        if not found:
            return {
                each.name: constant_array(each.type, None, len(bodies)) for each in self._columns
            }
        places = iter(range(len(found)))
        taken = pa.array([None if body is None else next(places) for body in bodies], pa.int32())
        batch = self._rules.codec.decode_columns(found)
        return {each.name: batch.column(each.name).take(taken) for each in self._columns}

    def _check(self, part: _Slice, cells: _Cells, current: AnyArray) -> None:
        """Raises SQLError where the table has another value than the log says that it replaced."""
        there = current.take(cells.places)
        if there.equals(cells.old):
            return
        texts = part.texts.take(cells.places).to_pylist()
        for text, value, old in zip(texts, there.to_pylist(), cells.old.to_pylist(), strict=True):
            if value != old and not (value != value and old != old):
                raise SQLError(
                    "55000",
                    f'cell "{cells.name}" of row {text!r} of '
                    f'"{self._table.name}" was not {old!r}, as the log says',
                    hint="The store was written behind the log's back: send a snapshot.",
                )

    def _named(self, name: str) -> Column:
        column = self._table.column(name)
        if column.id == self._key.id:
            raise SQLError("42703", f'column "{name}" is the key, which names a row')
        return column

    def _parsed(self, column: Column, values: AnyArray) -> AnyArray:
        """Values as the texts of literals, or as bytes where the column is of bytes."""
        if values.null_count == len(values):
            return constant_array(column.type, None, len(values))
        if column.type.kind is TypeKind.BYTES:
            datums = [coerce(column.type, each, column=column.name) for each in values.to_pylist()]
            return datum_array(column.type, datums)
        try:
            texts = cast(pa.StringArray, values.cast(pa.string()))
        except pa.ArrowInvalid:
            raise self._no_text(column, values) from None
        found = cast_texts(column.type, texts)
        if found is not None:
            return found.cast(column.type.arrow_type)
        coerced: list[Datum] = [
            coerce(column.type, text, column=column.name) for text in texts.to_pylist()
        ]
        return datum_array(column.type, coerced)

    def _no_text(self, column: Column, values: AnyArray) -> SQLError:
        for value in values.to_pylist():
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                break
        return SQLError("22021", f'column "{column.name}": {value!r} is not text in UTF-8')

    # Writing

    async def _write(
        self,
        part: _Slice,
        columns: Mapping[str, AnyArray],
        bodies: Sequence[bytes | None],
        *,
        snapshot: bool,
    ) -> None:
        """Puts the rows that have a value, and deletes those that have none any longer. What a
        snapshot has as it is stays as it is."""
        none = pa.array([False] * len(part.keys))
        valid: AnyArray = reduce(pc.or_, map(pc.is_valid, columns.values()), none)
        kept = valid.to_pylist()
        rows = list(zip(part.keys, bodies, kept, strict=True))
        written = [(key, before) for key, before, keep in rows if keep]
        batch = pa.RecordBatch.from_pydict({self._key.name: part.key_values, **columns})
        keys = [key for key, _ in written]
        mutation = await encode_batch(self._rules, batch.filter(valid), self._bindings, keys=keys)
        if snapshot:
            pairs = zip(mutation.bodies, written, strict=True)
            left = [at for at, (body, (_, before)) in enumerate(pairs) if body != before]
            mutation.keys = [mutation.keys[at] for at in left]
            mutation.bodies = [mutation.bodies[at] for at in left]
        mutation.deletes = [key for key, before, keep in rows if before is not None and not keep]
        await self._apply(mutation)

    async def _apply(self, mutation: Mutation) -> None:
        mutation.check_distinct()
        await mutation.apply_in(self._transaction)
        await asyncio.sleep(0)


def _by_table(changes: pa.Table) -> dict[str, _ByColumn]:
    names: list[Any] = changes.column("table").unique().to_pylist()
    return {
        name: _by_column(changes if len(names) == 1 else rows_where(changes, "table", name))
        for name in names
    }


def _by_column(changes: pa.Table) -> _ByColumn:
    rows = _array(changes.column("row")).dictionary_encode()
    columns = _array(changes.column("column")).dictionary_encode()
    keys = pa.table({"column": columns.indices, "place": rows.indices})
    order = pc.sort_indices(keys, [("column", "ascending"), ("place", "ascending")])
    places, old, new = (
        values.take(order)
        for values in (rows.indices, _array(changes.column("old")), _array(changes.column("new")))
    )
    counted = pc.value_counts(columns.indices)  # in the order of the names: as they appear
    counts: list[Any] = counted.field("counts").to_pylist()
    cells: list[_Cells] = []
    start = 0
    for name, count in zip(columns.dictionary.to_pylist(), counts, strict=True):
        assert isinstance(name, str), name
        cells.append(_Cells(name, *(each.slice(start, count) for each in (places, old, new))))
        start += count
    return rows.dictionary, cells


def _replaced(values: AnyArray, places: AnyArray, new: AnyArray) -> AnyArray:
    """The values, with others at some places, which ascend."""
    if len(places) == len(values):
        return new
    rows = _PLACES.slice(0, len(values))
    found = pc.index_in(rows, value_set=places)
    taken = pc.if_else(pc.is_valid(found), pc.add(found, pa.scalar(len(values), pa.int32())), rows)
    return pa.concat_arrays([values, new]).take(taken)


def _array(column: pa.ChunkedArray[Any]) -> AnyArray:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
