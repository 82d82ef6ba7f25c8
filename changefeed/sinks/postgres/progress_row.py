"""One feed's row of the progress table.

The row names the epoch that may write. Each transaction locks the row and looks, so a process whose
claim was taken over changes nothing any more, and who takes over waits for the transaction that is
under way.
"""

from __future__ import annotations

from ..mirror.progress_encoding import (
    STAND_COLUMNS,
    Fenced,
    decode_stand,
    encode_stand,
    wall_datetime,
)
from ..protocol import FeedIdentity, SinkStand
from .connection import Connection
from .table_schema import OWN_SCHEMA


class ProgressRow:
    """One feed's row of the progress table."""

    def __init__(self, identity: FeedIdentity) -> None:
        self._identity = identity
        self._key = (identity.store_id, identity.job_id)

    async def read(self, connection: Connection) -> SinkStand | None:
        """The progress of the feed by its row; None where it has saved none."""
        cursor = await connection.execute(
            f"SELECT {STAND_COLUMNS} FROM {OWN_SCHEMA}.progress "
            "WHERE store_id = %s AND job_id = %s AND resolved IS NOT NULL",
            self._key,
        )
        found = await cursor.fetchone()
        return None if found is None else decode_stand(found)

    async def claim(self, connection: Connection, unix_us: int) -> None:
        """Puts our epoch on the row, once no transaction of another holds it. Raises Fenced when it
        bears a greater one."""
        identity = self._identity
        claimed = await connection.execute(
            f"INSERT INTO {OWN_SCHEMA}.progress AS known "
            "(store_id, job_id, epoch, scan_complete, updated_at) VALUES (%s, %s, %s, false, %s) "
            "ON CONFLICT (store_id, job_id) DO UPDATE SET epoch = excluded.epoch "
            "WHERE known.epoch <= excluded.epoch",
            [*self._key, identity.epoch, wall_datetime(unix_us)],
        )
        if claimed.rowcount != 1:
            raise Fenced(
                f"fenced: a later claim of job {identity.job_id} has opened its sink than epoch "
                f"{identity.epoch}"
            )

    def lock(self) -> tuple[str, list[object]]:
        """The query that locks the row, and has one where our epoch still holds it."""
        return (
            f"SELECT 1 FROM {OWN_SCHEMA}.progress WHERE store_id = %s AND job_id = %s "
            "AND epoch = %s FOR UPDATE",
            [*self._key, self._identity.epoch],
        )

    def fenced(self) -> Fenced:
        return Fenced(
            f"fenced: epoch {self._identity.epoch} of job {self._identity.job_id} no longer owns "
            "its mirror"
        )

    def save(self, stand: SinkStand, unix_us: int) -> tuple[str, list[object]]:
        """The statement that writes where the feed stands."""
        return (
            f"UPDATE {OWN_SCHEMA}.progress SET ({STAND_COLUMNS}, updated_at) = "
            "(%s, %s, %s, %s, %s, %s, %s) WHERE store_id = %s AND job_id = %s",
            [*encode_stand(stand), wall_datetime(unix_us), *self._key],
        )
