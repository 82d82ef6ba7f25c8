"""The common part of the schema feeds that read `system.descriptor` themselves.

They differ in how they learn what was published: one reads every interval, the other follows a
range feed. Both keep a `TableHistory` for each table, are run by a leasing feed only while it must,
and wake who waits whenever a frontier moves.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable

from ..catalog.descriptors.descriptor import TableDescriptor
from ..catalog.leases import LeaseManager
from ..catalog.store.descriptor_store import DescriptorStore
from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import Timestamp
from ..kvlayer.errors import KVError
from .feed import SchemaAnswer, TableUnknown
from .table_history import TableHistory


class WatchedTable:
    """A watched table.

    `turn` rises whenever a read under way is no longer what is wanted. While `rejoining`, somebody
    else has proven the history up to its frontier, and which lock change it ends in is still to be
    read.
    """

    __slots__ = ("active", "covered", "history", "rejoining", "turn")

    def __init__(self, history: TableHistory) -> None:
        self.history = history
        self.active = True
        self.covered = False
        """Whether the open range feed tells of this table; for the range feed only."""
        self.rejoining = False
        self.turn = 0


class ProvingSchemaFeed(ABC):
    """Implements `DelegateSchemaFeed`, but for how the proof is made: `_run`, a task.

    A subclass sees in `_wanted` that there may be something else to do: a table was resumed, or
    none is active any more.
    """

    def __init__(
        self, store: StoreAccess, descriptors: DescriptorStore, leases: LeaseManager | None = None
    ) -> None:
        self._store = store
        self._descriptors = descriptors
        self._leases = leases
        self._tables: dict[int, WatchedTable] = {}
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: KVError | None = None

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        for table_id in table_ids:
            descriptor = await self._read_at(table_id, at)
            if descriptor is None or descriptor.dropped:
                raise TableUnknown(table_id, at)
            self._tables[table_id] = WatchedTable(TableHistory(descriptor, at))
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        history = self._history(table_id)
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
        return self._history(table_id).pop(at_or_before)

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        await self.peek(table_id, at_or_before)
        return self._history(table_id).pop(at_or_before)

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        return self._history(table_id).canonical_at(at)

    def frontier(self, table_id: int) -> Timestamp:
        return self._history(table_id).frontier

    def pending(self, table_id: int) -> bool:
        return self._history(table_id).pending

    def pause(self, table_id: int) -> None:
        self._history(table_id)
        table = self._tables[table_id]
        table.active = table.covered = False
        table.turn += 1
        if not self._any_active():
            self._wanted.set()
        self._announce()

    def resume(self, table_id: int, at: Timestamp) -> None:
        history = self._history(table_id)
        table = self._tables[table_id]
        if at > history.frontier:
            table.rejoining = True
            table.covered = False
            table.turn += 1
        history.vouch(at)
        table.active = True
        if not table.covered:
            self._wanted.set()
        self._announce()

    async def changed(self) -> None:
        await self._changed.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    # For the subclass

    @abstractmethod
    async def _run(self) -> None:
        """Proves active tables for ever. Ends only after `_fail`."""

    def _history(self, table_id: int) -> TableHistory:
        """The table's history, with its frontier where it is by now."""
        return self._tables[table_id].history

    def _any_active(self) -> bool:
        return any(table.active for table in self._tables.values())

    def _fail(self, error: KVError) -> None:
        """Ends all proofs: whoever waits for one is told why."""
        self._failure = error
        self._announce()

    def _announce(self) -> None:
        """Wakes whoever waits for a frontier."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _refresh_leases(self, published: Iterable[TableDescriptor]) -> None:
        """No later statement of this node is to be planned with an older version."""
        if self._leases is not None:
            for descriptor in published:
                self._leases.note_version(descriptor.id, descriptor.version)

    async def _read_at(self, table_id: int, at: Timestamp) -> TableDescriptor | None:
        descriptor = await self._descriptors.read_at(table_id, at)
        return descriptor if isinstance(descriptor, TableDescriptor) else None
