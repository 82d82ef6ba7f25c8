"""Sends changes again that a log lacks, with the timestamps that they had.

A log knows a change by its key and its timestamp, in whatever order changes come: so what it lacks
may be sent again at any time, and is there once. A mirror beside the log is not told: it has these
rows, or later ones. What a log has, the feed never changes: a row that was changed or added by hand
stays until somebody removes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ..contract.changes import ChangeBatch, ChangeKind, StageTimes
from ..pipeline.live import LiveFeed
from ..sinks.mirror.conform import KEY_PREFIX_LENGTH
from .difference import LogDifference
from .repair import KEYS_AT_ONCE, deliver
from .table_history import TableHistory, for_log


async def repair_log(
    store: StoreAccess, live: LiveFeed, history: TableHistory, lacking: Sequence[LogDifference]
) -> None:
    """Returns when the changes are durable in the log. Raises NotTaken, FeedStopped and
    BatchTimestampBeforeGC."""
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
            await deliver(store, live, partial(_offer, live, batch))


def _moment(difference: LogDifference) -> tuple[Timestamp, str]:
    assert difference.lacks is not None, difference
    return difference.at, difference.lacks.value


async def _offer(live: LiveFeed, batch: ChangeBatch, at: Timestamp) -> StageTimes | None:
    sent = for_log(batch)
    taken = live.send_to_log is not None and live.send_to_log(sent)
    return sent.stages if taken else None
