"""The rights that a node goes by: in memory, and as new as the store's.

Statements ask `current`, which is a value that never changes: another takes its place when a row of
the rights' tables changes. On the node that changed rights, `catch_up` makes sure of that before
the statement returns, so a REVOKE that has returned holds for the next statement of every session
there; other nodes hear of it through their range feeds, some milliseconds later.
"""

from __future__ import annotations

import asyncio

from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import ZERO, Timestamp
from ..kvlayer.errors import BatchTimestampBeforeGC, KVError, StoreClosed
from ..kvlayer.events import ValueBatch
from .rights import Rights, read_rights
from .system_tables import PRIVILEGES, ROLE_MEMBERS

RESTART_SECONDS = 0.1
"""Between two feeds of rights, where the first one ended."""

_SPANS = (PRIVILEGES.primary_span, ROLE_MEMBERS.primary_span)


class RightsWatcher:
    """Follows the store's rights. Made for one node; `start` before it is asked."""

    def __init__(self, store: StoreAccess) -> None:
        self.current = Rights({}, {})
        self._store = store
        self._read_at = ZERO
        self._reading = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reads all rights, and begins to follow them."""
        assert self._task is None, "rights are followed already"
        after = await self._store.now()
        await self.catch_up(after)
        self._task = asyncio.create_task(self._follow(after), name="rights watcher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def catch_up(self, at: Timestamp) -> None:
        """Returns when `current` is as of `at` or later."""
        async with self._reading:
            if self._read_at >= at:
                return
            now = await self._store.now()
            self.current = await read_rights(self._store.snapshot(now))
            self._read_at = now

    async def _follow(self, after: Timestamp) -> None:
        while True:
            try:
                await self.catch_up(await self._store.now())
                feed = self._store.span_feed(list(_SPANS), after)
                try:
                    while True:
                        for event in await feed.next():
                            if isinstance(event, ValueBatch):
                                await self.catch_up(max(event.timestamps))
                        after = max(after, feed.frontier.low_water)
                finally:
                    feed.close()
            except StoreClosed:
                return
            except BatchTimestampBeforeGC:
                after = self._store.clock.last
            except KVError:
                self._store.metrics.add("rights_watcher_restarts_total")
            await asyncio.sleep(RESTART_SECONDS)
