"""One subscription to a range: catching up, then live."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from ..clock import Timestamp, format_timestamp
from ..errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded
from ..events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ..keys import RAW_KIND
from ..span import Span
from .backlog import Backlog
from .budget import BUFFER_BYTES, CHECKPOINT_BYTES, ENTRY_OVERHEAD_BYTES
from .catch_up import CatchUpScan
from .doorbell import Doorbell
from .feed_options import FeedOptions
from .host import RangeFeedHost
from .live_entry import LiveEntry, previous_of


class FeedState(Enum):
    """The state of a feed. It only ever moves down this list."""

    CATCHING_UP = "catching up"  # the scan is read; entries wait as positions in the log
    READING_BACK = "reading back"  # the scan has ended; what waits is read back from the log
    STEADY = "steady"  # entries pass as they come
    ENDED = "ended"  # everything was delivered, or nobody wants it any more


class RangeFeed:
    """The events of a span of one range from a timestamp (exclusive).

    The engine snapshot and the registration are taken in one step, at log index N. What entries up
    to N committed comes from the snapshot, what later ones commit comes from the entries; so
    nothing falls between and nothing comes twice. The scan begins once N is durable.

    The consumer pulls: a catch-up slice is read when the consumer asks for it, so a slow consumer
    holds nothing but its snapshot and what waits for it. Until it is steady, what waits are
    positions in the log (`Backlog`), which cost nothing to hold however long the scan takes; when
    the scan has ended they are read back. Once the feed is steady, entries pass through a buffer.
    An entry there is referred to, not copied, and all feeds of the range share its decoding. A
    checkpoint replaces the one before it when no entry stands between.

    A consumer that lets the buffer grow over `kv.rangefeed.buffer_bytes`, or meets a store whose
    feeds fill `kv.rangefeed.memory_budget`, or whose log positions would keep more of the log than
    `kv.log.retained_bytes_max`, is cut off: no more is accepted, but the scan goes on to its end,
    then what was kept is delivered, then the checkpoint as of the cut, and then
    `RangeFeedEnded(SLOW_CONSUMER)` is raised. So a consumer that starts again reads only what was
    committed above that checkpoint: overflow makes progress whenever the range resolves anything.
    (A span feed slows down when it does not.)
    """

    def __init__(
        self,
        host: RangeFeedHost,
        span: Span,
        start_after: Timestamp,
        *,
        options: FeedOptions,
        index: int,
        resolved: Timestamp,
        scan: CatchUpScan | None,
        unregister: Callable[[RangeFeed], None],
    ) -> None:
        """`index` is the last entry applied, `resolved` what the range has resolved by then."""
        self.span = span
        self.start_after = start_after
        self.options = options
        self.index = index
        self._host = host
        self._scan = scan
        self._unregister = unregister
        self._state = FeedState.CATCHING_UP
        self._end: RangeFeedEnded | None = None
        self._backlog = Backlog(host, index, resolved)
        self._buffer: deque[LiveEntry | Timestamp | SteadyState] = deque()
        self._buffered_bytes = 0
        self._buffered_entries = 0
        self._bytes_max = host.settings.get(BUFFER_BYTES)
        self._noted = resolved  # the last checkpoint that was kept
        self._pace = host.scan_pace if span.start.startswith(RAW_KIND) else None
        self._pause: asyncio.Handle | None = None  # until the next slice may be read
        # Rung when there is something to poll. A span feed hangs its own here.
        self.bell = Doorbell()
        self.gathered = False
        """Whether a span feed is told of closings for this feed and others together, so that it
        need not be told itself while it is quiet."""
        self.quiet = False
        """Whether the range has no unresolved intents: then everything closed is resolved. The
        processor sets it, and marks the bell."""
        self.touched = False
        """Whether something was kept for the consumer since the last checkpoint."""
        if scan is None and index <= host.durable_index:
            self._become_steady()

    @property
    def state(self) -> FeedState:
        return self._state

    @property
    def cut_off(self) -> bool:
        """Whether nothing more will be offered: what is buffered is the last there is."""
        return self._end is not None

    @property
    def buffered_bytes(self) -> int:
        return self._buffered_bytes

    @property
    def ticked(self) -> bool:
        """Whether the store's tick speaks for this feed, so that it needs no other checkpoint
        while nothing is kept for its consumer."""
        return self.gathered and self.quiet and self._state is FeedState.STEADY

    @property
    def scanning(self) -> bool:
        """Whether `poll` may read a slice of a scan or of the log: about a millisecond."""
        return self._scan is not None or self._state is FeedState.READING_BACK

    # What the processor calls, in log order.

    def offer(self, entry: LiveEntry, resolved: Timestamp) -> None:
        """An entry was delivered. `resolved` is what held before it."""
        if entry.index <= self.index or not entry.concerns(self.span, self.start_after):
            return
        if self._state is not FeedState.STEADY:
            if self._backlog.lost:
                self._cut_off(resolved, "its part of the log had to be deleted")
            else:
                self._backlog.note(entry.index)
            return
        size = entry.byte_count + ENTRY_OVERHEAD_BYTES
        if not self._take_room(size, force=not self._buffered_entries):
            detail = f"{self._buffered_bytes} bytes in {self._buffered_entries} entries waited"
            self._cut_off(resolved, detail)
            return
        self._buffer.append(entry)
        self._buffered_entries += 1
        self.touched = True
        self.bell.ring()

    def takes_runs_above(self, index: int) -> bool:
        """Whether an entry may stand for several above `index`: it may not while positions in the
        log wait, nor where the feed begins among them."""
        return self._state is FeedState.STEADY and self.index <= index

    def resolve(self, resolved: Timestamp) -> None:
        """Notes that all values at or below `resolved` were offered."""
        self._resolve(resolved, force=False)

    def cut(self, resolved: Timestamp, end: RangeFeedEnded) -> None:
        """Ends what is offered. `resolved` is the resolved timestamp at that end."""
        assert self._end is None, self._end
        self._resolve(resolved, force=True)
        self._end = end
        self.bell.ring()

    def abandon(self, resolved: Timestamp, end: RangeFeedEnded) -> None:
        """As `cut`, but engine and log will be gone: what still needs them is not delivered."""
        if self._state is not FeedState.STEADY or self.options.with_previous:
            self._free()
            self._state = FeedState.STEADY
            self._end = end
            self.bell.ring()
        else:
            self.cut(resolved, end)

    def _cut_off(self, resolved: Timestamp, detail: str) -> None:
        self._host.metrics.add("rangefeed_slow_consumers_total")
        self.cut(resolved, RangeFeedEnded(FeedEnd.SLOW_CONSUMER, detail))
        self._unregister(self)

    def _resolve(self, resolved: Timestamp, *, force: bool) -> None:
        if resolved <= self._noted:
            return
        buffer = self._buffer
        if self._state is not FeedState.STEADY:
            self._backlog.resolve(resolved)
        elif buffer and isinstance(buffer[-1], int):
            buffer[-1] = resolved
        elif self._take_room(CHECKPOINT_BYTES, force=force):
            buffer.append(resolved)
        else:
            return  # a later one says more, or the feed is cut off, and then gets its last
        self._noted = resolved
        self.touched = False
        self.bell.ring_resolved()

    def _take_room(self, size: int, *, force: bool) -> bool:
        budget = self._host.feed_memory
        if force:
            budget.force(size)
        elif self._buffered_bytes + size > self._bytes_max or not budget.take(size):
            return False
        self._buffered_bytes += size
        return True

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
        if self._state is FeedState.READING_BACK:
            return self._read_back()
        events = list(self._events(self._buffer))
        self._drop_buffer()
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
        self._free()
        self.bell.ring()

    def __aiter__(self) -> RangeFeed:
        return self

    async def __anext__(self) -> list[Event]:
        return await self.next()

    def _catch_up(self) -> list[Event]:
        if self._host.durable_index < self.index:
            return []
        if self._scan is not None:
            if self._paces():
                return []
            slice_events = self._scan.next_slice()
            if slice_events is not None:
                self._note_read(slice_events)
                if not slice_events and self._pause is None:  # one slice a step, shown or not
                    self._pause = asyncio.get_running_loop().call_soon(self._resume)
                return slice_events
            self._free_scan()
        self._check_threshold()
        if self._backlog:
            self._state = FeedState.READING_BACK
            return [SteadyState(self.span), *self._read_back()]
        self._become_steady()
        return self.poll()

    def _paces(self) -> bool:
        """Whether the next slice has to wait. The bell rings when it need not."""
        if self._pace is None:
            return False
        wait_ns = self._pace.wait_ns(self._host.clock.wall.monotonic_ns())
        if wait_ns and self._pause is None:
            self._host.metrics.add("rangefeed_scan_waits_total")
            self._pause = asyncio.get_running_loop().call_later(wait_ns / 1e9, self._resume)
        return wait_ns > 0

    def _resume(self) -> None:
        self._pause = None
        self.bell.ring()

    def _note_read(self, events: Sequence[Event]) -> None:
        batches = [event for event in events if isinstance(event, ValueBatch)]
        self._host.metrics.add("rangefeed_scanned_versions_total", sum(map(len, batches)))
        if self._pace is not None:
            size = sum(len(key) for batch in batches for key in batch.keys)
            size += sum(len(value or b"") for batch in batches for value in batch.values)
            self._pace.note_read(size, self._host.clock.wall.monotonic_ns())

    def _read_back(self) -> list[Event]:
        """A slice of what became durable while the feed caught up."""
        if self._backlog.lost and self._end is None:
            self._cut_off(Timestamp(0), "its part of the log had to be deleted")
        items = self._backlog.take()
        if not self._backlog:
            self._state = FeedState.STEADY
            self.bell.ring()
        return list(self._events(items))

    def _become_steady(self) -> None:
        """Goes live at once: there was no history to read."""
        self._state = FeedState.STEADY
        self._buffer.append(SteadyState(self.span))
        self._buffer.extend(resolved for resolved in self._backlog.take())
        self.bell.ring()

    def _check_threshold(self) -> None:
        threshold = self._host.gc_threshold_of(self.span)
        if self.start_after < threshold:
            self.close()
            raise BatchTimestampBeforeGC(self.start_after, threshold)

    def _check_previous(self, timestamps: Sequence[Timestamp]) -> None:
        """Checks that what these versions replaced is still kept: the threshold is below each of
        them."""
        threshold = self._host.gc_threshold_of(self.span)
        oldest = min(timestamps)
        if oldest <= threshold:
            self.close()
            raise BatchTimestampBeforeGC(oldest, threshold)

    def _events(self, items: Iterable[LiveEntry | Timestamp | SteadyState]) -> Iterator[Event]:
        for item in items:
            if isinstance(item, LiveEntry):
                yield from self._events_of(item)
            elif isinstance(item, SteadyState):
                yield item
            else:
                yield Checkpoint((self.span,), item)

    def _events_of(self, entry: LiveEntry) -> Iterator[ValueBatch | DeleteRange]:
        omitted = self.options.omitted_origins
        for event in entry.events(self.span, self.start_after, omitted):
            if self.options.with_previous and isinstance(event, ValueBatch):
                self._check_previous(event.timestamps)
                previous = previous_of(self._host.engine, event.keys, event.timestamps)
                yield replace(event, previous=previous)
            else:
                yield event

    def _drop_buffer(self) -> None:
        self._buffer.clear()
        self._host.feed_memory.give_back(self._buffered_bytes)
        self._buffered_bytes = self._buffered_entries = 0

    def _free_scan(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._scan is not None:
            self._scan.close()
            self._scan = None

    def _free(self) -> None:
        self._free_scan()
        self._backlog.close()
        self._drop_buffer()

    def __repr__(self) -> str:
        return (
            f"<RangeFeed {self.span} after {format_timestamp(self.start_after)} "
            f"{self._state.value} at index {self.index}, {self._buffered_entries} entries wait>"
        )
