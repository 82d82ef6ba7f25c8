"""The streaming reader: the versions of a table, micro-batch by micro-batch.

An offset is `{"ts": …, "uuid": …}`. `ts` is a resolved timestamp, and the batch from offset `a` to
offset `b` is exactly the versions in `(a, b]`, whenever and however often it is read. `uuid` names
the query's position at the server, a protected timestamp that keeps what is not read yet; it is
there before the first offset is. `ts` 0 is before the initial scan: the batch from it is the table
as of the position.

A batch never crosses a schema change. A query has one schema for life, so it ends there, and says
so; started again from its checkpoint it goes on behind the change, with the table's new schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from .client import ExportClient, ServerRefused, TableMissing, read_schema
from .columns import shape, table_columns, with_metadata
from .options import SourceOptions

BEFORE_SCAN = 0

IDLE_OFFSET = 10_000_000 << 12
"""Ten seconds of timestamps: how often a table that does not change moves the offset all the same.
Resolved time goes on in it, and each move costs Spark a batch of no rows."""


class CheckpointRefused(Exception):
    """The query's checkpoint does not belong to this table or store, or is too old."""


class SchemaChanged(Exception):
    """The table was altered since the query began."""


class TableDropped(Exception):
    """The table is no more; all that was committed to it before is delivered."""


class ExportPart(InputPartition):
    """One span's export, of versions or of rows: the table by its id, and what the server is
    asked."""

    def __init__(self, table_id: int, query: dict[str, Any]) -> None:
        super().__init__(None)
        self.table_id = table_id
        self.query = query


class ChangefeedStreamReader(DataSourceStreamReader):
    """Reads what changes in a table; see the module for what an offset is."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._checked: str | None = None
        """The position that is known to be this table's."""
        self._began_at = 0
        self._initial: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's, as are those below)
        """The same at each call: Spark asks more than once before there is a first batch."""
        if self._initial is None:
            created = self._client().create_position(self._options.start)
            ts = BEFORE_SCAN if self._options.initial_scan else created["at"]
            self._initial = {"ts": ts, "uuid": created["id"]}
        return dict(self._initial)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        position, after = start["uuid"], start["ts"]
        at = self._check(position)
        if after == BEFORE_SCAN:
            return {"ts": at, "uuid": position}
        try:
            found = self._client().next(position, after)
        except TableMissing as error:
            raise TableDropped(f"table {self._options.address.table!r} was dropped") from error
        if found["altered_at"] > self._began_at:
            self._check_schema(read_schema(found["schema"]), found["altered_at"])
        if not found["changed"] and found["upto"] - after < IDLE_OFFSET:
            return start
        return {"ts": found["upto"], "uuid": position}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start["ts"] == end["ts"]:
            return []
        self._check(end["uuid"])
        scan = start["ts"] == BEFORE_SCAN
        found = self._client().spans(end["ts"], cut=scan)
        interval = {"as_of": end["ts"]} if scan else {"from": start["ts"], "to": end["ts"]}
        if scan and self._options.own_timestamps:
            interval["stamped"] = "true"
        present = set(read_schema(found["schema"]).names)
        columns = [name for name in table_columns(self._arrow.names) if name in present]
        query = {**interval, "columns": json.dumps(columns or sorted(present)[:1])}
        return [ExportPart(found["table_id"], {**query, "span": span}) for span in found["spans"]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ExportPart), partition
        for batch in self._client().export(partition.table_id, partition.query):
            yield shape(batch, self._arrow, snapshot_at=partition.query.get("as_of"))

    def commit(self, end: dict[str, Any]) -> None:
        """Releases versions at or below `end` for collection."""
        if end["ts"] != BEFORE_SCAN:
            self._client().advance(end["uuid"], end["ts"])

    def stop(self) -> None:
        """The position stays: the query may come back to its checkpoint."""

    def _client(self) -> ExportClient:
        return ExportClient(self._options.address)

    def _check(self, position: str) -> int:
        """The timestamp of the position, once it is known to be of this table and store."""
        client = self._client()
        try:
            found = client.position(position)
        except ServerRefused as error:
            if error.status != 404:
                raise
            raise CheckpointRefused(
                f"the checkpoint's position {position} is not known at {self._options.address.url}:"
                " it is another store's, or was given up for its age. Start with a new checkpoint"
            ) from error
        if self._checked != position:
            table = self._table(client)
            if table is None:
                return int(found["at"])  # dropped, and what is left of it may still be read
            if table["table_id"] != found["table_id"]:
                raise CheckpointRefused(
                    f"the checkpoint is of table {found['table_id']}, and"
                    f" {self._options.address.table!r} is table {table['table_id']}:"
                    " start with a new checkpoint"
                )
            current = self._fits(read_schema(table["schema"]))
            # A schema that is not the table's of now holds up to some change, but not which.
            self._checked, self._began_at = position, table["as_of"] if current else 0
        return int(found["at"])

    def _table(self, client: ExportClient) -> dict[str, Any] | None:
        try:
            return client.table(None)
        except TableMissing:
            return None

    def _check_schema(self, schema: pa.Schema, altered_at: int) -> None:
        if not self._fits(schema):
            raise SchemaChanged(
                f"table {self._options.address.table!r} was altered at timestamp {altered_at}: all"
                " before it is delivered. Start the query again from its checkpoint, and it goes on"
                " with the new columns"
            )

    def _fits(self, schema: pa.Schema) -> bool:
        """Whether the query has the table's columns, or of those that it chose still every one."""
        own = [(field.name, field.type) for field in self._arrow]
        table = [(field.name, field.type) for field in with_metadata(schema)]
        if self._options.columns is not None:
            return set(own) <= set(table)
        return own == table
