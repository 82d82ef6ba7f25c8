"""What waits for a feed that is not steady yet: positions in the log, read back when it is."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tailrace.kvlayer.events import Event, SteadyState, ValueBatch
from tailrace.kvlayer.mvcc import SLICE_BYTES
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.rangefeed.backlog import MARKS_MAX, Backlog
from tailrace.kvlayer.rangefeed.registration import FeedState
from tailrace.kvlayer.span import Span
from tests.harness.small_range import SmallRange, key, resolved_in, told

WHOLE = Span.prefix(key(""))


def catching_up(small: SmallRange) -> RangeFeed:
    """A feed that has something to catch up on and was not polled yet."""
    small.put((key("a"), b"caught up"))
    return small.feeds.register(WHOLE, ZERO)


def until_quiet(feed: RangeFeed) -> list[Event]:
    events: list[Event] = []
    while polled := feed.poll():
        events += polled
    return events


def until_end(feed: RangeFeed) -> tuple[list[Event], FeedEnd]:
    events: list[Event] = []
    with pytest.raises(RangeFeedEnded) as ended:
        while True:
            events += feed.poll()
    return events, ended.value.reason


def test_positions_cost_no_memory() -> None:
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "1000"})
    feed = catching_up(small)
    for _ in range(1000):
        small.put((key("b"), b"v" * 200))
    assert feed.buffered_bytes == small.feed_memory.used_bytes == 0
    assert told(until_quiet(feed)).count(f"b={'v' * 200}") == 1000
    assert small.metrics.get("rangefeed_slow_consumers_total") == 0


def test_entries_are_read_back_in_order() -> None:
    small = SmallRange()
    feed = catching_up(small)
    for number in range(3):
        small.put((key("b"), str(number).encode()))
    words = [word for word in told(until_quiet(feed)) if word != "checkpoint"]
    assert words == ["a=caught up", "steady", "b=0", "b=1", "b=2"]
    assert feed.state is FeedState.STEADY


def test_entries_elsewhere_are_not_read_back() -> None:
    small = SmallRange()
    feed = catching_up(small)
    for _ in range(10):
        small.put((key("a", keyspace=9), b"elsewhere"))
    small.put((key("b"), b"here"))
    assert "b=here" in told(until_quiet(feed))
    assert small.entries_read == 1


def test_entries_that_come_while_reading_back_follow() -> None:
    small = SmallRange()
    feed = catching_up(small)
    body = b"v" * (SLICE_BYTES // 2)
    for number in range(6):
        small.put((key(str(number)), body))
    events = [*feed.poll(), *feed.poll()]
    assert feed.state is FeedState.READING_BACK
    small.put((key("late"), b"1"))
    events += until_quiet(feed)
    small.put((key("last"), b"2"))
    events += until_quiet(feed)
    written = [name for event in events if isinstance(event, ValueBatch) for name in event.keys]
    assert written == [key(name) for name in ("a", "0", "1", "2", "3", "4", "5", "late", "last")]


def test_reading_back_comes_in_slices() -> None:
    small = SmallRange()
    feed = catching_up(small)
    for number in range(6):
        small.put((key(str(number)), b"v" * (SLICE_BYTES // 2)))
    assert told(feed.poll()) == ["a=caught up"]
    sizes = []
    while feed.state is not FeedState.STEADY:
        sizes.append(sum(isinstance(event, ValueBatch) for event in feed.poll()))
    assert sizes == [2, 2, 2]


def test_checkpoints_wait_between_positions() -> None:
    """Each comes behind the entries that it speaks of, and none that are not delivered yet."""
    small = SmallRange()
    feed = catching_up(small)
    written: list[Timestamp] = []
    for number in range(4):
        written.append(small.put((key("b"), str(number).encode())))
        small.advance(10)
    below = ZERO
    for event in until_quiet(feed):
        if isinstance(event, ValueBatch) and event.keys[0] == key("b"):
            assert event.timestamps[0] > below
        elif resolved := resolved_in([event]):
            below = resolved[0]
    assert below > written[-1]


def test_marks_are_bounded_and_keep_the_last() -> None:
    small = SmallRange()
    backlog = Backlog(small, 0, ZERO)
    for number in range(1, 10 * MARKS_MAX):
        backlog.note(number)
        backlog.resolve(Timestamp(number))
        assert len(backlog._marks) <= MARKS_MAX + 1
        assert backlog._marks[-1] == (number, number)
    assert list(backlog._marks) == sorted(backlog._marks)


def test_log_is_kept_until_it_is_read_back() -> None:
    small = SmallRange()
    feed = catching_up(small)
    small.put((key("b"), b"1"))
    assert small.retentions.needs(small.durable_index)
    until_quiet(feed)
    assert len(small.retentions) == 0


@pytest.mark.parametrize("polls", [0, 1])
def test_closed_feed_keeps_no_log(polls: int) -> None:
    small = SmallRange()
    feed = catching_up(small)
    small.put((key("b"), b"1"))
    for _ in range(polls):
        feed.poll()
    feed.close()
    assert len(small.retentions) == 0


def test_deleted_log_ends_the_feed_after_a_useful_checkpoint() -> None:
    """The scan goes on to its end, and what was resolved when it began is worth a checkpoint: so
    the consumer, which starts again there, need not read the same versions again."""
    small = SmallRange()
    small.feeds.register(Span.prefix(key("z")), ZERO)  # so that the range resolves
    first = small.put((key("a"), b"caught up"))
    small.advance(10)
    feed = small.feeds.register(WHOLE, ZERO)
    small.put((key("b"), b"lost"))
    small.retentions.revoke(small.durable_index)
    small.put((key("b"), b"too late"))
    events, reason = until_end(feed)
    assert told(events) == ["a=caught up", "steady", "checkpoint"]
    assert resolved_in(events)[0] >= first
    assert reason is FeedEnd.SLOW_CONSUMER


def test_log_deleted_while_reading_back_loses_no_checkpoint() -> None:
    small = SmallRange()
    feed = catching_up(small)
    reached: list[Timestamp] = []
    for number in range(6):
        reached.append(small.put((key(str(number)), b"v" * (SLICE_BYTES // 2))))
        small.advance(10)
    events = [*feed.poll(), *feed.poll()]
    small.retentions.revoke(small.durable_index)
    more, reason = until_end(feed)
    assert reason is FeedEnd.SLOW_CONSUMER
    read = [ts for e in [*events, *more] if isinstance(e, ValueBatch) for ts in e.timestamps]
    assert read[1:] == reached[:2]
    assert reached[1] <= resolved_in([*events, *more])[-1] < reached[2]


def test_split_lets_reading_back_end() -> None:
    small = SmallRange()
    feed = catching_up(small)
    small.put((key("b"), b"1"))
    small.feeds.close(FeedEnd.RANGE_SPLIT)
    events, reason = until_end(feed)
    assert [word for word in told(events) if "=" in word] == ["a=caught up", "b=1"]
    assert reason is FeedEnd.RANGE_SPLIT
    assert resolved_in(events)


def test_steady_at_once_when_nothing_was_committed() -> None:
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    assert feed.state is FeedState.STEADY
    assert feed.poll() == [SteadyState(WHOLE)]
