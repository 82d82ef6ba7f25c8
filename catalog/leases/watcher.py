"""The watcher: how a node hears of new versions of descriptors.

It follows a span feed on `system.descriptor`, and is itself watched: DDL waits for leases to be
let go, so a stream of notices that stands still would stop every schema change. A feed that gives
no checkpoint for `catalog.leases.watchdog` is replaced by another from its last checkpoint, and
whoever relies on the notices is told to read everything anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...kvlayer.access import Feed, StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import (
    BatchTimestampBeforeGC,
    RangeFeedEnded,
    RetryableTransaction,
    StoreClosed,
)
from ...kvlayer.events import Checkpoint, Event, ValueBatch
from ...kvlayer.settings import declare_duration
from ..descriptors.system_tables import DESCRIPTOR
from ..store.descriptor_store import decode_stored

WATCHDOG = declare_duration(
    "catalog.leases.watchdog",
    10.0,
    "how long notices of new descriptor versions may stand still before all leases are refreshed",
)

CHECKPOINTS_MIN = 10
"""Within the watchdog's time, of a feed that does not stand still."""

RESTART_SECONDS = 0.1
"""Between the end of one feed and the start of the next."""


class DescriptorWatcher:
    """Calls `on_version` with every descriptor version published above `after`.

    `on_gap` is called when notices may have been missed, or have stood still.
    """

    def __init__(
        self,
        store: StoreAccess,
        *,
        after: Timestamp,
        on_version: Callable[[int, int], None],
        on_gap: Callable[[], None],
    ) -> None:
        self._store = store
        self._after = after
        self._on_version = on_version
        self._on_gap = on_gap
        self._task = asyncio.create_task(self._run(), name="descriptor watcher")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            try:
                await self._follow()
            except StoreClosed:
                return
            except BatchTimestampBeforeGC:
                self._after = self._store.clock.last
            except (RangeFeedEnded, RetryableTransaction):
                pass  # the next one starts where this one was
            self._store.metrics.add("lease_watcher_restarts_total")
            self._on_gap()
            await asyncio.sleep(RESTART_SECONDS)

    async def _follow(self) -> None:
        """Follows one feed until it ends or stands still."""
        loop = asyncio.get_running_loop()
        watchdog = self._store.settings.get(WATCHDOG)
        stalled_at = loop.time() + watchdog
        feed = self._store.span_feed(
            [DESCRIPTOR.primary_span], self._after, checkpoint_seconds=watchdog / CHECKPOINTS_MIN
        )
        try:
            while (left := stalled_at - loop.time()) > 0:
                events = await self._next(feed, left)
                for event in events:
                    self._take(event)
                # Not the checkpoints' own times: one may be of a part of the descriptors only.
                self._after = max(self._after, feed.frontier.low_water)
                if any(isinstance(event, Checkpoint) for event in events):
                    stalled_at = loop.time() + self._store.settings.get(WATCHDOG)
        finally:
            feed.close()

    async def _next(self, feed: Feed, seconds: float) -> list[Event]:
        """The events that the feed gives within that time."""
        try:
            async with asyncio.timeout(seconds):
                return await feed.next()
        except TimeoutError:
            return []

    def _take(self, event: Event) -> None:
        match event:
            case ValueBatch(keys=keys, values=values, timestamps=timestamps):
                for key, body, at in zip(keys, values, timestamps, strict=True):
                    if body is not None:
                        descriptor = decode_stored(key, body, at)
                        self._on_version(descriptor.id, descriptor.version)
            case _:
                pass
