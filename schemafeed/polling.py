"""The polling schema feed: every interval it reads what was published since, and proves that much.

This is the arrangement that the low-latency changefeed RFC replaces, kept for comparison. A row
waits until a poll proves its schema: half the interval on average. One poll draws `now`, and reads
every version of the watched descriptors in `(frontier, now]` so that no later publication can fall
in there.
"""

from __future__ import annotations

import asyncio

from ..catalog.descriptors.descriptor import TableDescriptor
from ..kvlayer.clock import Timestamp
from ..kvlayer.errors import KVError, LockTimeout, ReadConflict, RetryableTransaction
from ..kvlayer.settings import declare_duration
from .proving import ProvingSchemaFeed

POLL_INTERVAL = declare_duration(
    "changefeed.experimental_poll_interval",
    1.0,
    "how often a polling schema feed reads the descriptors of its tables",
)


class PollingSchemaFeed(ProvingSchemaFeed):
    """Proves schemas by polling `system.descriptor`."""

    async def _run(self) -> None:
        while True:
            self._wanted.clear()
            try:
                await self._poll()
            except (LockTimeout, ReadConflict, RetryableTransaction):
                pass  # somebody writes a descriptor just now: the next poll sees what became of it
            except KVError as error:
                self._fail(error)
                return
            await self._rest()

    async def _rest(self) -> None:
        """Until the next poll: an interval, or as long as every table is paused.

        A table that is resumed is polled at once: rows wait for it already.
        """
        if not self._any_active():
            await self._wanted.wait()
            return
        interval = self._store.settings.get(POLL_INTERVAL)
        try:
            async with asyncio.timeout(interval):
                await self._wanted.wait()
        except TimeoutError:
            pass

    async def _poll(self) -> None:
        """Proves every active table up to a timestamp drawn now."""
        turns = {id: table.turn for id, table in self._tables.items() if table.active}
        if not turns:
            return
        self._store.metrics.add("changefeed_schemafeed_table_history_scans_total")
        now = await self._store.now()
        rejoined = {
            id: await self._read_at(id, self.frontier(id))
            for id in turns
            if self._tables[id].rejoining
        }
        after = min(self.frontier(id) for id in turns)
        published: dict[int, list[TableDescriptor]] = {id: [] for id in turns}
        for version in await self._descriptors.versions(list(turns), after, now):
            if isinstance(version, TableDescriptor):
                published[version.id].append(version)
        for id, turn in turns.items():
            if self._tables[id].turn == turn:
                self._prove(id, rejoined.get(id), published[id], now)
        self._announce()
        self._refresh_leases(versions[-1] for versions in published.values() if versions)

    def _prove(
        self,
        id: int,
        rejoined: TableDescriptor | None,
        published: list[TableDescriptor],
        now: Timestamp,
    ) -> None:
        table = self._tables[id]
        if rejoined is not None:
            table.history.rejoin(rejoined)
            table.rejoining = False
        frontier = table.history.frontier
        news = [version for version in published if version.modification_time > frontier]
        table.history.extend(news, now)
