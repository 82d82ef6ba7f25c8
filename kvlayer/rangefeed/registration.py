"""One subscription to a range: catching up, then live."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from ..clock import Timestamp, format_timestamp
from ..errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded
from ..events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ..settings import declare_int
from ..span import Span
from .catch_up import CatchUpScan
from .doorbell import Doorbell
from .host import RangeFeedHost
from .live_entry import LiveEntry, previous_of

BUFFER_BYTES = declare_int(
    "kv.rangefeed.buffer_bytes",
    64 * 1024 * 1024,
    "bytes of log entries that wait for a range feed's consumer before it is cut off",
)

BUFFER_ENTRIES_MAX = 65_536
"""Entries that wait for a consumer. A store that commits single rows at full speed makes this many
in some seconds; an entry costs about a kilobyte of objects beside its bytes."""


class FeedState(Enum):
    """Where a feed is. It only ever moves down this list."""

    CATCHING_UP = "catching up"  # entries wait while the scan is read
    STEADY = "steady"  # the scan has ended, and entries pass as they come
    ENDED = "ended"  # everything was delivered, or nobody wants it any more


class RangeFeed:
    """The events of a span of one range from a timestamp (exclusive).

    The engine snapshot and the registration are taken in one step, at log index N. What entries up
    to N committed comes from the snapshot, what later ones commit comes from the entries; so
    nothing falls between and nothing comes twice. The scan begins once N is durable.

    Everything live passes through one buffer of entries and checkpoints. An entry is referred to,
    not copied, and all feeds of the range share its decoding. A checkpoint replaces the one before
    it when no entry stands between, so there is at most one more of them than there are entries.

    The consumer pulls: a catch-up slice is read when the consumer asks for it, so a slow consumer
    holds nothing but its snapshot and its buffer. One that lets the buffer overflow is cut off: no
    more is accepted, but the scan goes on to its end, then what was buffered is delivered, then
    the checkpoint as of the cut, and then `RangeFeedEnded(SLOW_CONSUMER)` is raised. So a consumer
    that starts again reads only what was committed above that checkpoint: overflow makes progress
    whenever the range resolves anything. (A span feed slows down when it does not.)
    """

    def __init__(
        self,
        host: RangeFeedHost,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool,
        index: int,
        scan: CatchUpScan | None,
        unregister: Callable[[RangeFeed], None],
    ) -> None:
        self.span = span
        self.start_after = start_after
        self.index = index
        self._host = host
        self._with_previous = with_previous
        self._scan = scan
        self._unregister = unregister
        self._state = FeedState.CATCHING_UP
        self._end: RangeFeedEnded | None = None
        self._buffer: deque[LiveEntry | Timestamp] = deque()
        self._buffered_bytes = 0
        self._buffered_entries = 0
        self._bytes_max = host.settings.get(BUFFER_BYTES)
        self._noted = Timestamp(0)  # the last checkpoint that was buffered
        # Rung when there is something to poll. A span feed hangs its own here.
        self.bell = Doorbell()

    @property
    def state(self) -> FeedState:
        return self._state

    @property
    def buffered_bytes(self) -> int:
        return self._buffered_bytes

    @property
    def scanning(self) -> bool:
        """Whether `poll` may read a slice of a scan, which takes about a millisecond."""
        return self._scan is not None

    # What the processor calls, in log order.

    def offer(self, entry: LiveEntry, resolved: Timestamp) -> None:
        """An entry was delivered. `resolved` is what held before it."""
        if entry.index <= self.index or not entry.concerns(self.span, self.start_after):
            return
        full = (
            self._buffered_entries >= BUFFER_ENTRIES_MAX
            or self._buffered_bytes + entry.byte_count > self._bytes_max
        )
        if full and self._buffered_entries:
            self._host.metrics.add("rangefeed_slow_consumers_total")
            detail = f"{self._buffered_bytes} bytes in {self._buffered_entries} entries waited"
            self.cut(resolved, RangeFeedEnded(FeedEnd.SLOW_CONSUMER, detail))
            self._unregister(self)
            return
        self._buffer.append(entry)
        self._buffered_bytes += entry.byte_count
        self._buffered_entries += 1
        self.bell.ring()

    def resolve(self, resolved: Timestamp) -> None:
        """Everything at or below `resolved` was offered."""
        if resolved <= self._noted:
            return
        self._noted = resolved
        buffer = self._buffer
        if buffer and not isinstance(buffer[-1], LiveEntry):
            buffer[-1] = resolved
        else:
            buffer.append(resolved)
        self.bell.ring()

    def cut(self, resolved: Timestamp, end: RangeFeedEnded) -> None:
        """Nothing more will be offered. `resolved` is what holds now."""
        assert self._end is None, self._end
        self.resolve(resolved)
        self._end = end
        self.bell.ring()

    def abandon(self, resolved: Timestamp, end: RangeFeedEnded) -> None:
        """As `cut`, but the engine will be gone: what still needs it is not delivered."""
        if self._state is FeedState.CATCHING_UP or self._with_previous:
            self._free_scan()
            self._drop_buffer()
            self._state = FeedState.STEADY
            self._end = end
            self.bell.ring()
        else:
            self.cut(resolved, end)

    # What the consumer calls.

    async def next(self) -> list[Event]:
        """Waits until there is something, and returns all there is (a slice, of the scan).

        Raises RangeFeedEnded, or BatchTimestampBeforeGC, after everything was delivered. If it is
        cancelled, nothing is lost.
        """
        if self._scan is not None:
            await asyncio.sleep(0)
        while not (events := self.poll()):
            await self.bell.wait()
        return events

    def poll(self) -> list[Event]:
        """As `next`, without waiting: empty when there is nothing."""
        self.bell.clear()
        if self._state is FeedState.CATCHING_UP:
            return self._catch_up()
        events = self._take()
        if not events and self._end is not None:
            self._state = FeedState.ENDED
            raise self._end
        return events

    def close(self) -> None:
        """Nobody wants the feed any more. Closing twice is once."""
        if self._state is FeedState.ENDED:
            return
        if self._end is None:
            self._unregister(self)
            self._end = RangeFeedEnded(FeedEnd.RANGEFEED_CLOSED, "by its consumer")
        self._state = FeedState.ENDED
        self._free_scan()
        self._drop_buffer()
        self.bell.ring()

    def __aiter__(self) -> RangeFeed:
        return self

    async def __anext__(self) -> list[Event]:
        return await self.next()

    def _catch_up(self) -> list[Event]:
        if self._host.durable_index < self.index:
            return []
        if self._scan is not None:
            batch = self._scan.next_slice()
            if batch is not None:
                return [batch]
            self._free_scan()
        self._check_threshold()
        self._state = FeedState.STEADY
        return [SteadyState(self.span), *self._take()]

    def _check_threshold(self) -> None:
        threshold = self._host.gc_threshold
        if self.start_after < threshold:
            self.close()
            raise BatchTimestampBeforeGC(self.start_after, threshold)

    def _check_previous(self, timestamps: Sequence[Timestamp]) -> None:
        """What a version replaced is kept only while the threshold is below the version."""
        threshold, oldest = self._host.gc_threshold, min(timestamps)
        if oldest <= threshold:
            self.close()
            raise BatchTimestampBeforeGC(oldest, threshold)

    def _take(self) -> list[Event]:
        events: list[Event] = []
        for item in self._buffer:
            if isinstance(item, LiveEntry):
                events.extend(self._events_of(item))
            else:
                events.append(Checkpoint((self.span,), item))
        self._drop_buffer()
        return events

    def _drop_buffer(self) -> None:
        self._buffer.clear()
        self._buffered_bytes = self._buffered_entries = 0

    def _events_of(self, entry: LiveEntry) -> Iterator[ValueBatch | DeleteRange]:
        for event in entry.events(self.span, self.start_after):
            if self._with_previous and isinstance(event, ValueBatch):
                self._check_previous(event.timestamps)
                previous = previous_of(self._host.engine, event.keys, event.timestamps)
                yield replace(event, previous=previous)
            else:
                yield event

    def _free_scan(self) -> None:
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    def __repr__(self) -> str:
        return (
            f"<RangeFeed {self.span} after {format_timestamp(self.start_after)} "
            f"{self._state.value} at index {self.index}, {self._buffered_entries} entries wait>"
        )
