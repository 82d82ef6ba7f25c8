"""Changes as rows of a Delta table.

The table's columns, as Delta has types, then `_op` (`upsert` or `delete`; of a deleted row the key
alone is known) and `_commit_timestamp`, as the lakes of Spark have them. A UUID, a TIME, a JSONB,
an ENUM and an INTERVAL are strings.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.arrow_columns import datum_array
from ...contract.changes import ChangeBatch, ChangeKind
from ...encode.parquet import change_columns, deletions

OPERATION = "_op"
COMMIT_TIMESTAMP = "_commit_timestamp"


def delta_rows(batch: ChangeBatch) -> pa.Table:
    """The changes of a batch, in its order."""
    found = change_columns(batch)
    arrays = [_converted(array) for array in found.values()]
    gone = deletions(batch)
    arrays.append(pa.array(["delete" if each else "upsert" for each in gone], pa.string()))
    arrays.append(pa.array(batch.timestamps, pa.int64()))
    return pa.table(arrays, names=[*found, OPERATION, COMMIT_TIMESTAMP])


def delta_schema(table: TableDescriptor) -> pa.Schema:
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
    return delta_rows(empty).schema


def _converted(column: Any) -> Any:
    """The Arrow column with texts where Delta has no such type."""
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
