"""The lag of a feed, by where it arises: in the store, in the feed, or behind its sink.

    acknowledged      emitted          told             now
    |-----network-----|-----capture----|-----store------|
                      ^ the sink has   ^ the range feed has resolved up to here

The store's part ends where its range feed has told the feed what is resolved: closing, syncing and
delivery. The capture's part is what the feed has been told and not handed to its sink, and with no
request under way also what is emitted and waits for its checkpoint. The network's part is what was
sent and is not acknowledged: the way there and back, and the target's own work.
"""

from __future__ import annotations

import msgspec

from ...kvlayer.clock import Timestamp, seconds_between


class LagSplit(msgspec.Struct, array_like=True, frozen=True):
    """Seconds of each part; their sum is the time between what is acknowledged and now."""

    store: float
    capture: float
    network: float


def split_lag(
    *, acknowledged: Timestamp, emitted: Timestamp, told: Timestamp, now: Timestamp, sending: bool
) -> LagSplit:
    """The lag as of `now`. `sending` says that the sink has something to acknowledge."""
    emitted = max(emitted, acknowledged)
    told = max(told, emitted)
    unacknowledged = seconds_between(acknowledged, emitted)
    return LagSplit(
        store=max(0.0, seconds_between(told, now)),
        capture=seconds_between(emitted, told) + (0.0 if sending else unacknowledged),
        network=unacknowledged if sending else 0.0,
    )
