"""A table's columns as Spark has them: types that Spark lacks become ones that it has."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

OPERATION = "_op"
COMMIT_TIMESTAMP = "_commit_timestamp"
METADATA = (OPERATION, COMMIT_TIMESTAMP)
UPSERT = "upsert"


def with_metadata(table: pa.Schema) -> pa.Schema:
    """The source's schema for a table's: what every row of a read or of a stream has.

    All of it may be NULL but the metadata: of a deleted row only the key is known.
    """
    columns = [pa.field(field.name, _type(field.type), nullable=True) for field in table]
    return pa.schema(
        [
            *columns,
            pa.field(OPERATION, pa.string(), nullable=False),
            pa.field(COMMIT_TIMESTAMP, pa.int64(), nullable=False),
        ]
    )


def spark_schema(table: pa.Schema) -> StructType:
    """The same, as Spark writes schemas."""
    schema: StructType = from_arrow_schema(with_metadata(table))
    return schema


def table_columns(wanted: Sequence[str]) -> list[str]:
    """The columns of `wanted` that the server has, in order."""
    return [name for name in wanted if name not in METADATA]


def shape(batch: pa.RecordBatch, schema: pa.Schema, *, snapshot_at: int | None) -> pa.RecordBatch:
    """The batch with the columns of `schema`, in its order.

    A snapshot's rows are upserts at its timestamp. A column that the batch lacks, because the table
    did not have it yet, is NULL.
    """
    arrays = [_array(batch, field, snapshot_at) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(batch: pa.RecordBatch, field: pa.Field[Any], snapshot_at: int | None) -> Any:
    if field.name in batch.schema.names:
        column = batch.column(field.name)
        return _converted(column).cast(field.type)
    if field.name == OPERATION:
        return pa.array([UPSERT] * batch.num_rows, pa.string())
    if field.name == COMMIT_TIMESTAMP:
        return pa.array([snapshot_at] * batch.num_rows, pa.int64())
    return pa.nulls(batch.num_rows, field.type)


def _type(type: pa.DataType) -> pa.DataType:
    if isinstance(type, pa.ListType):
        return pa.list_(_type(type.value_type))
    return pa.string() if _is_text(type) else type


def _is_text(type: pa.DataType) -> bool:
    """Whether Spark has the values as texts: UUID, JSONB, TIME, and INTERVAL in ISO 8601."""
    return isinstance(type, pa.BaseExtensionType) or pt.is_time(type) or pt.is_interval(type)


def _converted(column: Any) -> Any:
    """The column with texts where Spark has them."""
    if isinstance(column, pa.UuidArray):
        return pa.array([_uuid_text(value) for value in column.storage.to_pylist()], pa.string())
    if isinstance(column, pa.ExtensionArray):
        return column.storage
    if pt.is_interval(column.type):
        return pa.array([_interval_text(value) for value in column.to_pylist()], pa.string())
    if isinstance(column, pa.ListArray):
        lengths = column.value_lengths().fill_null(0)
        ends = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
        items = _converted(column.flatten())
        lists: Any = pa.ListArray
        return lists.from_arrays(ends, items, mask=column.is_null())
    return column


def _uuid_text(value: bytes | None) -> str | None:
    return None if value is None else str(uuid.UUID(bytes=value))


def _interval_text(value: tuple[int, int, int] | None) -> str | None:
    if value is None:
        return None
    months, days, nanoseconds = value
    seconds = decimal.Decimal(nanoseconds) / 1_000_000_000
    return f"P{months}M{days}DT{seconds:f}S"
