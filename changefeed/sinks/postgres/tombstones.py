"""Tombstones: what was deleted above the resolved timestamp, so that no replay brings it back.

A version of a row is told old by the row's own `_commit_timestamp`. A deleted row has none, so the
deletion is remembered until the feed has resolved it: a feed replays nothing at or below that.

    delete k @120, resolved 100     tombstone (k, 120)
    replay: upsert k @110           ignored, for 110 <= 120
    resolved 130                    pruned
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg

from ....kvlayer.clock import Timestamp
from ..protocol import FeedIdentity
from .connection import Connection
from .table_schema import OWN_SCHEMA

FEW = 50
"""Above this number of tombstones COPY is faster."""

STEP_ENTRIES = 5_000
"""Entries that one step of the loop looks at: a millisecond or two."""

Tombstone = tuple[int, bytes, Timestamp]
"""Table id, key without its prefix, and when it was deleted."""

ADD = (
    "ON CONFLICT (store_id, job_id, table_id, key) "
    "DO UPDATE SET commit_timestamp = excluded.commit_timestamp"
)


class Tombstones:
    """One feed's tombstones: those of the database, and the same in memory.

    They are noted as a flush writes its rows; one that fails leaves the sink of no further use.
    """

    def __init__(self, identity: FeedIdentity) -> None:
        self._key = (identity.store_id, identity.job_id)
        self._newest: dict[int, dict[bytes, Timestamp]] = {}
        # In order of arrival, which is nearly that of time: what waits behind a later one is only
        # pruned a little later.
        self._queue: deque[Tombstone] = deque()
        self._unsaved: list[Tombstone] = []

    def of(self, table_id: int) -> dict[bytes, Timestamp]:
        """The timestamp of each key's deletion in a table."""
        return self._newest.get(table_id, {})

    def note(self, table_id: int, deletions: Sequence[tuple[bytes, Timestamp]]) -> None:
        """Keys that were deleted in the transaction that `save` belongs to."""
        if not deletions:
            return
        self._newest.setdefault(table_id, {}).update(deletions)
        entries = [(table_id, key, ts) for key, ts in deletions]
        self._queue += entries
        self._unsaved += entries

    async def load(self, connection: Connection, resolved: Timestamp) -> None:
        """Reads what the database holds above `resolved`, and removes the rest."""
        await self._remove(connection, resolved)
        cursor = await connection.execute(
            f"SELECT table_id, key, commit_timestamp FROM {OWN_SCHEMA}.tombstones "
            "WHERE store_id = %s AND job_id = %s ORDER BY commit_timestamp",
            self._key,
        )
        while found := await cursor.fetchmany(STEP_ENTRIES):
            for table_id, key, ts in found:
                self._newest.setdefault(table_id, {})[key] = Timestamp(ts)
                self._queue.append((table_id, key, Timestamp(ts)))
            await asyncio.sleep(0)

    async def forget(self, connection: Connection, table_id: int) -> None:
        """No key of the table matters any more. Part of the flush's transaction."""
        await connection.execute(
            f"DELETE FROM {OWN_SCHEMA}.tombstones "
            "WHERE store_id = %s AND job_id = %s AND table_id = %s",
            [*self._key, table_id],
        )
        self._newest.pop(table_id, None)
        self._queue = deque(each for each in self._queue if each[0] != table_id)
        self._unsaved = [each for each in self._unsaved if each[0] != table_id]

    async def save_few(self, cursor: psycopg.AsyncCursor[Any], resolved: Timestamp) -> None:
        """Adds those that were noted, and prunes, without waiting for answers."""
        for table_id, key, ts in await self._take(resolved):
            await cursor.execute(
                f"INSERT INTO {OWN_SCHEMA}.tombstones VALUES (%s, %s, %s, %s, %s) {ADD}",
                [*self._key, table_id, key, ts],
            )
        if self._queue and self._queue[0][2] <= resolved:
            await self._prune(resolved)
            await self._remove(cursor, resolved)

    async def save(self, connection: Connection, resolved: Timestamp) -> None:
        """Adds those that were noted, and prunes."""
        if len(self._unsaved) > FEW:
            await self._save_many(connection, await self._take(resolved))
        async with connection.cursor() as cursor:
            await self.save_few(cursor, resolved)

    async def _save_many(self, connection: Connection, taken: Sequence[Tombstone]) -> None:
        await connection.execute(
            f"CREATE TEMPORARY TABLE _tombstones (LIKE {OWN_SCHEMA}.tombstones)"
        )
        async with (
            connection.cursor() as cursor,
            cursor.copy("COPY pg_temp._tombstones FROM STDIN") as copy,
        ):
            for place, entry in enumerate(taken, start=1):
                await copy.write_row([*self._key, *entry])
                if place % STEP_ENTRIES == 0:
                    await asyncio.sleep(0)
        await connection.execute(
            f"INSERT INTO {OWN_SCHEMA}.tombstones SELECT * FROM pg_temp._tombstones {ADD}"
        )
        await connection.execute("DROP TABLE pg_temp._tombstones")

    async def _take(self, resolved: Timestamp) -> Sequence[Tombstone]:
        """The newest of each key that is to be saved."""
        newest: dict[tuple[int, bytes], Timestamp] = {}
        for place, (table_id, key, ts) in enumerate(self._unsaved, start=1):
            if ts > resolved:
                newest[table_id, key] = ts
            if place % STEP_ENTRIES == 0:
                await asyncio.sleep(0)
        self._unsaved = []
        return [(table_id, key, ts) for (table_id, key), ts in newest.items()]

    async def _prune(self, resolved: Timestamp) -> None:
        count = 0
        while self._queue and self._queue[0][2] <= resolved:
            table_id, key, ts = self._queue.popleft()
            known = self._newest[table_id]
            if known.get(key) == ts:
                del known[key]
            count += 1
            if count % STEP_ENTRIES == 0:
                await asyncio.sleep(0)

    async def _remove(
        self, connection: Connection | psycopg.AsyncCursor[Any], resolved: Timestamp
    ) -> None:
        await connection.execute(
            f"DELETE FROM {OWN_SCHEMA}.tombstones "
            "WHERE store_id = %s AND job_id = %s AND commit_timestamp <= %s",
            [*self._key, resolved],
        )
