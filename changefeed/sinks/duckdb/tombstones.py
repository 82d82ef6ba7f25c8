"""Tombstones: what was deleted above the frontier, so that no replay brings it back.

A version of a row is told old by the row's own `_commit_timestamp`. A deleted row has none, so the
deletion is remembered until the frontier passes it: a feed replays nothing at or below its
frontier.

    delete k @120, resolved 100     tombstone (k, 120)
    replay: upsert k @110           ignored, for 110 <= 120
    resolved 130                    pruned
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from ....kvlayer.clock import ZERO, Timestamp
from ..mirror.conform import KEY_PREFIX_LENGTH
from .arrow_source import ArrowSource
from .table_schema import SCHEMA

ROWWISE_MAX = 4
"""Up to this many tombstones go in as parameters, which for few is faster than Arrow."""

PRUNE_MIN = 1_000
"""A flush that carries rows prunes the table only when so many have gone by."""

Tombstone = tuple[int, bytes, Timestamp]
"""Table id, key, and when it was deleted."""

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("job_id", pa.int64()),
    ("table_id", pa.int64()),
    ("key", pa.binary()),
    ("commit_timestamp", pa.int64()),
]
_SCHEMA = pa.schema(_FIELDS)


class Tombstones:
    """One feed's tombstones: those of the file, and the same in memory. They belong to the file's
    lane.

    `write` belongs to the flush's transaction; `note_committed` repeats it in memory once that has
    committed. So memory never knows more than the file.
    """

    def __init__(self, job_id: int) -> None:
        self._job_id = job_id
        self._newest: dict[int, dict[bytes, Timestamp]] = {}
        # In order of arrival, which is nearly that of time: what waits behind a later one is only
        # pruned a little later.
        self._queue: deque[Tombstone] = deque()
        self._prunable = 0
        self._source: ArrowSource | None = None

    def of(self, table_id: int) -> dict[bytes, Timestamp]:
        """The timestamp of each key's deletion in a table."""
        return self._newest.get(table_id, _NONE)

    @property
    def prunable(self) -> bool:
        """Whether a flush without rows has something to prune."""
        return self._prunable > 0

    def __len__(self) -> int:
        return len(self._queue)

    def load(self, cursor: duckdb.DuckDBPyConnection, resolved: Timestamp | None) -> None:
        """Reads what the file holds; with no progress there is nothing to protect."""
        self._newest.clear()
        self._queue.clear()
        cursor.execute(
            f"DELETE FROM {SCHEMA}.tombstones WHERE job_id = $1 AND commit_timestamp <= $2",
            [self._job_id, (1 << 63) - 1 if resolved is None else resolved],
        )
        rows = cursor.execute(
            f"SELECT table_id, key, commit_timestamp FROM {SCHEMA}.tombstones WHERE job_id = $1 "
            "ORDER BY commit_timestamp",
            [self._job_id],
        ).fetchall()
        self.note_committed([(table, key, Timestamp(ts)) for table, key, ts in rows], ZERO)

    def rekey(self, cursor: duckdb.DuckDBPyConnection, table_id: int, prefix: bytes | None) -> None:
        """The table's keys begin with `prefix` from here on; None: none of them matters any more.

        Part of the flush's transaction, in the file and in memory alike: a sink whose flush failed
        is of no further use.
        """
        cursor.execute(
            f"DELETE FROM {SCHEMA}.tombstones WHERE job_id = $1 AND table_id = $2",
            [self._job_id, table_id],
        )
        moved = (
            []
            if prefix is None
            else [
                (table_id, prefix + key[KEY_PREFIX_LENGTH:], ts)
                for key, ts in self._newest.get(table_id, _NONE).items()
            ]
        )
        if moved:
            self._write_many(cursor, moved)
        self._newest.pop(table_id, None)
        self._queue = deque(entry for entry in self._queue if entry[0] != table_id)
        self.note_committed(moved, ZERO)

    def write(
        self,
        cursor: duckdb.DuckDBPyConnection,
        deleted: Sequence[Tombstone],
        resolved: Timestamp,
        *,
        carries_rows: bool,
    ) -> None:
        """Adds those above `resolved` to the file, and prunes it when that is due."""
        above = [entry for entry in deleted if entry[2] > resolved]
        if len(above) <= ROWWISE_MAX:
            for table_id, key, ts in above:
                cursor.execute(
                    f"INSERT INTO {SCHEMA}.tombstones VALUES ($1, $2, $3, $4)",
                    [self._job_id, table_id, key, ts],
                )
        else:
            self._write_many(cursor, above)
        if self._prunable >= (PRUNE_MIN if carries_rows else 1):
            cursor.execute(
                f"DELETE FROM {SCHEMA}.tombstones WHERE job_id = $1 AND commit_timestamp <= $2",
                [self._job_id, resolved],
            )
            self._prunable = 0

    def _write_many(self, cursor: duckdb.DuckDBPyConnection, entries: Sequence[Tombstone]) -> None:
        if self._source is None:
            self._source = ArrowSource(cursor, "tombstones_in", _SCHEMA)
        tables, keys, timestamps = zip(*entries, strict=True)
        columns = ([self._job_id] * len(entries), tables, keys, timestamps)
        arrays = [
            pa.array(values, type=field.type)
            for values, field in zip(columns, _SCHEMA, strict=True)
        ]
        with self._source.holding(pa.Table.from_arrays(arrays, schema=_SCHEMA)):
            cursor.execute(f"INSERT INTO {SCHEMA}.tombstones SELECT * FROM {self._source.name}")

    def note_committed(self, deleted: Sequence[Tombstone], resolved: Timestamp) -> None:
        """The transaction of `write` has committed: takes up the new, lets go of the passed."""
        for entry in deleted:
            table_id, key, ts = entry
            if ts <= resolved:
                continue
            newest = self._newest.setdefault(table_id, {})
            newest[key] = max(ts, newest.get(key, ZERO))
            self._queue.append(entry)
        while self._queue and self._queue[0][2] <= resolved:
            table_id, key, ts = self._queue.popleft()
            self._prunable += 1
            newest = self._newest.get(table_id, {})
            if newest.get(key) == ts:
                del newest[key]


_NONE: dict[bytes, Timestamp] = {}
