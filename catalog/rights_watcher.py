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
from ..kvlayer.events import ValueBatch
from .rights import Rights, read_rights
from .span_follower import follow_spans
from .system_tables import PRIVILEGES, ROLE_MEMBERS

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
        following = follow_spans(
            self._store,
            _SPANS,
            after,
            refresh=self._refresh,
            take=self._take,
            restarts="rights_watcher_restarts_total",
        )
        self._task = asyncio.create_task(following, name="rights watcher")

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

    async def _refresh(self) -> None:
        await self.catch_up(await self._store.now())

    async def _take(self, written: ValueBatch) -> None:
        await self.catch_up(max(written.timestamps))
