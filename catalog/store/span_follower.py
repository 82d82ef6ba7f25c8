"""Hearing of every change of a system table, for as long as the store is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import BatchTimestampBeforeGC, KVError, StoreClosed
from ...kvlayer.events import ValueBatch
from ...kvlayer.span import Span

CHECKPOINT_SECONDS = 1.0
"""Checkpoints only say from where a feed that ends is gone on with."""

RESTART_SECONDS = 0.1
"""Between two feeds, where the first one ended."""


async def follow_spans(
    store: StoreAccess,
    spans: Sequence[Span],
    after: Timestamp,
    *,
    refresh: Callable[[], Awaitable[None]],
    take: Callable[[ValueBatch], Awaitable[None]],
    restarts: str,
) -> None:
    """Gives `take` everything that is written to the spans above `after`; returns when the store is
    closed.

    A feed that ends is followed by another, from where it had come. `refresh` comes before each: it
    reads what is there, for where history was collected meanwhile the next feed cannot tell it.
    `restarts` is the metric that counts them.
    """
    while True:
        try:
            await refresh()
            feed = store.span_feed(list(spans), after, checkpoint_seconds=CHECKPOINT_SECONDS)
            try:
                while True:
                    for event in await feed.next():
                        if isinstance(event, ValueBatch):
                            await take(event)
                    after = max(after, feed.frontier.low_water)
            finally:
                feed.close()
        except StoreClosed:
            return
        except BatchTimestampBeforeGC:
            after = store.clock.last
        except KVError:
            store.metrics.add(restarts)
        await asyncio.sleep(RESTART_SECONDS)
