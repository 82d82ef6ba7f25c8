"""Changes as rows of a lake table.

The table's columns, as Delta and Iceberg have types, then `_op` (`upsert` or `delete`; of a deleted
row the key alone is known) and `_commit_timestamp`, as the lakes of Spark have them. A UUID, a
TIME, a JSONB, an ENUM and an INTERVAL are strings.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ....catalog.descriptors.descriptor import Column, TableDescriptor
from ....catalog.values.arrow_columns import datum_array
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ...contract.changes import ChangeBatch, ChangeKind
from ...encode.parquet import change_columns, deletions, written_column
from ..held_rows import COMMIT_TIMESTAMP, ROW_KEY

OPERATION = "_op"
KEY = ROW_KEY
"""The store's own key, in a mirror of a table whose key's columns do not tell keys apart as the
store does."""


def check_names(table: TableDescriptor) -> None:
    """Raises SQLError where a lake table cannot have the columns of `table`."""
    names = [OPERATION, COMMIT_TIMESTAMP, KEY]
    for column in table.shown_columns:
        if column.name.lower() in names:
            raise SQLError(
                "42701",
                f'a table of a lake cannot have column "{column.name}" of table {table.name}',
                detail=f"Names ignore case, and {OPERATION}, {COMMIT_TIMESTAMP} and {KEY} are "
                "taken.",
            )
        names.append(column.name.lower())


def lake_rows(batch: ChangeBatch) -> pa.Table:
    """The changes of a batch, in its order."""
    found = change_columns(batch)
    arrays = [_converted(array) for array in found.values()]
    gone = deletions(batch)
    arrays.append(pa.array(["delete" if each else "upsert" for each in gone], pa.string()))
    arrays.append(pa.array(batch.timestamps, pa.int64()))
    return pa.table(arrays, names=[*found, OPERATION, COMMIT_TIMESTAMP])


def lake_schema(table: TableDescriptor) -> pa.Schema:
    """The columns that the rows of `table` have."""
    arrays = [datum_array(column.type, []) for column in table.visible_columns]
    names = [column.name for column in table.visible_columns]
    empty = ChangeBatch(
        descriptor=table,
        kind=ChangeKind.LIVE,
        keys=[],
        timestamps=[],
        columns=pa.RecordBatch.from_arrays(arrays, names=names),
    )
    return lake_rows(empty).schema


def constant_column(column: Column, value: Datum, count: int) -> Any:
    """The column with one value in all of `count` rows."""
    array = _converted(written_column(column, datum_array(column.type, [value])))
    return array.take(pa.repeat(pa.scalar(0, pa.int32()), count))


def _converted(column: Any) -> Any:
    """The Arrow column with texts where Delta or Iceberg has no such type."""
    if isinstance(column, pa.UuidArray):
        values = column.storage.to_pylist()
        texts = [None if value is None else str(uuid.UUID(bytes=value)) for value in values]
        return pa.array(texts, pa.string())
    if isinstance(column, pa.ExtensionArray):
        return pc.cast(column.storage, pa.string())
    if pt.is_time(column.type):
        return pc.ascii_rtrim(pc.ascii_rtrim(pc.cast(column, pa.string()), "0"), ".")
    if isinstance(column, pa.ListArray):
        lengths = column.value_lengths().fill_null(0)
        ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        lists: Any = pa.ListArray
        return lists.from_arrays(ends, _converted(column.flatten()), mask=column.is_null())
    return column
