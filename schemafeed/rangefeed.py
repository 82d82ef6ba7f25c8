"""The range-feed schema feed: it follows `system.descriptor`, and its resolved timestamp is proof.

A row waits until the range feed over the descriptors has resolved the row's time: milliseconds
where timestamps are closed adaptively, and as long as a transaction holds them open where one does.
That is what it costs beside a lease, and what polling costs beside it.

    version v2 @180, checkpoint 200      a row at 190 waits for the checkpoint, and goes on under v2

The feed is open while a table is active and closed while all of them rest. A table that is resumed
has been proven further by somebody else meanwhile: its version as of there is read, and a new feed
is opened from the least of the frontiers. So nothing is ever read below a frontier, however long
the rest was.
"""

from __future__ import annotations

import asyncio

from ..catalog.descriptors.descriptor import TableDescriptor
from ..catalog.descriptors.system_tables import DESCRIPTOR
from ..catalog.store.descriptor_store import decode_stored, descriptor_key
from ..kvlayer.clock import ZERO, Timestamp
from ..kvlayer.errors import (
    KVError,
    LockTimeout,
    RangeFeedEnded,
    ReadConflict,
    RetryableTransaction,
)
from ..kvlayer.events import Checkpoint, Event, ValueBatch
from .proving import ProvingSchemaFeed, WatchedTable
from .table_history import TableHistory

RESTART_SECONDS = 0.1
"""Between the end of one feed and the start of the next."""


class RangeFeedSchemaFeed(ProvingSchemaFeed):
    """Proves schemas by the resolved timestamp of a range feed over `system.descriptor`.

    `_resolved` is the open feed's, and holds for every covered table: a checkpoint costs the same
    with one table and with ten thousand. `_arrived` are the versions above it.
    """

    _resolved: Timestamp = ZERO

    async def _run(self) -> None:
        self._ids = {descriptor_key(table_id): table_id for table_id in self._tables}
        self._arrived: dict[int, list[TableDescriptor]] = {}
        while True:
            self._wanted.clear()
            if not self._any_active():
                await self._wanted.wait()
                continue
            try:
                await self._follow_while_wanted()
            except (LockTimeout, ReadConflict, RetryableTransaction, RangeFeedEnded):
                self._store.metrics.add("schema_feed_restarts_total")
                await asyncio.sleep(RESTART_SECONDS)
            except KVError as error:
                self._fail(error)
                return

    async def _follow_while_wanted(self) -> None:
        """Follows until other tables are to be followed, or none. Raises what ends a feed."""
        following = asyncio.create_task(self._follow(), name="schema feed over descriptors")
        wanted = asyncio.create_task(self._wanted.wait())
        try:
            await asyncio.wait({following, wanted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            following.cancel()
            wanted.cancel()
            await asyncio.wait({following, wanted})
        if not following.cancelled():
            following.result()

    async def _follow(self) -> None:
        active = {id: table for id, table in self._tables.items() if table.active}
        for table_id, table in active.items():
            if table.rejoining:
                await self._rejoin(table_id, table)
        start = min(table.history.frontier for table in active.values())
        feed = self._store.span_feed([DESCRIPTOR.primary_span], start)
        try:
            self._resolved = start
            for table in active.values():
                # A table that was paused or vouched for meanwhile is not: `_wanted` is set.
                table.covered = table.active and not table.rejoining
            while True:
                for event in await feed.next():
                    self._take(event, feed.frontier.low_water)
        finally:
            feed.close()
            self._uncover()

    async def _rejoin(self, table_id: int, table: WatchedTable) -> None:
        turn = table.turn
        canonical = await self._read_at(table_id, table.history.frontier)
        if table.turn == turn:
            assert canonical is not None, "a table that was there stays known"
            table.history.rejoin(canonical)
            table.rejoining = False

    def _uncover(self) -> None:
        for table_id, table in self._tables.items():
            self._history(table_id)
            table.covered = False
        self._arrived.clear()

    def _history(self, table_id: int) -> TableHistory:
        table = self._tables[table_id]
        if table.covered:
            table.history.extend((), self._resolved)
        return table.history

    def _take(self, event: Event, low_water: Timestamp) -> None:
        match event:
            case ValueBatch(keys=keys, values=values, timestamps=timestamps):
                for key, body, at in zip(keys, values, timestamps, strict=True):
                    table_id = self._ids.get(key)
                    if table_id is not None and body is not None:
                        self._note(table_id, decode_stored(key, body, at))
            case Checkpoint():
                if low_water > self._resolved:
                    self._prove(low_water)
            case _:
                pass

    def _note(self, table_id: int, version: object) -> None:
        """A version arrived; one that is known already came again with a restart."""
        table = self._tables[table_id]
        assert isinstance(version, TableDescriptor), version
        arrived = self._arrived.setdefault(table_id, [])
        known = arrived[-1] if arrived else table.history.canonical
        if table.covered and version.version > known.version:
            arrived.append(version)

    def _prove(self, upto: Timestamp) -> None:
        """Notes that all versions published up to `upto` have arrived."""
        proven: list[TableDescriptor] = []
        for table_id, versions in list(self._arrived.items()):
            table = self._tables[table_id]
            passed = [version for version in versions if version.modification_time <= upto]
            if table.covered and passed:
                self._history(table_id).extend(passed, upto)
                proven.append(passed[-1])
            self._arrived[table_id] = versions[len(passed) :]
            if not self._arrived[table_id]:
                del self._arrived[table_id]
        self._resolved = upto
        self._announce()
        self._refresh_leases(proven)
