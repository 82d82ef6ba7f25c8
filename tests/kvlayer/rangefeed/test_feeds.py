"""Range feeds on a range that is moved by hand: registration, catch-up, live, buffers, ends."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.command import AbortTxn, DeleteRangeOp, WriteValue
from tailrace.kvlayer.errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded
from tailrace.kvlayer.events import DeleteRange, Event, SteadyState, ValueBatch
from tailrace.kvlayer.keys import ALL_KEYS
from tailrace.kvlayer.mvcc import Header, encode_value
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.rangefeed.catch_up import SLICE_ROWS
from tailrace.kvlayer.span import Span
from tests.harness.small_range import SmallRange, key, moment, resolved_in, told, write

X, Y = b"x" * 16, b"y" * 16
WHOLE = Span.prefix(key(""))


def drained(feed: RangeFeed) -> list[str]:
    """Everything there is, in words."""
    return told(all_of(feed))


def end_of(feed: RangeFeed) -> FeedEnd:
    """Drains the feed to its end, and says why it ended."""
    with pytest.raises(RangeFeedEnded) as ended:
        while feed.poll():
            pass
    return ended.value.reason


def all_of(feed: RangeFeed) -> list[Event]:
    """Everything there is."""
    events: list[Event] = []
    while polled := feed.poll():
        events += polled
    return events


def until_end(feed: RangeFeed) -> list[Event]:
    """Everything until the feed says that it ended."""
    events: list[Event] = []
    with pytest.raises(RangeFeedEnded):
        while polled := feed.poll():
            events += polled
    return events


def test_live_values_follow_registration() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    small.put((key("a"), b"1"), (key("b"), None))
    small.put((key("a"), b"2"))
    assert drained(feed) == ["steady", "a=1", "b deleted", "checkpoint", "a=2"]


def test_catch_up_comes_in_order_of_time() -> None:
    small = SmallRange()
    small.put((key("b"), b"1"))
    small.put((key("a"), b"2"))
    small.put((key("b"), None))
    feed = small.feeds.register(WHOLE, ZERO)
    small.put((key("c"), b"4"))
    assert drained(feed) == ["b=1", "a=2", "b deleted", "steady", "c=4", "checkpoint"]


def test_start_is_exclusive() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"))
    start = small.put((key("a"), b"2"))
    small.put((key("a"), b"3"))
    assert drained(small.feeds.register(WHOLE, start)) == ["a=3", "steady"]


def test_start_in_the_future_is_respected() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, moment(50))
    small.put((key("a"), b"early"))
    small.wall.milliseconds = 51
    small.put((key("a"), b"late"))
    assert [word for word in drained(feed) if "=" in word] == ["a=late"]


def test_nothing_between_snapshot_and_registration() -> None:
    """What is applied and not durable comes from the snapshot, once it is durable."""
    small = SmallRange()
    small.propose(write(small.clock.now(), (key("a"), b"1")))
    feed = small.feeds.register(WHOLE, ZERO)
    small.propose(write(small.clock.now(), (key("b"), b"2")))
    assert drained(feed) == []
    small.sync()
    assert drained(feed) == ["a=1", "steady", "b=2", "checkpoint"]


def test_waiting_for_durability_ends_by_itself() -> None:
    async def run() -> list[str]:
        small = SmallRange()
        small.propose(write(small.clock.now(), (key("a"), b"1")))
        feed = small.feeds.register(WHOLE, ZERO)
        asyncio.get_running_loop().call_soon(small.sync)
        return told(await feed.next())

    assert asyncio.run(run()) == ["a=1"]


def test_second_feed_skips_what_its_snapshot_holds() -> None:
    small = SmallRange()
    first = small.feeds.register(WHOLE, ZERO)
    small.propose(write(small.clock.now(), (key("a"), b"1")))
    second = small.feeds.register(WHOLE, ZERO)
    small.sync()
    assert drained(second) == ["a=1", "steady", "checkpoint"]
    assert drained(first) == ["steady", "a=1", "checkpoint"]


def test_feed_sees_its_span_only() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"), (key("c"), b"1"))
    feed = small.feeds.register(Span(key("b"), key("d")), ZERO)
    small.put((key("a"), b"2"), (key("c"), b"2"), (key("d"), b"2"))
    small.put((key("z"), b"3"))
    assert [word for word in drained(feed) if "=" in word] == ["c=1", "c=2"]


def test_batches_hold_one_keyspace() -> None:
    small = SmallRange()
    feed = small.feeds.register(ALL_KEYS, ZERO)
    written = [(key(name, keyspace), b"v") for name in "ab" for keyspace in (1, 2)]
    small.put(*written)
    again = small.feeds.register(ALL_KEYS, ZERO)
    for watched in (feed, again):
        batches = [event for event in all_of(watched) if isinstance(event, ValueBatch)]
        assert [list(batch.keys) for batch in batches] == [
            [key("a", 1), key("b", 1)],
            [key("a", 2), key("b", 2)],
        ]


def test_feeds_share_one_decoding() -> None:
    small = SmallRange()
    feeds = [small.feeds.register(WHOLE, ZERO) for _ in range(2)]
    small.put((key("a"), b"1"))
    first, second = ([e for e in all_of(feed) if isinstance(e, ValueBatch)] for feed in feeds)
    assert first[0] is second[0]


def test_large_catch_up_is_sliced() -> None:
    small = SmallRange()
    small.put(*((key(f"{i:05}"), b"v") for i in range(SLICE_ROWS + 10)))
    feed = small.feeds.register(WHOLE, ZERO)
    sizes = [len(event) for event in all_of(feed) if isinstance(event, ValueBatch)]
    assert sizes == [SLICE_ROWS, 10]


def test_catch_up_reads_one_slice_a_step_of_what_it_does_not_show() -> None:
    async def scenario() -> None:
        small = SmallRange()
        values = [encode_value(b"backfill", Header(omitted=True))] * (2 * SLICE_ROWS)
        names = [key(f"{i:05}") for i in range(2 * SLICE_ROWS)]
        small.propose(WriteValue(small.clock.now(), names, values))
        small.put((key("a"), b"1"))
        feed = small.feeds.register(WHOLE, ZERO)
        for _ in range(2):
            assert feed.poll() == []
            assert feed.scanning
        assert told(await feed.next()) == ["a=1"]
        assert told(await feed.next()) == ["steady"]

    asyncio.run(scenario())


def test_previous_values_on_request() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"))
    start = small.put((key("b"), b"1"))
    small.put((key("a"), b"2"), (key("c"), b"2"))
    feed = small.feeds.register(WHOLE, start, with_previous=True)
    small.put((key("a"), None), (key("b"), b"3"))
    small.put((key("a"), b"4"))
    batches = [event for event in all_of(feed) if isinstance(event, ValueBatch)]
    assert [batch.previous for batch in batches] == [[b"1", None], [b"2", b"1"], [None]]


def test_omitted_versions_are_left_out() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    values = [encode_value(b"backfill", Header(omitted=True)), encode_value(b"row")]
    small.propose(WriteValue(small.clock.now(), [key("a"), key("b")], values))
    small.propose(WriteValue(small.clock.now(), [key("c")], values[:1]))
    small.sync()
    assert drained(feed) == ["steady", "b=row", "checkpoint"]
    assert drained(small.feeds.register(WHOLE, ZERO)) == ["b=row", "steady", "checkpoint"]


def test_header_is_stripped_whole() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    values = [encode_value(b"v", Header(origin=7, expires_at=moment(9))), encode_value(None)]
    small.propose(WriteValue(small.clock.now(), [key("a"), key("b")], values))
    small.sync()
    assert drained(feed)[:3] == ["steady", "a=v", "b deleted"]


def test_delete_range_is_cut_to_span() -> None:
    small = SmallRange()
    feed = small.feeds.register(Span(key("b"), key("d")), ZERO)
    ts = small.clock.now()
    small.propose(DeleteRangeOp(ts, key("a"), key("c")))
    small.sync()
    assert DeleteRange(Span(key("b"), key("c")), ts) in all_of(feed)


def test_intents_come_when_they_are_committed() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    ts = small.clock.now()
    small.lay_intents(X, ts, key("a"), key("b"))
    small.sync()
    assert drained(feed) == ["steady", "checkpoint"]
    small.commit_intents(X, ts, key("a"), key("b"))
    small.sync()
    assert drained(feed) == ["a=intent", "b=intent"]


def test_intent_found_at_start_holds_resolved() -> None:
    small = SmallRange()
    small.wall.milliseconds = 10
    ts = small.clock.now()
    small.lay_intents(X, ts, key("a"))
    small.sync()
    feed = small.feeds.register(WHOLE, ZERO)
    small.advance(10)
    small.advance(10)
    assert resolved_in(feed.poll()) == [ts - 1]
    small.commit_intents(X, ts, key("a"))
    small.sync()
    small.advance(10)
    assert drained(feed) == ["a=intent", "checkpoint"]


def test_large_lock_table_is_scanned_in_slices() -> None:
    small = SmallRange()
    ts = small.clock.now()
    written = [key(f"{i:05}") for i in range(2500)]
    small.lay_intents(X, ts, *written)
    small.sync()
    feed = small.feeds.register(WHOLE, ZERO)
    small.commit_intents(X, ts, *written[:2400])
    small.sync()
    small.advance(10)
    assert resolved_in(feed.poll()) == []
    small.advance(10)
    small.advance(10)
    assert resolved_in(feed.poll()) == [ts - 1]
    small.commit_intents(X, ts, *written[2400:])
    small.sync()
    small.advance(10)
    assert resolved_in(feed.poll())[-1] > ts


def test_idle_range_resolves_each_tick() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    for milliseconds in (11, 21, 31):
        small.advance(10)
        assert resolved_in(feed.poll()) == [moment(milliseconds) - 1]


def test_checkpoint_follows_a_row_once_in_an_interval() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    small.advance(10)
    assert drained(feed) == ["steady", "checkpoint"]
    small.put((key("a"), b"0"))
    assert drained(feed) == ["a=0", "checkpoint"]
    for _ in range(9):
        small.wall.milliseconds += 1
        small.put((key("a"), b"1"))
        assert drained(feed) == ["a=1"]
    small.wall.milliseconds += 1
    small.put((key("a"), b"2"))
    assert drained(feed) == ["a=2", "checkpoint"]


def test_tick_leaves_out_a_checkpoint_after_a_row() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    small.put((key("a"), b"0"))
    assert drained(feed) == ["steady", "a=0", "checkpoint"]
    small.advance(5)
    assert drained(feed) == []
    small.advance(5)
    assert drained(feed) == ["checkpoint"]


def test_checkpoint_waits_for_entries_of_its_closing() -> None:
    """Two entries are durable at once: what is closed after both is no checkpoint for the first."""
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    small.propose(write(small.clock.now(), (key("a"), b"1")))
    small.propose(write(small.clock.now(), (key("b"), b"2")))
    small.sync()
    assert drained(feed) == ["steady", "a=1", "b=2", "checkpoint"]


def test_undelivered_entry_holds_resolved() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    ts = small.clock.now()
    small.propose(write(ts, (key("a"), b"1")))
    small.advance(10)
    assert resolved_in(feed.poll()) == [ts - 1]


def test_newer_checkpoint_replaces_waiting_one() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    feed.poll()
    for _ in range(5):
        small.advance(10)
    assert resolved_in(feed.poll()) == [moment(51) - 1]


def test_slow_consumer_is_cut_off_after_a_checkpoint() -> None:
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "1000"})
    feed = small.feeds.register(WHOLE, ZERO)
    feed.poll()
    kept: list[Timestamp] = []
    while len(kept) < 20 and not small.metrics.get("rangefeed_slow_consumers_total"):
        kept.append(small.put((key("a"), b"v" * 200)))
        small.advance(10)
    assert len(kept) < 20
    events = feed.poll()
    batches = [event for event in events if isinstance(event, ValueBatch)]
    assert [ts for batch in batches for ts in batch.timestamps] == kept[:-1]
    assert kept[-2] <= resolved_in(events)[-1] < kept[-1]
    assert end_of(feed) is FeedEnd.SLOW_CONSUMER
    assert small.feeds.feed_count == 0


def test_entries_elsewhere_do_not_fill_the_buffer() -> None:
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "1000"})
    feed = small.feeds.register(Span(key("a"), key("b")), ZERO)
    for _ in range(50):
        small.put((key("x"), b"v" * 200))
    small.put((key("a"), b"1"))
    assert [word for word in drained(feed) if "=" in word] == ["a=1"]


def test_start_below_threshold_is_refused() -> None:
    small = SmallRange()
    small.gc_threshold = moment(10)
    with pytest.raises(BatchTimestampBeforeGC):
        small.feeds.register(WHOLE, Timestamp(moment(10) - 1))
    assert drained(small.feeds.register(WHOLE, moment(10))) == ["steady"]


def test_threshold_is_checked_after_catch_up() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"))
    feed = small.feeds.register(WHOLE, ZERO)
    assert told(feed.poll()) == ["a=1"]
    small.gc_threshold = moment(10)
    with pytest.raises(BatchTimestampBeforeGC):
        feed.poll()
    assert small.feeds.feed_count == 0


@pytest.mark.parametrize("reason", [FeedEnd.RANGE_SPLIT, FeedEnd.RANGEFEED_CLOSED])
def test_end_of_range_comes_after_a_checkpoint(reason: FeedEnd) -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    feed.poll()
    small.put((key("a"), b"1"))
    small.feeds.close(reason)
    assert told(until_end(feed)) == ["a=1", "checkpoint"]
    assert end_of(feed) is reason
    with pytest.raises(RangeFeedEnded):
        small.feeds.register(WHOLE, ZERO)


def test_split_lets_catch_up_end() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"))
    feed = small.feeds.register(WHOLE, ZERO)
    small.feeds.close(FeedEnd.RANGE_SPLIT)
    assert told(until_end(feed)) == ["a=1", "steady", "checkpoint"]


def test_shutdown_stops_catch_up() -> None:
    small = SmallRange()
    small.put((key("a"), b"1"))
    feed = small.feeds.register(WHOLE, ZERO)
    small.feeds.close(FeedEnd.RANGEFEED_CLOSED)
    assert told(until_end(feed)) == []


def test_closed_feed_wakes_its_consumer() -> None:
    async def run() -> None:
        small = SmallRange()
        feed = small.feeds.register(WHOLE, ZERO)
        assert isinstance((await feed.next())[0], SteadyState)
        asyncio.get_running_loop().call_soon(feed.close)
        with pytest.raises(RangeFeedEnded):
            await feed.next()
        assert small.feeds.feed_count == 0

    asyncio.run(run())


def test_cancelled_next_loses_nothing() -> None:
    async def run() -> list[str]:
        small = SmallRange()
        small.put((key("a"), b"1"))
        feed = small.feeds.register(WHOLE, ZERO)
        for _ in range(3):
            waiting = asyncio.create_task(feed.next())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return told(await feed.next())

    assert asyncio.run(run()) == ["a=1"]


def test_too_many_unresolved_transactions_end_the_feed() -> None:
    small = SmallRange(settings={"kv.rangefeed.unresolved_transactions_max": "1"})
    feed = small.feeds.register(WHOLE, ZERO)
    small.lay_intents(X, small.clock.now(), key("a"))
    small.lay_intents(Y, small.clock.now(), key("b"))
    small.sync()
    assert end_of(feed) is FeedEnd.UNRESOLVED_INTENTS


def test_aborted_transaction_frees_resolved() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    small.lay_intents(X, small.clock.now(), key("a"))
    small.propose(AbortTxn(X))
    small.sync()
    small.advance(10)
    assert resolved_in(feed.poll())[-1] == moment(11) - 1


def test_previous_value_that_may_be_collected_is_not_made_up() -> None:
    """A slow consumer with previous values is told when the threshold has passed it."""
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO, with_previous=True)
    assert drained(feed) == ["steady"]
    small.put((key("a"), b"1"))
    small.advance(1)
    replaced = small.put((key("a"), b"2"))
    small.gc_threshold = replaced
    with pytest.raises(BatchTimestampBeforeGC):
        feed.poll()
    assert small.feeds.feed_count == 0


def test_values_of_omitted_origins_are_left_out() -> None:
    """Live and in a catch-up scan; what was written here, or comes from elsewhere, passes."""
    small = SmallRange()
    omitted = frozenset((7,))
    live = small.feeds.register(WHOLE, ZERO, omitted_origins=omitted)
    plain = small.feeds.register(WHOLE, ZERO)
    values = [encode_value(b"v", Header(origin=origin)) for origin in (7, None, 8)]
    names = [key("a"), key("b"), key("c")]
    small.propose(WriteValue(small.clock.now(), names, values))
    small.propose(WriteValue(small.clock.now(), names[:1], values[:1]))
    small.sync()
    caught_up = small.feeds.register(WHOLE, ZERO, omitted_origins=omitted)
    for feed in (live, caught_up):
        assert [word for word in drained(feed) if "=" in word] == ["b=v", "c=v"]
    assert [word for word in drained(plain) if "=" in word] == ["a=v", "b=v", "c=v", "a=v"]
