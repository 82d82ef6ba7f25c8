"""The changes of one table since the last flush: gathered, and reduced to one per key.

    emitted   k1@10  k2@11  k1@12  k2 deleted @13      then @9 of k1, replayed
    newest    k1@12  k2 deleted @13

Positions count the changes in order of emission. `_newest` keeps, for each key, the position of its
newest change, at the cost of one dictionary update a batch: where it is as long as the changes are
many, no key came twice and nothing is left out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.rows.row_codec import codec_for
from ....catalog.values.arrow_columns import AnyArray, datum_array
from ....catalog.values.column_types import Datum
from ....kvlayer.clock import Timestamp
from ...contract.changes import ChangeBatch
from ..mirror.conform import KEY_PREFIX_LENGTH
from .table_schema import TableSchema

ROWWISE_MAX = 3
"""Up to this many changes are applied one by one: an Arrow statement costs as much as three."""

Change = tuple[bytes, Timestamp, tuple[Datum, ...] | None]
"""Key, commit timestamp, and the row or None for a deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """A few changes: of different keys, but where they are a `whole`."""

    changes: Sequence[Change]

    @property
    def deletions(self) -> list[tuple[bytes, Timestamp]]:
        return [(key, ts) for key, ts, row in self.changes if row is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChanges:
    """Many changes: of different keys, but where they are a `whole`. Upserts have the base table's
    columns."""

    upserts: pa.Table | None
    removals: pa.Table | None
    deletions: list[tuple[bytes, Timestamp]]


Changes = RowChanges | ColumnChanges


class PendingChanges:
    """The batches of one table since the last flush."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._batches: list[ChangeBatch] = []
        self._offsets: list[int] = []
        # The rows of columnar batches, made ready when they come: a flush may take many at once.
        self._columns: list[pa.RecordBatch | None] = []
        self._count = 0
        self._newest: dict[bytes, int] = {}
        self._rowwise = True

    def __len__(self) -> int:
        return self._count

    @property
    def batches(self) -> Sequence[ChangeBatch]:
        return self._batches

    def add(self, batch: ChangeBatch) -> None:
        keys, offset = batch.keys, self._count
        newest = self._newest
        self._offsets.append(offset)
        self._batches.append(batch)
        self._count += len(keys)
        columnar = batch.columns is not None
        self._columns.append(self._upserts(batch, batch.deleted) if columnar else None)
        self._rowwise = self._rowwise and not columnar
        if not newest or newest.keys().isdisjoint(keys):
            newest.update(zip(keys, range(offset, self._count), strict=True))
            return
        timestamps = batch.timestamps
        for place, key in enumerate(keys):
            earlier = newest.get(key)
            # A scan's row or a replay may come behind a newer version of its key.
            if earlier is None or self._timestamp(earlier) <= timestamps[place]:
                newest[key] = offset + place

    def _timestamp(self, position: int) -> Timestamp:
        index = bisect_right(self._offsets, position) - 1
        return self._batches[index].timestamps[position - self._offsets[index]]

    def reduce(self, tombstones: Mapping[bytes, Timestamp]) -> Changes:
        """One change per key, without those that a tombstone shows to be old."""
        keep = self._keep(tombstones)
        if self._rowwise and len(self._newest) <= ROWWISE_MAX:
            return self._as_rows(keep)
        return self._as_columns(keep)

    def whole(self) -> Changes:
        """Every change, of a key perhaps several, in order of emission."""
        if self._rowwise and self._count <= ROWWISE_MAX:
            return self._as_rows(None)
        return self._as_columns(None)

    def _keep(self, tombstones: Mapping[bytes, Timestamp]) -> bytearray | None:
        """For each position whether it is kept; None when all are."""
        newest = self._newest
        dead = [
            newest[key]
            for key in (newest.keys() & tombstones.keys() if tombstones else ())
            if self._timestamp(newest[key]) <= tombstones[key]
        ]
        if not dead and len(newest) == self._count:
            return None
        keep = bytearray(self._count)
        for position in newest.values():
            keep[position] = 1
        for position in dead:
            keep[position] = 0
        return keep

    def _as_rows(self, keep: bytearray | None) -> RowChanges:
        changes = chain.from_iterable(
            zip(batch.keys, batch.timestamps, batch.rows or (), strict=True)
            for batch in self._batches
        )
        return RowChanges(
            changes=[change for place, change in enumerate(changes) if keep is None or keep[place]]
        )

    def _as_columns(self, keep: bytearray | None) -> ColumnChanges:
        upserts: list[pa.RecordBatch] = []
        deletions: list[tuple[bytes, Timestamp]] = []
        parts = zip(self._batches, self._offsets, self._columns, strict=True)
        for batch, offset, rows in parts:
            part = None if keep is None else keep[offset : offset + len(batch)]
            if part is not None and not any(part):
                continue
            deleted = batch.gone
            deletions += [
                (batch.keys[place], batch.timestamps[place])
                for place in deleted
                if part is None or part[place]
            ]
            if rows is None:
                rows = self._upserts(batch, deleted)
            upserts.append(rows if part is None else rows.filter(_mask(part, deleted)))
        table = pa.Table.from_batches(upserts) if upserts else None
        return ColumnChanges(
            upserts=table if table is not None and table.num_rows else None,
            removals=self._removals(deletions) if deletions else None,
            deletions=deletions,
        )

    def _upserts(self, batch: ChangeBatch, deleted: Sequence[int]) -> pa.RecordBatch:
        """The rows of a batch in the base table's columns."""
        keys, timestamps = batch.keys, batch.timestamps
        if deleted:
            absent = set(deleted)
            present = [place for place in range(len(keys)) if place not in absent]
            keys = [keys[place] for place in present]
            timestamps = [timestamps[place] for place in present]
        columns = batch.columns
        arrays = self._columns_of(batch) if columns is None else list(columns.columns)
        if self._schema.key_place is None:
            arrays.append(_stripped(keys))
        arrays.append(pa.array(timestamps, type=pa.int64()))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema.upserts)

    def _columns_of(self, batch: ChangeBatch) -> list[AnyArray]:
        assert batch.rows is not None
        rows = [row for row in batch.rows if row is not None]
        columns = self._schema.descriptor.visible_columns
        values = zip(*rows, strict=True) if rows else ([] for _ in columns)
        return [
            datum_array(column.type, part) for column, part in zip(columns, values, strict=True)
        ]

    def _removals(self, deletions: Sequence[tuple[bytes, Timestamp]]) -> pa.Table:
        keys, timestamps = zip(*deletions, strict=True)
        if self._schema.key_place is None:
            key_array = _stripped(keys)
        else:
            key_array = codec_for(self._schema.descriptor).decode_keys(keys).column(0)
        return pa.Table.from_arrays(
            [key_array, pa.array(timestamps, type=pa.int64())], schema=self._schema.removals
        )


def _mask(part: bytearray, deleted: Sequence[int]) -> pa.BooleanArray:
    """Marks the rows of a batch that are kept. Deletions have no row, and so no place in the
    mask."""
    if deleted:
        absent = set(deleted)
        part = bytearray(kept for place, kept in enumerate(part) if place not in absent)
    # A view of the bytes: no Python object a row.
    kept = pa.Array.from_buffers(pa.uint8(), len(part), [None, pa.py_buffer(bytes(part))])
    return pc.equal(kept, pa.scalar(1, pa.uint8()))


def _stripped(keys: Sequence[bytes]) -> AnyArray:
    # DuckDB's zone maps look at the first eight bytes: without the prefix those tell keys apart.
    return pa.array([key[KEY_PREFIX_LENGTH:] for key in keys], type=pa.binary())
