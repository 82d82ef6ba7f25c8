"""A Delta table on disk, and the commits of one feed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake

from ....kvlayer.history import StorePosition
from ..lake.lake_table import another_type
from ..lake.record import FIELD, TableRecord, application, decode_record
from ..protocol import FeedIdentity, SinkRefused

COMMIT_RETRIES = 20
"""How often a commit gives way to those of others, such as OPTIMIZE."""


class TableFolder:
    """The folder of a Delta table. It does I/O and raises OSError, DeltaError and ArrowException:
    use it in a lane.

    `table` is None while there is no Delta table. Every write is one commit with a record.
    """

    def __init__(self, path: Path, identity: FeedIdentity) -> None:
        self.path = path
        self._identity = identity
        self.table: DeltaTable | None = None
        self._seen = -1
        """The table's version up to which every commit of this feed is known to be ours."""

    def read(self) -> TableRecord | None:
        """The record of the feed's last commit; None where the table is not the feed's. Raises
        SinkRefused where the log that tells it is gone."""
        if not DeltaTable.is_deltatable(str(self.path)):
            return None
        self.table = DeltaTable(str(self.path))
        self._seen = self.table.version()
        resolved = self.table.transaction_version(application(self._identity))
        if resolved is None:
            return None
        for record in self._records(self.table, None):  # the newest first
            if record.application == application(self._identity):
                return None if record.released else record
        raise SinkRefused(
            f"the log of the Delta table {self.path} no longer has the feed's last commit: cancel "
            "the changefeed, and create another into another folder, with a cursor where this one "
            "is resolved"
        )

    @property
    def foreign(self) -> bool:
        if self.table is None:
            return False
        return self.table.transaction_version(application(self._identity)) is None

    @property
    def shown(self) -> str:
        return f"Delta table {self.path}"

    def check_types(self, schema: pa.Schema) -> None:
        """Raises SinkRefused where a column of the table has another type than in `schema`."""
        assert self.table is not None, self.path
        types = {field.name: field.type for field in self.table.schema().fields}
        for field in Schema.from_arrow(schema).fields:
            if types.setdefault(field.name, field.type) != field.type:
                raise SinkRefused(
                    another_type(self.shown, field.name, types[field.name], field.type)
                )

    def rows(self) -> Iterator[pa.RecordBatch]:
        """All rows as they are, batch by batch."""
        assert self.table is not None, self.path
        scanner = self.table.to_pyarrow_dataset().scanner(batch_readahead=2, fragment_readahead=1)
        return iter(scanner.to_batches())

    def follow(self) -> DeltaTable:
        """The table with the commits of others, such as OPTIMIZE. Raises SinkRefused where another
        attempt of the feed has written to it."""
        table = self.table
        assert table is not None, self.path
        table.update_incremental()
        newer = table.version() - self._seen
        if newer > 0:
            ours = application(self._identity)
            if any(record.application == ours for record in self._records(table, newer)):
                raise OSError(f"a later claim of job {self._identity.job_id} has written to it")
            self._seen = table.version()
        return table

    def append(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Adds rows, and the columns of `schema` that the table has not."""
        self._write(schema, batches, record, mode="append")

    def overwrite(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], record: TableRecord
    ) -> None:
        """Puts rows and columns in the place of those that are there."""
        self._write(schema, batches, record, mode="overwrite")

    def merge(self, rows: pa.Table, keys: list[str], deleted: str, record: TableRecord) -> None:
        """Upserts rows by their keys, and deletes those of which `deleted` is true. Each key is
        there once."""
        table = self.follow()
        names = [name for name in rows.column_names if name != deleted]
        values = {_quoted(name): f"changes.{_quoted(name)}" for name in names}
        merge = (
            table.merge(
                rows,
                " AND ".join(f"mirror.{_quoted(key)} = changes.{_quoted(key)}" for key in keys),
                source_alias="changes",
                target_alias="mirror",
                streamed_exec=False,  # the rows are in memory: their keys tell which files matter
                commit_properties=commit_properties(record),
            )
            .when_matched_delete(f"changes.{_quoted(deleted)}")
            .when_matched_update(values)
            .when_not_matched_insert(values, f"NOT changes.{_quoted(deleted)}")
        )
        self._commit(lambda: merge.execute())

    def release(self, record: TableRecord, position: StorePosition) -> None:
        """Lets go of the table: it stays as it is, and its commits tell no progress any more."""
        assert self.table is not None, self.path
        schema: Any = self.table.schema().to_arrow()
        self.append(pa.schema(schema), [], record.letting_go(position))

    def _write(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        record: TableRecord,
        *,
        mode: str,
    ) -> None:
        table = None if self.table is None else self.follow()

        def write() -> None:
            write_deltalake(
                str(self.path) if table is None else table,
                pa.RecordBatchReader.from_batches(schema, batches),
                mode="append" if mode == "append" else "overwrite",
                schema_mode="merge" if mode == "append" else "overwrite",
                commit_properties=commit_properties(record),
            )

        self._commit(write)

    def _commit(self, write: Callable[[], object]) -> None:
        write()
        if self.table is None:
            self.table = DeltaTable(str(self.path))
        self._seen = self.table.version()

    def _records(self, table: DeltaTable, limit: int | None) -> Iterable[TableRecord]:
        """The records of the last commits, the newest first."""
        for commit in table.history(limit):
            text = commit.get(FIELD)
            if text is not None:
                yield decode_record(text)


def commit_properties(record: TableRecord) -> CommitProperties:
    """The record, and a transaction of its application whose version is the timestamp up to which
    the table holds everything: Delta lets no two commits of one application pass each other."""
    return CommitProperties(
        custom_metadata={FIELD: record.encode()},
        app_transactions=[Transaction(record.application, record.resolved)],
        max_commit_retries=COMMIT_RETRIES,
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
