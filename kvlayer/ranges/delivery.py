"""Delivery: durable entries to the ranges' feeds in log order, and the tick that closes for all."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from ..clock import ZERO, Timestamp
from ..command import Command
from ..errors import ClockStopped, FeedEnd
from ..rangefeed import TICK_INTERVAL, DurableEntry, TickedFeed
from .commit_run import CommitRun, raw_commit
from .parts import StoreParts
from .range import Range

PERSIST_TICKS = 100
"""Ticks after which each range with feeds may write down what it has resolved: about a second."""

PartOf = tuple[Range, Command, int]
"""A range, its part of an entry as a command of its own, and the bytes it counts for."""


@dataclass(frozen=True, slots=True)
class Ending:
    """With an entry, a range ends: its feeds are cut off for this reason."""

    range: Range
    reason: FeedEnd


_Appended = tuple[int, tuple[PartOf, ...], int, int, tuple[Ending, ...]]
"""The entry's index, its parts, when its commit was called and when it was appended (monotonic ns,
zero where nobody measures it), and the ranges that it ends."""


class Delivery:
    """Hands each entry to the ranges that it changed, in the moment in which it becomes durable.

    An entry that splits or merges ranges ends the feeds of the old ones when its turn comes. What
    lies behind it in the log concerns the new ranges; feeds of those may be registered from the
    step of the entry on, and begin above it.

    The tick closes a timestamp once for the whole store. It says so to each *busy* range alone:
    one that has unresolved intents, feeds that nobody gathers, or something else to do at a tick.
    All others have resolved just what is closed, and every span feed is told so once, for all its
    pieces in such ranges together. A closing at a tick takes effect everywhere at once: ticks are
    steps of their own, and between steps every durable entry has been consumed.
    """

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._waiting: deque[_Appended] = deque()
        self._active: dict[Range, None] = {}  # those with feeds
        self._busy: dict[Range, None] = {}
        self._awaiting: dict[Range, None] = {}  # those that may go on when more is durable
        self._tick_count = 0
        self._closed = ZERO  # the last closing of a tick
        self._span_feeds: dict[TickedFeed, None] = {}
        self._ticker: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def feed_count(self) -> int:
        return sum(found.feeds.feed_count for found in self._active)

    def appended(
        self,
        index: int,
        parts: tuple[PartOf, ...],
        *,
        commit_called_ns: int,
        endings: tuple[Ending, ...] = (),
    ) -> None:
        """An entry was appended. Ranges that it ends have no part in it."""
        appended_ns = self._parts.clock.wall.monotonic_ns() if commit_called_ns else 0
        self._waiting.append((index, parts, commit_called_ns, appended_ns, endings))

    def entries_durable(self, durable_index: int) -> None:
        """Consumes what has become durable."""
        durable_ns = self._parts.clock.wall.monotonic_ns()
        waiting, active = self._waiting, self._active
        touched: dict[Range, int] = {}  # and the last entry consumed
        while waiting and waiting[0][0] <= durable_index:
            index, parts, called_ns, appended_ns, endings = waiting.popleft()
            for found, command, byte_count in parts:
                if found in active:
                    entry = DurableEntry(
                        index, command, byte_count, called_ns, appended_ns, durable_ns
                    )
                    more = waiting and waiting[0][0] <= durable_index
                    if more and len(parts) == 1 and found.feeds.takes_runs_above(index - 1):
                        entry = self._run_from(found, entry, durable_index)
                    found.feeds.close_at(self._closed)
                    found.feeds.consume(entry)
                    touched[found] = entry.index
            for ending in endings:
                ending.range.feeds.close_at(self._closed)
                ending.range.feeds.close(ending.reason)
                touched.pop(ending.range, None)
        if self._awaiting:
            touched = {**dict.fromkeys(self._awaiting, 0), **touched}
        for found, last in touched.items():
            if last < durable_index:
                found.feeds.delivered(durable_index, durable_ns)
            if found.feeds.awaiting:
                self._awaiting[found] = None
            elif self._awaiting:
                self._awaiting.pop(found, None)

    def _run_from(self, found: Range, first: DurableEntry, durable_index: int) -> DurableEntry:
        """The entry, as one with the durable ones behind it that make a run with it."""
        op = raw_commit(first.command)
        if op is None:
            return first
        waiting, run = self._waiting, CommitRun(first, op)
        while waiting and waiting[0][0] <= durable_index:
            index, parts, _, _, _ = waiting[0]
            if len(parts) != 1 or parts[0][0] is not found:
                break
            _, command, byte_count = parts[0]
            op = raw_commit(command)
            if op is None:
                break
            run.add(index, op, byte_count)
            waiting.popleft()
        return run.entry()

    def feeds_changed(self, changed: Range) -> None:
        """Looks again whether the range has feeds, and whether it is busy."""
        feeds = changed.feeds
        if feeds.feed_count:
            if changed not in self._active:
                self._active[changed] = None
                self._start_ticker()
        else:
            self._active.pop(changed, None)
        if feeds.busy:
            self._busy[changed] = None
        else:
            self._busy.pop(changed, None)
        if feeds.awaiting:
            self._awaiting[changed] = None
        else:
            self._awaiting.pop(changed, None)

    def gather(self, feed: TickedFeed) -> None:
        """From now on the span feed is told of closings for all its quiet pieces together."""
        self._span_feeds[feed] = None
        self._start_ticker()

    def release(self, feed: TickedFeed) -> None:
        """The span feed is closed. Releasing twice is once."""
        self._span_feeds.pop(feed, None)

    def stop(self) -> None:
        """The store ends: so do all feeds."""
        self._stopped = True
        for found in list(self._active):
            found.feeds.close(FeedEnd.RANGEFEED_CLOSED)
        if self._ticker is not None:
            self._ticker.cancel()

    def tick(self) -> None:
        """The work of every `TICK_INTERVAL` while there are feeds."""
        self._tick_count += 1
        if self._tick_count % PERSIST_TICKS == 0:
            for found in list(self._active):
                found.feeds.close_at(self._closed)
                found.feeds.persist()
        for found in list(self._busy):
            found.feeds.delivered(self._parts.closed.durable_index, None)
            found.feeds.tick()
            self.feeds_changed(found)
        if not self._span_feeds:
            return
        closed = self._close()
        if closed is None:
            return
        self._closed = closed
        now_ns = self._parts.clock.wall.monotonic_ns()
        interval_ns = round(self._parts.settings.get(TICK_INTERVAL) * 1e9)
        for feed in list(self._span_feeds):
            feed.tick(closed, now_ns, interval_ns)

    def _close(self) -> Timestamp | None:
        try:
            return self._parts.closed.close()
        except ClockStopped:
            # The clock's bound cannot be saved. Rows still pass; whoever draws a timestamp to
            # write with is told, and so need not be told by a feed.
            return None

    def _start_ticker(self) -> None:
        if not self._stopped and (self._ticker is None or self._ticker.done()):
            self._ticker = asyncio.get_running_loop().create_task(self._tick())

    async def _tick(self) -> None:
        while self._active or self._span_feeds:
            await asyncio.sleep(self._parts.settings.get(TICK_INTERVAL))
            if not self._stopped:
                self.tick()

    def __repr__(self) -> str:
        return (
            f"<Delivery {len(self._waiting)} entries wait, {len(self._active)} ranges with feeds, "
            f"{len(self._busy)} of them busy>"
        )
