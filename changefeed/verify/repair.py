"""Sends rows again through a feed that runs, as they are now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import groupby

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ..contract.changes import StageTimes
from ..pipeline.live import LiveFeed, NotTaken
from ..targets import Versions
from .difference import Difference

KEYS_AT_ONCE = 500
"""Keys that are read and sent together: a few milliseconds."""

Offer = Callable[[Timestamp], Awaitable[StageTimes | None]]
"""Sends rows through a feed, given a timestamp drawn just before. Returns their stages, or None
where the feed takes none now."""

ATTEMPTS = 50
AGAIN_SECONDS = 0.1
"""A feed that is at a schema change takes none."""


async def repair(
    store: StoreAccess,
    descriptors: DescriptorStore,
    live: LiveFeed,
    differences: Sequence[Difference],
) -> None:
    """Returns when the rows are durable in the sink, each as it was at some time since the call.

    They are stamped with the time at which they were read, and go through the feed's own writer: so
    later changes of the same keys win, whatever comes first. Raises NotTaken and FeedStopped.
    """
    ordered = sorted(differences, key=lambda each: each.table.id)
    for table_id, group in groupby(ordered, key=lambda each: each.table.id):
        keys = [each.key for each in group]
        for first in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[first : first + KEYS_AT_ONCE]
            await deliver(store, live, partial(_offer, store, descriptors, live, table_id, part))


async def deliver(store: StoreAccess, live: LiveFeed, offer: Offer) -> None:
    """Offers rows to a feed until they are durable in its sink: an attempt of the feed that ends
    takes what it was sent with it. Raises NotTaken and FeedStopped."""
    for _ in range(ATTEMPTS):
        at = await store.now()
        sent = await offer(at)
        if sent is not None:
            await live.wait_until(at)
            if sent.sunk:
                return
        await asyncio.sleep(AGAIN_SECONDS)
    raise NotTaken


async def _offer(
    store: StoreAccess,
    descriptors: DescriptorStore,
    live: LiveFeed,
    table_id: int,
    keys: list[bytes],
    at: Timestamp,
) -> StageTimes | None:
    table = await descriptors.read_at(table_id, at)
    if not isinstance(table, TableDescriptor):
        return None
    reader = store.snapshot(at)
    values = [await reader.get(key) for key in keys]
    versions = Versions(keys, values, [at] * len(keys))
    return None if live.send_again is None else live.send_again(versions, table)
