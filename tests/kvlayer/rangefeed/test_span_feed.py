"""Span feeds: several spans, several ranges, restarts."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tailrace.kvlayer.clock import MAX_TIMESTAMP, ZERO, Clock, Timestamp
from tailrace.kvlayer.engine import EngineBatch
from tailrace.kvlayer.errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded
from tailrace.kvlayer.events import Checkpoint, Event, SteadyState, ValueBatch
from tailrace.kvlayer.keys import ALL_KEYS
from tailrace.kvlayer.rangefeed import RangeFeed, SpanFeed, TickedFeed
from tailrace.kvlayer.rangefeed.span_feed import CATCH_UPS_MAX
from tailrace.kvlayer.span import Span
from tests.harness.simulation import Simulation
from tests.harness.small_range import SmallRange, key, moment, told
from tests.harness.validators import History, Watch

FIRST, SECOND = Span.prefix(key("", 1)), Span.prefix(key("", 2))


class SomeRanges:
    """A router of ranges that share a wall clock, and of which one can be split."""

    def __init__(self) -> None:
        self.ranges = [SmallRange()]

    def holding(self, name: bytes) -> SmallRange:
        return next(small for small in self.ranges if small.span.contains(name))

    def divide(self, span: Span) -> list[Span]:
        shared = [small.span.intersect(span) for small in self.ranges]
        return [part for part in shared if part is not None]

    @property
    def clock(self) -> Clock:
        return self.ranges[0].clock

    def gather(self, feed: TickedFeed) -> None: ...

    def release(self, feed: TickedFeed) -> None: ...

    def range_feed(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        small = self.holding(span.start)
        if not small.span.covers(span):
            raise RangeFeedEnded(FeedEnd.RANGE_SPLIT)
        return small.feeds.register(span, start_after, with_previous=with_previous)

    def split(self, at: bytes) -> None:
        old = self.holding(at)
        halves = [SmallRange(Span(old.span.start, at)), SmallRange(Span(at, old.span.end))]
        for half in halves:
            everything = list(old.engine.scan(b"", b"\xff"))
            half.engine.write(EngineBatch(puts=everything), applied_index=old.applied_index)
            half.durable_index = old.durable_index
            half.wall, half.clock = old.wall, old.clock
            half.closed = type(old.closed)(old.clock, old.settings)
            half.closed.entries_durable(old.durable_index)
        place = self.ranges.index(old)
        self.ranges[place : place + 1] = halves
        old.feeds.close(FeedEnd.RANGE_SPLIT)

    def advance(self, milliseconds: float) -> None:
        self.ranges[0].wall.milliseconds += milliseconds
        for small in self.ranges:
            small.feeds.tick()


def drained(feed: SpanFeed) -> list[Event]:
    events: list[Event] = []
    while polled := feed.poll():
        events += polled
    return events


def test_spans_come_in_one_stream() -> None:
    small = SmallRange()
    feed = SpanFeed(small, [(FIRST, ZERO), (SECOND, ZERO)])
    assert drained(feed) == [SteadyState(FIRST), SteadyState(SECOND)]
    small.put((key("a", 1), b"1"), (key("b", 2), b"2"), (key("c", 3), b"3"))
    assert told(drained(feed)) == ["a=1", "b=2", "checkpoint"]


def test_entry_resolves_the_feeds_that_it_concerns() -> None:
    """Of many feeds over one range a commit wakes its own; the store's tick tells the others."""
    small = SmallRange()
    feed, other = SpanFeed(small, [(FIRST, ZERO)]), SpanFeed(small, [(SECOND, ZERO)])
    for each in (feed, other):
        drained(each)
    small.put((key("a", 1), b"1"))
    assert told(drained(feed)) == ["a=1", "checkpoint"]
    assert drained(other) == []


def test_equal_checkpoints_are_one_event() -> None:
    small = SmallRange()
    feed = SpanFeed(small, [(FIRST, ZERO), (SECOND, ZERO)])
    drained(feed)
    small.advance(10)
    assert drained(feed) == [Checkpoint((FIRST, SECOND), Timestamp(moment(11) - 1))]
    assert feed.frontier.low_water == moment(11) - 1


def test_steady_when_all_are_steady() -> None:
    small = SmallRange()
    start = small.put((key("a", 1), b"1"))
    feed = SpanFeed(small, [(FIRST, ZERO), (SECOND, start)])
    assert told(feed.poll()) == ["a=1"]
    assert told(feed.poll()) == ["steady", "steady"]


def test_each_span_has_its_own_start() -> None:
    small = SmallRange()
    start = small.put((key("a", 1), b"old"), (key("a", 2), b"old"))
    small.put((key("a", 1), b"new"), (key("a", 2), b"new"))
    feed = SpanFeed(small, [(FIRST, ZERO), (SECOND, start)])
    assert told(drained(feed))[:3] == ["a=old", "a=new", "a=new"]


def test_overflow_restarts_from_the_checkpoint() -> None:
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "500"})
    history = History()
    watch = Watch(history, [(FIRST, ZERO)], restarts_hidden=True)
    feed = SpanFeed(small, [(FIRST, ZERO)])
    watch.note_events(drained(feed))
    for i in range(40):
        history.note_commit(small.put((key("a"), b"%d" % i * 40)), {key("a"): b"%d" % i * 40})
        small.advance(1)
        if i % 15 == 0:
            watch.note_events(drained(feed))
    watch.note_events(drained(feed))
    small.advance(10)
    watch.note_events(drained(feed))
    watch.finish()
    assert not watch.failures
    assert small.metrics.get("rangefeed_slow_consumers_total") == 3


def test_split_is_followed() -> None:
    ranges, history = SomeRanges(), History()
    feed = SpanFeed(ranges, [(FIRST, ZERO)])
    watch = Watch(history, [(FIRST, ZERO)], restarts_hidden=True)
    for i, name in enumerate("acbdxyz"):
        if i in (2, 4):
            ranges.split(key("b" if i == 2 else "x"))
        at = ranges.holding(key(name)).put((key(name), b"v"))
        history.note_commit(at, {key(name): b"v"})
        if i % 2:
            ranges.advance(10)
            watch.note_events(drained(feed))
    ranges.advance(10)
    watch.note_events(drained(feed))
    for observer in watch.observers:
        observer.finish()
    assert not [failure for observer in watch.observers for failure in observer.failures]
    assert len(ranges.ranges) == 3
    assert feed.frontier.low_water == moment(ranges.ranges[0].wall.milliseconds) - 1


def test_oldest_starts_go_first_and_few_at_a_time() -> None:
    small = SmallRange()
    small.put((key("a", 1), b"1"))
    starts = [(Span.prefix(key("", i)), Timestamp(100 - i)) for i in range(1, 41)]
    feed = SpanFeed(small, starts)
    assert small.feeds.feed_count == CATCH_UPS_MAX
    steady = [event for event in drained(feed) if isinstance(event, SteadyState)]
    assert len(steady) == 40


def test_start_below_threshold_is_fatal() -> None:
    small = SmallRange()
    small.gc_threshold = moment(5)
    with pytest.raises(BatchTimestampBeforeGC):
        SpanFeed(small, [(FIRST, MAX_TIMESTAMP), (SECOND, ZERO)])
    assert small.feeds.feed_count == 0


def test_futile_restarts_slow_down() -> None:
    """The range ends every feed at once, and nothing is ever resolved."""
    sim = Simulation(1)
    small = SmallRange()
    starts: list[float] = []

    class Refusing:
        clock = small.clock

        def gather(self, feed: TickedFeed) -> None: ...

        def release(self, feed: TickedFeed) -> None: ...

        def divide(self, span: Span) -> list[Span]:
            return [span]

        def range_feed(
            self,
            span: Span,
            start_after: Timestamp,
            *,
            with_previous: bool = False,
            omitted_origins: frozenset[int] = frozenset(),
        ) -> RangeFeed:
            starts.append(sim.now)
            feed = small.feeds.register(span, start_after, with_previous=with_previous)
            feed.cut(ZERO, RangeFeedEnded(FeedEnd.SLOW_CONSUMER))
            return feed

    async def watch() -> None:
        feed = SpanFeed(Refusing(), [(FIRST, ZERO)])
        try:
            async with asyncio.timeout(60):
                while True:
                    await feed.next()
        except TimeoutError:
            feed.close()

    sim.run(watch())
    gaps = [after - before for before, after in pairwise(starts)]
    assert len(starts) < 25
    assert gaps == pytest.approx(sorted(gaps))
    assert gaps[-1] == pytest.approx(5.0)


def test_closed_feed_wakes_its_consumer() -> None:
    async def run() -> None:
        small = SmallRange()
        feed = SpanFeed(small, [(FIRST, ZERO)])
        await feed.next()
        asyncio.get_running_loop().call_soon(feed.close)
        with pytest.raises(RangeFeedEnded):
            await feed.next()
        assert small.feeds.feed_count == 0

    asyncio.run(run())


def test_waiting_consumer_gets_the_row() -> None:
    async def run() -> None:
        small = SmallRange()
        feed = SpanFeed(small, [(ALL_KEYS, ZERO)])
        await feed.next()
        asyncio.get_running_loop().call_soon(small.put, (key("a"), b"1"))
        events = await feed.next()
        assert isinstance(events[0], ValueBatch)

    asyncio.run(run())
