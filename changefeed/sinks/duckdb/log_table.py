"""The log of one table's changes: a row for each, in the transaction that also holds progress.

    commit_timestamp  operation  key  before                    after
    1795…             insert     [7]  NULL                      {"id": 7, "total": 12}
    1795…             update     [7]  {"id": 7, "total": 12}    {"id": 7, "total": 13}
    1796…             delete     [7]  {"id": 7, "total": 13}    NULL

Rows are documents, each under the schema of its own change, so a schema change alters nothing here.
A change that comes again, behind a crash or a range feed that began anew, also beside the first in
one batch, is known by its key and its timestamp. Rows of an initial scan are `scan`, those that a
schema change has shown again `backfill`, and a table that was emptied at once is one `truncate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import duckdb
import pyarrow as pa

from ....kvlayer.clock import Timestamp, unix_us
from ....schemafeed.table_events import EventKind, TableEvent
from ...contract.changes import ChangeBatch, ChangeKind
from ...contract.message_form import Envelope
from ...contract.options import ChangefeedOptions
from ...encode import Topics
from ...encode.json import JSONEncoder
from ..mirror.conform import KEY_PREFIX_LENGTH
from ..protocol import SinkProgress
from .arrow_source import ArrowSource
from .log_ownership import LogRow
from .table_work import Prepared, TableWork
from .tombstones import Tombstones

_OPTIONS = ChangefeedOptions(envelope=Envelope.WRAPPED, key_in_value=True, diff=True)
SHOWN_AGAIN = {ChangeKind.INITIAL_SCAN: "scan", ChangeKind.BACKFILL: "backfill"}
"""The log's operations for rows that no commit at their timestamp wrote."""

LOGGED = (
    "ts AS commit_timestamp, committed_at, operation, message->'key' AS key, "
    "nullif(message->'before', 'null') AS before, nullif(message->'after', 'null') AS after, _key"
)
"""The columns of a log table, of rows as `LogEncoder` makes them."""

_TYPES: dict[str, pa.DataType] = {
    "ts": pa.int64(),
    "committed_at": pa.timestamp("us", "UTC"),
    "operation": pa.string(),
    "_key": pa.binary(),
    "message": pa.string(),
}
_SCHEMA = pa.schema(_TYPES)


class LogEncoder:
    """Makes rows of a log of changes."""

    def __init__(self) -> None:
        topics = Topics(full_names={}, full_table_name=False)
        self._encoder = JSONEncoder(_OPTIONS, topics)

    def rows(self, batch: ChangeBatch) -> pa.Table:
        """A row for each change, of which `LOGGED` makes the columns of the table."""
        messages = self._encoder.encode(batch).values
        keys = [key[KEY_PREFIX_LENGTH:] for key in batch.keys]
        return _rows(batch.timestamps, _operations(batch), keys, messages)


def truncation(at: Timestamp) -> pa.Table:
    """The row of a table that was emptied at once."""
    return _rows([at], ["truncate"], [None], [None])


class LogTable:
    """The changes that wait to be logged. Methods belong to the loop, and `_write` to the
    file's lane."""

    def __init__(self, row: LogRow, cursor: duckdb.DuckDBPyConnection) -> None:
        self.table_id = row.table_id
        self._base = row.base
        self._horizon = row.horizon
        """Nothing above it is in the log."""
        self._cursor = cursor
        self._given = ArrowSource(cursor, f"_tailrace_logged_{row.table_id}", _SCHEMA)
        self._encoder = LogEncoder()
        self._waiting: list[ChangeBatch | TableEvent] = []

    def add(self, batch: ChangeBatch) -> None:
        self._waiting.append(batch)

    def change(self, event: TableEvent) -> None:
        if EventKind.TRUNCATE in event.kinds:
            self._waiting.append(event)

    def due(self, progress: SinkProgress | None) -> bool:
        return bool(self._waiting)

    def prepare(self, progress: SinkProgress | None) -> Prepared:
        """Takes what has gathered."""
        waiting, self._waiting = self._waiting, []
        work = TableWork(
            write=partial(self._write, waiting), lone_statement=False, carries_rows=False
        )
        return lambda _: work

    # In the file's lane

    def _write(self, waiting: Sequence[ChangeBatch | TableEvent], tombstones: Tombstones) -> None:
        """Raises duckdb.Error."""
        for item in waiting:
            if isinstance(item, TableEvent):
                self._insert(truncation(item.timestamp))
            else:
                self._insert(self._encoder.rows(item))

    def _insert(self, rows: pa.Table) -> None:
        timestamps: list[int] = rows.column("ts").to_pylist()  # type: ignore[assignment]
        least, greatest = min(timestamps), max(timestamps)
        source = given = self._given.name
        identities = set(zip(timestamps, rows.column("_key").to_pylist(), strict=True))
        if least <= self._horizon or len(identities) < len(timestamps):
            source = (
                f"(SELECT DISTINCT ON (ts, _key) * FROM {given} AS given WHERE NOT EXISTS ("
                f"SELECT 1 FROM {self._base} AS known "
                f"WHERE known.commit_timestamp BETWEEN {least:d} AND {greatest:d} "
                "AND known.commit_timestamp = given.ts "
                "AND known._key IS NOT DISTINCT FROM given._key))"
            )
        with self._given.holding(rows):
            self._cursor.execute(f"INSERT INTO {self._base} SELECT {LOGGED} FROM {source}")
        self._horizon = max(self._horizon, Timestamp(greatest))


def _rows(
    timestamps: Sequence[Timestamp],
    operations: Sequence[str],
    keys: Sequence[bytes | None],
    messages: Sequence[bytes | None],
) -> pa.Table:
    texts = [None if message is None else message.decode() for message in messages]
    committed_at = [unix_us(at) for at in timestamps]
    return pa.table([timestamps, committed_at, operations, keys, texts], schema=_SCHEMA)


def _operations(batch: ChangeBatch) -> list[str]:
    gone = frozenset(batch.gone)
    kind = SHOWN_AGAIN.get(batch.kind)
    if kind is not None:
        return ["delete" if place in gone else kind for place in range(len(batch))]
    previous = batch.previous
    assert previous is not None, "a log is fed with the rows before"
    return [
        "delete" if place in gone else "insert" if before is None else "update"
        for place, before in enumerate(previous)
    ]
