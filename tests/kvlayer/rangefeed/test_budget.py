"""The memory of what waits for consumers: of one feed, of all feeds, and checkpoints too."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.clock import ZERO
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.rangefeed.budget import CHECKPOINT_BYTES, ENTRY_OVERHEAD_BYTES
from tailrace.kvlayer.span import Span
from tests.harness.small_range import SmallRange, key, resolved_in, told

WHOLE = Span.prefix(key(""))


def steady(small: SmallRange) -> RangeFeed:
    feed = small.feeds.register(WHOLE, ZERO)
    feed.poll()
    return feed


def test_checkpoints_count_in_the_memory_budget() -> None:
    """CockroachDB did not count them, and nodes ran out of memory (#114190)."""
    small = SmallRange()
    feed = steady(small)
    small.advance(10)
    assert 0 < small.feed_memory.used_bytes == feed.buffered_bytes == CHECKPOINT_BYTES
    small.put((key("a"), b"1"))
    small.advance(10)
    assert feed.buffered_bytes > 2 * CHECKPOINT_BYTES + ENTRY_OVERHEAD_BYTES
    feed.poll()
    assert small.feed_memory.used_bytes == feed.buffered_bytes == 0


def test_waiting_checkpoints_are_one() -> None:
    small = SmallRange()
    feed = steady(small)
    for _ in range(1000):
        small.advance(10)
    assert feed.buffered_bytes == CHECKPOINT_BYTES
    assert len(resolved_in(feed.poll())) == 1


def test_checkpoint_without_room_is_left_for_the_next() -> None:
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "100"})
    feed = steady(small)
    small.advance(10)
    assert feed.poll() == []
    small.settings.reset("kv.rangefeed.buffer_bytes")
    roomy = steady(small)
    small.advance(10)
    assert resolved_in(roomy.poll())


def test_store_budget_cuts_off_whoever_meets_it() -> None:
    small = SmallRange(settings={"kv.rangefeed.memory_budget": "4000"})
    slow, fast = steady(small), steady(small)
    while not small.metrics.get("rangefeed_slow_consumers_total"):
        small.put((key("a"), b"v" * 300))
        fast.poll()
    with pytest.raises(RangeFeedEnded) as ended:
        while slow.poll():
            pass
    assert ended.value.reason is FeedEnd.SLOW_CONSUMER
    small.put((key("b"), b"on"))
    assert "b=on" in told(fast.poll())
    assert small.feed_memory.used_bytes == 0


def test_lone_entry_over_the_budget_passes() -> None:
    small = SmallRange(settings={"kv.rangefeed.memory_budget": "1000"})
    feed = steady(small)
    small.put((key("a"), b"v" * 5000))
    assert told(feed.poll())[0].startswith("a=vvv")


def test_closed_feed_gives_its_memory_back() -> None:
    small = SmallRange()
    feed = steady(small)
    small.put((key("a"), b"1"))
    feed.close()
    assert small.feed_memory.used_bytes == 0


def test_cut_off_feed_gets_its_last_checkpoint_without_room() -> None:
    """Checkpoints that found no room were left out; the one at the end is worth more than room."""
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "1400"})
    feed = steady(small)
    first = small.put((key("a"), b"v" * 300))
    small.advance(10)
    assert feed.buffered_bytes > 1400 - CHECKPOINT_BYTES
    small.put((key("b"), b"v" * 300))
    events = feed.poll()
    assert resolved_in(events)[-1] > first
    with pytest.raises(RangeFeedEnded):
        feed.poll()
