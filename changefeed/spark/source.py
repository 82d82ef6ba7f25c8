"""The data source `changefeed`: a table of a Tailrace server, in Spark."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..contract import resending
from .client import ExportClient, TableMissing, read_schema
from .columns import shape, spark_schema, table_columns
from .filters import Condition, push
from .options import SourceOptions
from .stream import ChangefeedStreamReader, ExportPart

FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


class ChangefeedSource(DataSource):
    """`format("changefeed")`. Options: `options.KNOWN`; `url` and `table` are required."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = SourceOptions.read(dict(options))

    @classmethod
    def name(cls) -> str:
        return "changefeed"

    def schema(self) -> StructType:
        """The table's columns (or those of the option `columns`), `_op` and `_commit_timestamp`."""
        found = read_schema(self._table()["schema"])
        if self._options.columns is not None:
            found = pa.schema([found.field(name) for name in self._options.columns])
        return spark_schema(found)

    def _table(self) -> dict[str, Any]:
        client = ExportClient(self._options.address)
        try:
            return client.table(self._options.as_of)
        except TableMissing:
            if self._options.schema_at is None:
                raise
            return client.table(self._options.schema_at)

    def reader(self, schema: StructType) -> DataSourceReader:
        return SnapshotReader(self._options, schema)

    def streamReader(self, schema: StructType) -> ChangefeedStreamReader:  # noqa: N802 (Spark's)
        return ChangefeedStreamReader(self._options, schema)


class SnapshotReader(DataSourceReader):
    """Reads a table as of one timestamp, a partition for each span.

    Only the columns of the query's schema leave the server: that is what pruning Spark's Python
    sources have (`.schema("id BIGINT, amount DOUBLE")`, or the option `columns`).
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's)
        self._conditions, left = push(filters, self._arrow)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        found = ExportClient(self._options.address).spans(self._options.as_of)
        query: dict[str, Any] = {"as_of": found["as_of"]}
        query["columns"] = json.dumps(_columns(self._arrow, found["schema"]))
        if self._conditions:
            query["where"] = json.dumps(self._conditions)
        return [ExportPart(found["table_id"], {**query, "span": span}) for span in found["spans"]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ExportPart), partition
        batches = ExportClient(self._options.address).export(partition.table_id, partition.query)
        for batch in batches:
            yield shape(batch, self._arrow, snapshot_at=partition.query["as_of"])


def _columns(wanted: pa.Schema, schema: str) -> list[str]:
    """The columns to ask for: a row needs one at least to be counted."""
    return table_columns(wanted.names) or [read_schema(schema).names[0]]


def travelling_modules() -> tuple[ModuleType, ...]:
    """The code that goes to Spark's workers with a query: they need pyarrow, and not Tailrace."""
    return sys.modules[__package__], resending


def register(session: SparkSession) -> None:
    """Registers the source with a session, and lets Spark push filters down to Python sources."""
    for module in travelling_modules():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    session.conf.set(FILTER_PUSHDOWN, "true")  # Spark refuses a source that could, while it is off
    session.dataSource.register(ChangefeedSource)
