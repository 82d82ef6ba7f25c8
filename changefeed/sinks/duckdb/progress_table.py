"""The progress table: how far each feed has come, in the file that its rows are in.

    _tailrace.progress   store_id, job_id, epoch, resolved, frontier, scan_complete, backfills,
                         incarnation, log_index, updated_at

One row a feed, written in the transaction that writes the feed's rows, and only by the epoch that
the row names: a process whose claim was taken over changes nothing any more. `resolved` is NULL
until the first progress is saved.

`incarnation` and `log_index` are how far the feed's process had been given the store's log when it
saved: a store in whose past that does not lie was put back from an older copy.

`frontier` is a msgpack array of [start, end, distance], the distance of a span's timestamp being
counted from `resolved`. A feed in step with its tables stands everywhere at `resolved`, so that its
frontier stays the same bytes, and a commit writes one column less.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import msgspec

from ....kvlayer.clock import Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.span import Span
from ...contract.boundary_kind import BoundaryKind
from ..protocol import BackfillProgress, FeedIdentity, SinkProgress, SinkRefused, SinkStand

DDL = """
CREATE TABLE _tailrace.progress (
    store_id VARCHAR NOT NULL,
    job_id BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    resolved BIGINT,
    frontier BLOB,
    scan_complete BOOLEAN NOT NULL,
    backfills BLOB,
    incarnation VARCHAR,
    log_index BIGINT,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL
)
"""

_UNIX = datetime(1970, 1, 1, tzinfo=UTC)
_Entries = list[tuple[bytes, bytes, int]]
_Backfills = list[tuple[int, int, str, bytes, bool]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Entries).decode
_decode_backfills = msgspec.msgpack.Decoder(_Backfills).decode


class Fenced(SinkRefused):
    """A greater epoch of the same job has opened the sink."""


def wall_datetime(unix_us: int) -> datetime:
    return _UNIX + timedelta(microseconds=unix_us)


def encode_frontier(progress: SinkProgress) -> bytes:
    resolved = progress.resolved
    return _encode([(span.start, span.end, ts - resolved) for span, ts in progress.frontier])


def decode_frontier(data: bytes, resolved: Timestamp) -> tuple[tuple[Span, Timestamp], ...]:
    return tuple(
        (Span(start, end), Timestamp(resolved + distance)) for start, end, distance in _decode(data)
    )


def encode_backfills(progress: SinkProgress) -> bytes | None:
    """None where there are none, as nearly always."""
    if not progress.backfills:
        return None
    return _encode(
        [
            (each.table_id, each.at, each.kind.value, each.position, each.done)
            for each in progress.backfills
        ]
    )


def decode_backfills(data: bytes | None) -> tuple[BackfillProgress, ...]:
    return tuple(
        BackfillProgress(
            table_id=table_id,
            at=Timestamp(at),
            kind=BoundaryKind(kind),
            position=position,
            done=done,
        )
        for table_id, at, kind, position, done in _decode_backfills(data or _encode([]))
    )


class ProgressRow:
    """One feed's row of the progress table."""

    def __init__(self, identity: FeedIdentity) -> None:
        self._identity = identity
        # Of one store only, which the file's owner row guarantees, so the job is enough.
        self._where = f"job_id = {identity.job_id:d} AND epoch = {identity.epoch:d}"
        self._saved: tuple[bytes, bool, bytes | None, str] = (b"", False, None, "")
        """Frontier, scan_complete, backfills and incarnation as the row has them."""

    def read(self, cursor: duckdb.DuckDBPyConnection) -> SinkStand | None:
        """Where the feed stands by its row; None where it has saved no progress."""
        found = cursor.execute(
            "SELECT resolved, frontier, scan_complete, backfills, incarnation, log_index "
            "FROM _tailrace.progress WHERE job_id = $1 AND resolved IS NOT NULL",
            [self._identity.job_id],
        ).fetchone()
        if found is None:
            return None
        resolved, frontier, scan_complete, backfills, incarnation, index = found
        self._saved = (frontier, scan_complete, backfills, incarnation)
        return SinkStand(
            progress=SinkProgress(
                frontier=decode_frontier(frontier, Timestamp(resolved)),
                resolved=Timestamp(resolved),
                scan_complete=scan_complete,
                backfills=decode_backfills(backfills),
            ),
            position=StorePosition(incarnation=incarnation, index=index),
        )

    def claim(self, cursor: duckdb.DuckDBPyConnection, unix_us: int) -> None:
        """Puts our epoch on the row. Raises Fenced when it bears a greater one."""
        identity = self._identity
        found = cursor.execute(
            "SELECT epoch FROM _tailrace.progress WHERE job_id = $1", [identity.job_id]
        ).fetchone()
        if found is None:
            cursor.execute(
                "INSERT INTO _tailrace.progress (store_id, job_id, epoch, scan_complete, "
                "updated_at) VALUES ($1, $2, $3, false, $4)",
                [identity.store_id, identity.job_id, identity.epoch, wall_datetime(unix_us)],
            )
            return
        if found[0] > identity.epoch:
            raise Fenced(
                f"fenced: job {identity.job_id} has opened its sink with epoch {found[0]}, "
                f"and this is epoch {identity.epoch}"
            )
        cursor.execute(
            "UPDATE _tailrace.progress SET epoch = $1 WHERE job_id = $2",
            [identity.epoch, identity.job_id],
        )

    def save(self, cursor: duckdb.DuckDBPyConnection, stand: SinkStand, unix_us: int) -> None:
        """Writes where the feed stands if the row still bears our epoch. Raises Fenced if it does
        not.

        A failure leaves this object unusable: what it remembers may have been rolled back.
        """
        progress, position = stand.progress, stand.position
        at = wall_datetime(unix_us)
        frontier = encode_frontier(progress)
        backfills = encode_backfills(progress)
        state = (frontier, progress.scan_complete, backfills, position.incarnation)
        changed = "resolved = $1, updated_at = $2, log_index = $3"
        values: list[object] = [progress.resolved, at, position.index]
        if state != self._saved:
            changed += ", frontier = $4, scan_complete = $5, backfills = $6, incarnation = $7"
            values += state
        cursor.execute(f"UPDATE _tailrace.progress SET {changed} WHERE {self._where}", values)
        counted = cursor.fetchone()
        assert counted is not None
        if counted[0] != 1:
            raise Fenced(f"fenced: epoch {self._identity.epoch} no longer owns {self._where}")
        self._saved = state
