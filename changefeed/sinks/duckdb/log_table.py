"""The log of one table's changes: a row for each, in the transaction that also holds progress.

    commit_timestamp  operation  key  before                    after
    1795…             insert     [7]  NULL                      {"id": 7, "total": 12}
    1795…             update     [7]  {"id": 7, "total": 12}    {"id": 7, "total": 13}
    1796…             delete     [7]  {"id": 7, "total": 13}    NULL

Rows are documents, each under the schema of its own change, so a schema change alters nothing here.
A change that comes again, behind a crash or a range feed that began anew, is known by its key and
its timestamp. Rows of an initial scan are `scan`, those that a schema change has shown again
`backfill`, and a table that was emptied at once is one `truncate`.
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
from .log_ownership import LogRow
from .table_work import Prepared, TableWork
from .tombstones import Tombstones

_OPTIONS = ChangefeedOptions(envelope=Envelope.WRAPPED, key_in_value=True, diff=True)
_KINDS = {ChangeKind.INITIAL_SCAN: "scan", ChangeKind.BACKFILL: "backfill"}
_GIVEN = "_tailrace_logged"


class LogTable:
    """The changes that wait to be logged. Methods belong to the loop, and `_write` to the
    file's lane."""

    def __init__(self, row: LogRow, cursor: duckdb.DuckDBPyConnection) -> None:
        self.table_id = row.table_id
        self._base = row.base
        self._horizon = row.horizon
        """Nothing above it is in the log."""
        self._cursor = cursor
        self._encoder = JSONEncoder(_OPTIONS, Topics(full_names={}, full_table_name=False))
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
                self._insert(_rows([item.timestamp], ["truncate"], [None], [None]))
            else:
                self._insert(self._logged(item))

    def _logged(self, batch: ChangeBatch) -> pa.Table:
        messages = self._encoder.encode(batch).values
        keys = [key[KEY_PREFIX_LENGTH:] for key in batch.keys]
        return _rows(batch.timestamps, _operations(batch), keys, messages)

    def _insert(self, rows: pa.Table) -> None:
        timestamps: list[int] = rows.column("ts").to_pylist()  # type: ignore[assignment]
        least, greatest = min(timestamps), max(timestamps)
        source = _GIVEN
        if least <= self._horizon:
            source = (
                f"(SELECT DISTINCT ON (ts, _key) * FROM {_GIVEN} AS given WHERE NOT EXISTS ("
                f"SELECT 1 FROM {self._base} AS known "
                f"WHERE known.commit_timestamp BETWEEN {least:d} AND {greatest:d} "
                "AND known.commit_timestamp = given.ts "
                "AND known._key IS NOT DISTINCT FROM given._key))"
            )
        self._cursor.register(_GIVEN, rows)
        self._cursor.execute(
            f"INSERT INTO {self._base} SELECT ts, committed_at, operation, message->'key', "
            "nullif(message->'before', 'null'), nullif(message->'after', 'null'), _key "
            f"FROM {source}"
        )
        self._cursor.unregister(_GIVEN)
        self._horizon = max(self._horizon, Timestamp(greatest))


def _rows(
    timestamps: Sequence[Timestamp],
    operations: Sequence[str],
    keys: Sequence[bytes | None],
    messages: Sequence[bytes | None],
) -> pa.Table:
    texts = [None if message is None else message.decode() for message in messages]
    return pa.table(
        {
            "ts": pa.array(timestamps, pa.int64()),
            "committed_at": pa.array([unix_us(at) for at in timestamps], pa.timestamp("us", "UTC")),
            "operation": pa.array(operations, pa.string()),
            "_key": pa.array(keys, pa.binary()),
            "message": pa.array(texts, pa.string()),
        }
    )


def _operations(batch: ChangeBatch) -> list[str]:
    gone = set(batch.deleted)
    if batch.rows is not None:
        gone = {place for place, row in enumerate(batch.rows) if row is None}
    kind = _KINDS.get(batch.kind)
    if kind is not None:
        return ["delete" if place in gone else kind for place in range(len(batch))]
    previous = batch.previous
    assert previous is not None, "a log is fed with the rows before"
    return [
        "delete" if place in gone else "insert" if before is None else "update"
        for place, before in enumerate(previous)
    ]
