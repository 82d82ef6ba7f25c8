"""Sends rows again through a feed that runs, as they are now."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess
from ..pipeline.live import LiveFeed, NotTaken
from ..targets import Versions
from .difference import Difference

KEYS_AT_ONCE = 500
"""Keys that are read and sent together: a few milliseconds."""

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
            await _send(store, descriptors, live, table_id, keys[first : first + KEYS_AT_ONCE])


async def _send(
    store: StoreAccess,
    descriptors: DescriptorStore,
    live: LiveFeed,
    table_id: int,
    keys: list[bytes],
) -> None:
    for _ in range(ATTEMPTS):
        at = await store.now()
        table = await descriptors.read_at(table_id, at)
        if isinstance(table, TableDescriptor):
            reader = store.snapshot(at)
            values = [await reader.get(key) for key in keys]
            versions = Versions(keys, values, [at] * len(keys))
            sent = None if live.send_again is None else live.send_again(versions, table)
            if sent is not None:
                await live.wait_until(at)
                if sent.sunk:
                    return
        await asyncio.sleep(AGAIN_SECONDS)
    raise NotTaken
