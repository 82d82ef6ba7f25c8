"""Readers: a span feed, and the lanes that it feeds.

A pipeline has one reader for the targets that it began with, and one more for each that came to it
later or is read again: no other target's span feed is touched for that.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Protocol

from ...kvlayer.clock import ZERO, Timestamp, seconds_between
from ...kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ...kvlayer.frontier import Frontier
from .holdup import Holdup
from .lane import TableLane
from .stage_times import Stage


class EventFeed(Protocol):
    """Events of some spans, each from its own start (exclusive): `Store.span_feed_from`'s."""

    @property
    def frontier(self) -> Frontier:
        """The resolved timestamps of the spans, by the events that were handed out."""
        ...

    async def next(self) -> list[Event]: ...

    def space_checkpoints(self, seconds: float) -> None: ...

    def close(self) -> None: ...


class ReaderEnd(Protocol):
    """The interface of a pipeline to its readers."""

    def wake(self, lane: TableLane) -> bool:
        """Lets go on what may; says whether a slice was done, and others are to run."""
        ...

    def note_steady(self) -> None:
        """A span feed has brought everything that was committed before it began."""
        ...

    def note_deletion(self, lane: TableLane, event: DeleteRange) -> None:
        """A whole span of a target was deleted at once."""
        ...

    async def wait_for_room(self) -> None:
        """Returns when more may be read."""
        ...

    def now_ns(self) -> int: ...


class FeedReader:
    """Pushes what a span feed brings into lanes. What it brings of other keys is dropped."""

    def __init__(self, feed: EventFeed, lanes: Iterable[TableLane], end: ReaderEnd) -> None:
        self.feed = feed
        self._end = end
        self._lanes = sorted(lanes, key=lambda lane: lane.span)
        self._starts = [lane.span.start for lane in self._lanes]
        self.task: asyncio.Task[None] | None = None

    @property
    def lanes(self) -> tuple[TableLane, ...]:
        return tuple(self._lanes)

    def holdup(self, now_ns: int, now: Timestamp, *, full: str | None) -> Holdup | None:
        """The span of which the range feed has resolved least, since as long as it is behind.

        `full` is the setting by which the pipeline can take no more.
        """
        entries = list(self.feed.frontier.entries())
        span, resolved = min(entries, key=lambda entry: entry[1], default=(None, ZERO))
        lane = None if span is None else self._lane_of(span.start)
        if span is None or lane is None:
            return None
        behind = max(0.0, seconds_between(resolved, now))
        return Holdup(
            stage=Stage.RANGE_FEED,
            batches=0,
            since_ns=now_ns - round(behind * 1e9),
            table_id=lane.table_id,
            span=span,
            why="what may still commit" if full is None else f"room: {full}",
        )

    def remove(self, lane: TableLane) -> None:
        """The lane is fed by this reader no more; one that feeds no lane is closed."""
        self._lanes = [each for each in self._lanes if each is not lane]
        self._starts = [each.span.start for each in self._lanes]
        if not self._lanes:
            self.close()

    def close(self) -> None:
        self.stop()
        self.feed.close()

    def stop(self) -> None:
        """Takes no more events."""
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Takes what the span feed brings, until its last lane has left: which it may do in here,
        and then the feed is closed.

        It never stops for what waits at boundaries, since that may wait for what the feed has still
        to bring.
        """
        while self._lanes:
            sliced = self._take(await self.feed.next())
            await self._end.wait_for_room()
            if sliced:
                await asyncio.sleep(0)

    def _take(self, events: list[Event]) -> bool:
        """Pushes events into their lanes and lets go on what may; says whether a slice was done.

        All events are pushed before a lane advances: commits that became durable together are
        decoded together.
        """
        touched: dict[int, TableLane] = {}
        for event in events:
            match event:
                case ValueBatch():
                    lane = self._lane_of(event.keys[0])
                    if lane is not None:
                        lane.push(event)
                        touched[lane.table_id] = lane
                case Checkpoint():
                    self._push_checkpoint(event, touched)
                case SteadyState():
                    self._end.note_steady()
                case DeleteRange():
                    for lane in self.lanes:
                        if lane.span.overlaps(event.span):
                            self._end.note_deletion(lane, event)
        sliced = False
        for lane in touched.values():
            sliced = self._end.wake(lane) or sliced
        return sliced

    def _lane_of(self, key: bytes) -> TableLane | None:
        place = bisect_right(self._starts, key) - 1
        if place < 0 or key >= self._lanes[place].span.end:
            return None
        return self._lanes[place]

    def _push_checkpoint(self, checkpoint: Checkpoint, touched: dict[int, TableLane]) -> None:
        now = self._end.now_ns()
        for span in checkpoint.spans:
            first = max(0, bisect_right(self._starts, span.start) - 1)
            behind = bisect_left(self._starts, span.end)
            for lane in self._lanes[first:behind]:
                shared = lane.span.intersect(span)
                if shared is not None:
                    lane.push_checkpoint(shared, checkpoint.resolved, now_ns=now)
                    touched[lane.table_id] = lane
