"""A feed's mirror tables and logs as of one commit of their file, to be compared with their source.

The reader's transaction sees the tables, the tombstones and the resolved timestamp of one flush,
and the feed goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import duckdb

from .....kvlayer.clock import ZERO, Timestamp
from .....kvlayer.frontier import part_of
from .....kvlayer.keys import table_span
from ...mirror.progress_encoding import decode_frontier
from ..log_ownership import logs_of
from ..ownership import rows_of
from ..table_schema import SCHEMA
from .log_snapshot import SnapshotLog
from .mirror_snapshot import SnapshotTable

T = TypeVar("T")


class InLane(Protocol):
    """Runs a call on the thread that has a snapshot's transaction, wherever that is. Who is
    cancelled interrupts what runs."""

    def __call__(self, call: Callable[[], T]) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class MirrorSnapshot:
    """A feed as of one commit: the resolved timestamp, zero before the first; its mirror tables,
    and its logs."""

    resolved: Timestamp
    tables: Sequence[SnapshotTable] = ()
    logs: Sequence[SnapshotLog] = ()


def begin_snapshot(cursor: duckdb.DuckDBPyConnection, job_id: int) -> MirrorSnapshot:
    """Begins a transaction. In the reader's lane. Raises duckdb.Error."""
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    found = cursor.execute(
        f"SELECT resolved, frontier FROM {SCHEMA}.progress WHERE job_id = $1", [job_id]
    ).fetchone()
    if found is None or found[0] is None:
        return MirrorSnapshot(ZERO)
    resolved = Timestamp(found[0])
    frontier = decode_frontier(found[1], resolved)

    def come(table_id: int) -> Timestamp:
        span = table_span(table_id)
        reached = min((at for _, at in part_of(frontier, span)), default=ZERO)
        return min(resolved, reached)

    return MirrorSnapshot(
        resolved,
        [SnapshotTable(row, job_id, come(row.table_id), cursor) for row in rows_of(cursor, job_id)],
        [SnapshotLog(row, come(row.table_id), cursor) for row in logs_of(cursor, job_id)],
    )
