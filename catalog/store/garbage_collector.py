"""Garbage collection: how long old versions of rows are kept, and who removes them.

A table keeps its old versions for `gc.ttlseconds`, or for `kv.gc.ttl` where it says nothing, so
that `AS OF SYSTEM TIME` and feeds can go that far back. Each table is collected by itself; what
belongs to none (descriptors and names among it) is kept as long as the longest-lived of them, for
whoever reads a table as of then needs the descriptors of then. What a changefeed has not read yet
is protected, however old it is. A raw keyspace keeps what feeds may start from
(`kv.raw.start_window`), and of its entries those are removed that have ended by themselves.

    now 1000           ttl     threshold
    t                  60      940
    long_lived         600     400
    system tables              400
    dropped at 900     60      840 until 960, and then all of it goes, its descriptor last
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...kvlayer.clock import Timestamp, duration
from ...kvlayer.errors import KVError, StoreClosed
from ...kvlayer.keys import ALL_KEYS
from ...kvlayer.protected_timestamp import low_water
from ...kvlayer.raw import START_WINDOW, dead_at
from ...kvlayer.replication.replica import End, Look
from ...kvlayer.settings import declare_duration
from ...kvlayer.span import Span, subtract
from ...kvlayer.store import Store
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.storage_parameters import GC_TTL_SECONDS
from ..descriptors.system_tables import FIRST_USER_ID
from .descriptor_store import DescriptorStore

TTL = declare_duration(
    "kv.gc.ttl", 14_400.0, "how long old versions are kept in tables without gc.ttlseconds"
)
INTERVAL = declare_duration("kv.gc.interval", 3_600.0, "how often old versions are removed")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lifetime:
    """The lifetimes of a table's old versions, and of the table once it is dropped."""

    table_id: int
    span: Span
    ttl_seconds: float
    dropped_at: Timestamp | None
    raw: bool = False

    def expired(self, now: Timestamp) -> bool:
        """Whether nobody may read the table any more, however far back."""
        if self.dropped_at is None:
            return False
        return now > self.dropped_at + duration(seconds=self.ttl_seconds)


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
        """Removes what is older than its table's time to live, and says how many versions.

        Raises StoreClosed, and other KVErrors that the next turn may not meet.
        """
        now = await self._store.now()
        tables = await self._tables(now)
        removed = 0
        for table in tables:
            if table.expired(now):
                removed += await self._purge(table)
            else:
                removed += await self._collect(table.span, now, table.ttl_seconds, raw=table.raw)
        default = self._store.settings.get(TTL)
        kept = max((table.ttl_seconds for table in tables), default=default)
        for span in subtract(ALL_KEYS, sorted(table.span for table in tables)):
            removed += await self._collect(span, now, kept)
        return removed

    async def _tables(self, at: Timestamp) -> list[_Lifetime]:
        default, window = (self._store.settings.get(each) for each in (TTL, START_WINDOW))
        return [
            _Lifetime(
                table_id=table.id,
                span=table.span,
                ttl_seconds=window
                if table.keyspace is not None
                else float(table.parameters.get(GC_TTL_SECONDS, default)),
                raw=table.keyspace is not None,
                dropped_at=(table.drop_time or table.modification_time) if table.dropped else None,
            )
            for table in await self._descriptors.all_at(at, dropped=True)
            if isinstance(table, TableDescriptor) and table.id >= FIRST_USER_ID
        ]

    async def _collect(
        self, span: Span, now: Timestamp, ttl_seconds: float, *, raw: bool = False
    ) -> int:
        threshold = Timestamp(now - duration(seconds=ttl_seconds))
        if threshold <= self._store.gc_threshold_of(span):
            return 0
        return await self._store.collect_garbage(span, threshold, dead_at=dead_at if raw else None)

    async def _purge(self, table: _Lifetime) -> int:
        """Removes every version of a dropped table whose time is over, unless it is protected; and
        then its descriptor, unless somebody holds a lease on it.

        Whether the first was done, the threshold says: until then it lies below the drop.
        """
        store, span = self._store, table.span
        assert table.dropped_at is not None, table
        if low_water(store.engine, span, store.clock.last) is not None:
            return 0
        removed = 0
        if table.raw and await store.replica(span, Look()) is not None:
            await store.replica(span, End())
        if store.gc_threshold_of(span) <= table.dropped_at:
            _, at = await store.one_phase(
                lambda evaluation: evaluation.delete_range(span, omit_from_feeds=True)
            )
            removed = await store.collect_garbage(span, at)
        if store.gc_threshold_of(span) > table.dropped_at:
            await self._descriptors.remove(table.table_id)
        return removed

    async def _run(self) -> None:
        while True:
            await self._store.settings.sleep(INTERVAL)
            try:
                await self.collect()
            except StoreClosed:
                return
            except KVError:
                self._store.metrics.add("gc_failures_total")
