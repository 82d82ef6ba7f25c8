"""A span feed that ends at a timestamp."""

from __future__ import annotations

from ...kvlayer.clock import Timestamp
from ...kvlayer.events import Checkpoint, DeleteRange, Event, ValueBatch
from ...kvlayer.frontier import Frontier
from .reader import EventFeed


class BoundedFeed:
    """Brings what a feed brings at or below `end`, and resolves no more than that.

    end 120     [a@110, b@130]        [a@110]
                resolved 150          resolved 120
    """

    def __init__(self, feed: EventFeed, end: Timestamp) -> None:
        self._feed = feed
        self._end = end

    @property
    def frontier(self) -> Frontier:
        return self._feed.frontier

    async def next(self) -> list[Event]:
        bounded = [self._bounded(event) for event in await self._feed.next()]
        return [event for event in bounded if event is not None]

    def space_checkpoints(self, seconds: float) -> None:
        self._feed.space_checkpoints(seconds)

    def close(self) -> None:
        self._feed.close()

    def _bounded(self, event: Event) -> Event | None:
        match event:
            case ValueBatch() if max(event.timestamps) > self._end:
                return _below(event, self._end)
            case Checkpoint(spans, resolved) if resolved > self._end:
                return Checkpoint(spans, self._end)
            case DeleteRange(timestamp=at) if at > self._end:
                return None
        return event


def _below(batch: ValueBatch, end: Timestamp) -> ValueBatch | None:
    """The versions at or below `end`; None where there are none."""
    places = [place for place, at in enumerate(batch.timestamps) if at <= end]
    if not places:
        return None
    previous = batch.previous
    return ValueBatch(
        keys=[batch.keys[place] for place in places],
        values=[batch.values[place] for place in places],
        timestamps=[batch.timestamps[place] for place in places],
        previous=None if previous is None else [previous[place] for place in places],
        commit_called_ns=batch.commit_called_ns,
        appended_ns=batch.appended_ns,
        durable_ns=batch.durable_ns,
    )
