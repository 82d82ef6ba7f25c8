"""A table's columns as Spark has them."""

from __future__ import annotations

from datetime import time
from uuid import UUID

import pyarrow as pa

from tailrace.catalog.values.arrow_columns import datum_array
from tailrace.catalog.values.column_types import ColumnType, Datum, array_of
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.spark.columns import shape, spark_schema, with_metadata

COLUMNS: list[tuple[TypeKind, list[Datum], list[object]]] = [
    (TypeKind.INT8, [1, None], [1, None]),
    (TypeKind.TIME, [time(1, 2, 3), None], ["01:02:03.000000", None]),
    (TypeKind.INTERVAL, [Interval(months=1, microseconds=-500_000), None], ["P1M0DT-0.5S", None]),
    (TypeKind.JSONB, ['{"a": 1}', None], ['{"a": 1}', None]),
    (TypeKind.UUID, [UUID(int=1), None], [str(UUID(int=1)), None]),
]


def test_types_that_spark_lacks_become_texts() -> None:
    for kind, datums, wanted in COLUMNS:
        for type, given, shown in (
            (ColumnType(kind), datums, wanted),
            (array_of(ColumnType(kind)), [datums, None, []], [wanted, None, []]),
        ):
            batch = pa.RecordBatch.from_arrays([datum_array(type, given)], names=["c"])
            schema = with_metadata(batch.schema)
            assert spark_schema(batch.schema).fieldNames()[0] == "c"
            found = shape(batch, schema, snapshot_at=7)
            assert found.column("c").to_pylist() == shown, type
