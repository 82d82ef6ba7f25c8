"""A table's columns as Spark has them: types that Spark lacks become ones that it has."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
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
    """Those of `wanted` that the server has, in order."""
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
        if isinstance(column, pa.UuidArray):
            return pa.array(
                [_uuid_text(value) for value in column.storage.to_pylist()], pa.string()
            )
        return column if column.type == field.type else column.cast(field.type)
    if field.name == OPERATION:
        return pa.array([UPSERT] * batch.num_rows, pa.string())
    if field.name == COMMIT_TIMESTAMP:
        return pa.array([snapshot_at] * batch.num_rows, pa.int64())
    return pa.nulls(batch.num_rows, field.type)


def _type(type: pa.DataType) -> pa.DataType:
    return pa.string() if isinstance(type, pa.UuidType) else type


def _uuid_text(value: bytes | None) -> str | None:
    return None if value is None else str(uuid.UUID(bytes=value))
