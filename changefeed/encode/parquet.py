"""Changes as Arrow tables for Parquet files, in CockroachDB's columns.

A file has the table's columns in the table's order, then `__crdb__event_type`, `c` for a row and
`d` for a deletion, and as options ask `__crdb__updated` and `__crdb__mvcc_timestamp` as texts. Of a
deletion there are the columns of the key; every other one is NULL. Parquet has no interval with
months: an INTERVAL is a text in PostgreSQL's style.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pyarrow as pa

from ...catalog.descriptors.descriptor import Column
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.arrow_columns import AnyArray, column_datums, datum_array
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.changes import ChangeBatch
from ..contract.options import ChangefeedOptions

EVENT_TYPE = "__crdb__event_type"
UPDATED = "__crdb__updated"
MVCC_TIMESTAMP = "__crdb__mvcc_timestamp"


def parquet_table(batch: ChangeBatch, options: ChangefeedOptions) -> pa.Table:
    """The changes of a batch, in its order."""
    found = change_columns(batch)
    arrays, names = [*found.values()], [*found]
    arrays.append(_event_types(batch))
    names.append(EVENT_TYPE)
    if options.updated:
        arrays.append(_texts(batch.timestamps))
        names.append(UPDATED)
    if options.mvcc_timestamp:
        arrays.append(_texts(batch.written_at))
        names.append(MVCC_TIMESTAMP)
    return pa.table(arrays, names=names)


def change_columns(batch: ChangeBatch) -> dict[str, AnyArray]:
    """The columns that are shown, by name, with a value for each change: of a deletion the key's,
    and NULLs."""
    return {
        column.name: written_column(column, array)
        for column, array in zip(batch.descriptor.visible_columns, _arrays(batch), strict=True)
        if not column.hidden
    }


def deletions(batch: ChangeBatch) -> list[bool]:
    """Whether each change is a deletion."""
    gone = frozenset(batch.gone)
    return [index in gone for index in range(len(batch))]


def live_places(batch: ChangeBatch) -> list[int | None]:
    """For each change the place of its row among those that are there; None for a deletion."""
    found = count()
    return [None if gone else next(found) for gone in deletions(batch)]


def _event_types(batch: ChangeBatch) -> AnyArray:
    if batch.rows is None and not batch.deleted:
        types: AnyArray = pa.repeat("c", len(batch))
        return types
    return pa.array(["d" if gone else "c" for gone in deletions(batch)], pa.string())


def _arrays(batch: ChangeBatch) -> list[AnyArray]:
    """The columns of all changes: of a deletion the key's values, and NULLs."""
    columns = batch.descriptor.visible_columns
    if batch.shown is not None:
        return batch.shown.columns
    if batch.columns is not None and not batch.deleted:
        return batch.columns.columns
    if batch.columns is not None:
        return _with_deletions(batch, batch.columns)
    values = zip(*batch.whole_rows(), strict=True)
    return [datum_array(column.type, part) for column, part in zip(columns, values, strict=True)]


def _with_deletions(batch: ChangeBatch, live: pa.RecordBatch) -> list[AnyArray]:
    keys = dict(
        zip(
            batch.descriptor.primary_key,
            codec_for(batch.descriptor).decode_keys(batch.keys).columns,
            strict=True,
        )
    )
    places = pa.array(live_places(batch), pa.int64())
    return [
        keys[column.id] if column.id in keys else array.take(places)
        for column, array in zip(batch.descriptor.visible_columns, live.columns, strict=True)
    ]


def written_column(column: Column, array: AnyArray) -> AnyArray:
    """The column as Parquet has one."""
    if column.type.kind is TypeKind.INTERVAL:
        datums = column_datums(column.type, array)
        return pa.array([None if datum is None else str(datum) for datum in datums], pa.string())
    if column.type.element is not None and column.type.element.kind is TypeKind.INTERVAL:
        lists: list[Any] = column_datums(column.type, array)
        return pa.array(
            [items and [None if item is None else str(item) for item in items] for items in lists],
            pa.list_(pa.string()),
        )
    return array


def _texts(timestamps: Sequence[Timestamp]) -> AnyArray:
    known = {at: format_timestamp(at) for at in set(timestamps)}
    return pa.array([known[at] for at in timestamps], pa.string())
