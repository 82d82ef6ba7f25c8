"""The progress table: how far each feed has come, in the file that its rows are in.

    _tailrace.progress   store_id, job_id, epoch, resolved, frontier, scan_complete, backfills,
                         incarnation, log_index, updated_at

One row a feed, written in the transaction that writes the feed's rows, and only by the epoch that
the row names: a process whose claim was taken over changes nothing any more. `resolved` is NULL
until the first progress is saved.

`incarnation` and `log_index` are how far the feed's process had been given the store's log when it
saved: a store in whose past that does not lie was put back from an older copy.

`frontier` and `backfills` are bytes of `mirror.progress_encoding`.
"""

from __future__ import annotations

import duckdb

from ..mirror.progress_encoding import (
    STAND_COLUMNS,
    Fenced,
    decode_stand,
    encode_stand,
    wall_datetime,
)
from ..protocol import FeedIdentity, SinkStand

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


class ProgressRow:
    """One feed's row of the progress table."""

    def __init__(self, identity: FeedIdentity) -> None:
        self._identity = identity
        # Of one store only, which the file's owner row guarantees, so the job is enough.
        self._where = f"job_id = {identity.job_id:d} AND epoch = {identity.epoch:d}"
        self._saved: list[object] = []
        """Frontier, scan_complete, backfills and incarnation as the row has them."""

    def read(self, cursor: duckdb.DuckDBPyConnection) -> SinkStand | None:
        """The progress of the feed by its row; None where it has saved none."""
        found = cursor.execute(
            f"SELECT {STAND_COLUMNS} FROM _tailrace.progress "
            "WHERE job_id = $1 AND resolved IS NOT NULL",
            [self._identity.job_id],
        ).fetchone()
        if found is None:
            return None
        _, *self._saved, _ = found
        return decode_stand(found)

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
        resolved, *state, log_index = encode_stand(stand)
        changed = "resolved = $1, updated_at = $2, log_index = $3"
        values: list[object] = [resolved, wall_datetime(unix_us), log_index]
        if state != self._saved:
            changed += ", frontier = $4, scan_complete = $5, backfills = $6, incarnation = $7"
            values += state
        cursor.execute(f"UPDATE _tailrace.progress SET {changed} WHERE {self._where}", values)
        counted = cursor.fetchone()
        assert counted is not None
        if counted[0] != 1:
            raise Fenced(f"fenced: epoch {self._identity.epoch} no longer owns {self._where}")
        self._saved = state
