"""Sends rows again through a feed that runs: as they are now, or to a log as they were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeBatch, ChangeKind, StageTimes
from ..pipeline.live import LiveFeed, NotTaken
from ..sinks.mirror.conform import KEY_PREFIX_LENGTH
from ..targets import Versions
from .difference import Difference, LogDifference
from .table_history import TableHistory

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


async def repair_log(
    store: StoreAccess, live: LiveFeed, history: TableHistory, lacking: Sequence[LogDifference]
) -> None:
    """Returns when changes that a log lacks are durable in it, with the timestamps that they had.

    A log knows a change by its key and its timestamp, in whatever order changes come: so what it
    lacks may be sent again at any time, and is there once. A mirror beside the log is not told: it
    has these rows, or later ones. What a log has, the feed never changes: a row that was changed or
    added by hand stays until somebody removes it. Raises NotTaken, FeedStopped and
    BatchTimestampBeforeGC.
    """
    ordered = sorted(lacking, key=_moment)
    for (at, _), group in groupby(ordered, key=_moment):
        found = list(group)
        kind = found[0].lacks
        keys = [each.key[KEY_PREFIX_LENGTH:] for each in found if each.key is not None]
        for first in range(0, len(keys), KEYS_AT_ONCE):
            part = keys[first : first + KEYS_AT_ONCE]
            if kind is ChangeKind.LIVE:
                batch = await history.change(part, at)
            else:
                assert kind is not None, found
                batch = await history.rows_of(part, at, kind)
            assert batch is not None, (at, part)
            await deliver(store, live, partial(_offer_to_log, live, batch))


def _moment(difference: LogDifference) -> tuple[Timestamp, str]:
    assert difference.lacks is not None, difference
    return difference.at, difference.lacks.value


async def _offer_to_log(live: LiveFeed, batch: ChangeBatch, at: Timestamp) -> StageTimes | None:
    sent = replace(batch, for_log=True, stages=StageTimes())
    taken = live.send_to_log is not None and live.send_to_log(sent)
    return sent.stages if taken else None
