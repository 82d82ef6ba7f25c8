"""The polling schema feed: every interval it reads what was published since, and proves that much.

This is the arrangement that the low-latency changefeed RFC replaces, kept as the leasing feed's
delegate and for comparison. A row waits until a poll proves its schema: half the interval on
average. One poll draws `now`, and reads every version of the watched descriptors in
`(frontier, now]` so that no later publication can fall in there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..catalog.descriptor import TableDescriptor
from ..catalog.descriptor_store import DescriptorStore
from ..catalog.leases import LeaseManager
from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import Timestamp
from ..kvlayer.errors import KVError, LockTimeout, ReadConflict, RetryableTransaction
from ..kvlayer.settings import declare_duration
from .feed import SchemaAnswer, TableUnknown
from .table_history import TableHistory

POLL_INTERVAL = declare_duration(
    "changefeed.experimental_poll_interval",
    1.0,
    "how often a polling schema feed reads the descriptors of its tables",
)


class _Table:
    """A watched table. `turn` rises whenever a read under way is no longer what is wanted."""

    __slots__ = ("active", "history", "rejoining", "turn")

    def __init__(self, history: TableHistory) -> None:
        self.history = history
        self.active = True
        self.rejoining = False
        self.turn = 0


class PollingSchemaFeed:
    """Proves schemas by polling `system.descriptor`. Implements `DelegateSchemaFeed`."""

    def __init__(
        self, store: StoreAccess, descriptors: DescriptorStore, leases: LeaseManager | None = None
    ) -> None:
        self._store = store
        self._descriptors = descriptors
        self._leases = leases
        self._tables: dict[int, _Table] = {}
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: KVError | None = None

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        for table_id in table_ids:
            descriptor = await self._read_at(table_id, at)
            if descriptor is None or descriptor.dropped:
                raise TableUnknown(table_id, at)
            self._tables[table_id] = _Table(TableHistory(descriptor, at))
        self._task = asyncio.create_task(self._run(), name="polling schema feed")

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        history = self._tables[table_id].history
        if at_or_before <= history.frontier:
            return history.peek(at_or_before)
        if self._failure is not None:
            raise self._failure
        return None

    async def peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        while (answer := self.try_peek(table_id, at_or_before)) is None:
            await self.changed()
        return answer

    def try_pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        if self.try_peek(table_id, at_or_before) is None:
            return None
        return self._tables[table_id].history.pop(at_or_before)

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        await self.peek(table_id, at_or_before)
        return self._tables[table_id].history.pop(at_or_before)

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        return self._tables[table_id].history.canonical_at(at)

    def frontier(self, table_id: int) -> Timestamp:
        return self._tables[table_id].history.frontier

    def pending(self, table_id: int) -> bool:
        return self._tables[table_id].history.pending

    def pause(self, table_id: int) -> None:
        table = self._tables[table_id]
        table.active = False
        table.turn += 1
        self._announce()

    def resume(self, table_id: int, at: Timestamp) -> None:
        table = self._tables[table_id]
        if at > table.history.frontier:
            table.rejoining = True
            table.turn += 1
        table.history.vouch(at)
        if not table.active:
            table.active = True
            self._wanted.set()
        self._announce()

    async def changed(self) -> None:
        await self._changed.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            self._wanted.clear()
            try:
                await self._poll()
            except (LockTimeout, ReadConflict, RetryableTransaction):
                pass  # somebody writes a descriptor just now: the next poll sees what became of it
            except KVError as error:
                self._failure = error
                self._announce()
                return
            await self._rest()

    async def _rest(self) -> None:
        """Until the next poll: an interval, or as long as every table is paused.

        A table that is resumed is polled at once: rows wait for it already.
        """
        if not any(table.active for table in self._tables.values()):
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
        self._refresh_leases(published)

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

    def _refresh_leases(self, published: dict[int, list[TableDescriptor]]) -> None:
        """No later statement of this node is to be planned with an older version."""
        if self._leases is None:
            return
        for id, versions in published.items():
            if versions:
                self._leases.note_version(id, versions[-1].version)

    async def _read_at(self, table_id: int, at: Timestamp) -> TableDescriptor | None:
        descriptor = await self._descriptors.read_at(table_id, at)
        return descriptor if isinstance(descriptor, TableDescriptor) else None

    def _announce(self) -> None:
        """Wakes whoever waits for a frontier."""
        self._changed.set()
        self._changed = asyncio.Event()
