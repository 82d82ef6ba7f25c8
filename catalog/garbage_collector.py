"""Garbage collection: how long old versions of rows are kept, and who removes them.

A table keeps its old versions for `gc.ttlseconds`, or for `kv.gc.ttl` where it says nothing, so
that `AS OF SYSTEM TIME` and feeds can go that far back. A range has one threshold, and a store is
one range: the longest time to live among its tables counts for all of them. What a changefeed has
not read yet is protected, however old it is.
"""

from __future__ import annotations

import asyncio

from ..kvlayer.clock import Timestamp, duration
from ..kvlayer.errors import KVError, StoreClosed
from ..kvlayer.keys import ALL_KEYS
from ..kvlayer.settings import declare_duration
from ..kvlayer.store import Store
from .descriptor import TableDescriptor
from .descriptor_store import DescriptorStore
from .storage_parameters import GC_TTL_SECONDS
from .system_tables import FIRST_USER_ID

TTL = declare_duration(
    "kv.gc.ttl", 14_400.0, "how long old versions are kept in tables without gc.ttlseconds"
)
INTERVAL = declare_duration("kv.gc.interval", 3_600.0, "how often old versions are removed")


class GarbageCollector:
    """Removes old versions of a store now and then."""

    def __init__(self, store: Store, descriptors: DescriptorStore) -> None:
        self._store = store
        self._descriptors = descriptors
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        assert self._task is None, "the garbage collector is started already"
        self._task = asyncio.create_task(self._run(), name="garbage collector")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def collect(self) -> int:
        """Removes what is older than every table's time to live, and says how many versions.

        Raises StoreClosed, and other KVErrors that the next turn may not meet.
        """
        now = await self._store.now()
        threshold = Timestamp(now - duration(seconds=await self._longest_ttl(now)))
        if threshold <= self._store.gc_threshold:
            return 0
        return await self._store.collect_garbage(ALL_KEYS, threshold)

    async def _longest_ttl(self, at: Timestamp) -> float:
        """In seconds. A store without tables keeps what the setting says."""
        default = self._store.settings.get(TTL)
        lives = [
            float(table.parameters.get(GC_TTL_SECONDS, default))
            for table in await self._descriptors.all_at(at)
            if isinstance(table, TableDescriptor) and table.id >= FIRST_USER_ID
        ]
        return max(lives, default=default)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._store.settings.get(INTERVAL))
            try:
                await self.collect()
            except StoreClosed:
                return
            except KVError:
                self._store.metrics.add("gc_failures_total")
