"""Losses and stalls that range feeds of others have had, each shown not to happen here.

The numbers are CockroachDB's, where what was lost and why can be read.
"""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.command import AbortIntent, WriteIntent
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tailrace.kvlayer.events import Checkpoint, Event, ValueBatch
from tailrace.kvlayer.mvcc import encode_value
from tailrace.kvlayer.rangefeed import PushOutcome, PushVerdict
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.small_range import SmallRange, resolved_in, told
from tests.harness.small_range import key as small_key
from tests.harness.stores import hold_log, key, put, release_log, running_store, unbuffered

X = b"x" * 16
WHOLE = Span.prefix(small_key(""))
SPAN = Span.prefix(key(""))


def test_false_aborted_verdict_loses_no_row() -> None:
    """The record is gone because the transaction has committed and was resolved, in entries that
    the feed has not seen; "aborted", says the push (#104309). The row must come before resolved
    passes it."""

    async def run() -> None:
        small = SmallRange()
        feed = small.feeds.register(WHOLE, ZERO)
        ts = small.clock.now()
        small.lay_intents(X, ts, small_key("a"))
        small.sync()
        small.wall.milliseconds = 4000
        small.commit_intents(X, ts, small_key("a"))
        small.verdicts[X] = PushOutcome(
            verdict=PushVerdict.ABORTED, timestamp=ZERO, index=small.applied_index
        )
        small.feeds.tick()
        await asyncio.sleep(0)
        small.advance(10)
        assert all(resolved < ts for resolved in resolved_in(feed.poll()))
        small.sync()
        small.advance(10)
        events = feed.poll()
        assert told(events) == ["a=intent", "checkpoint"]
        assert resolved_in(events)[0] >= ts

    asyncio.run(run())


def test_record_outlives_the_entries_that_feeds_have_not_seen() -> None:
    """The same through the whole store: while the commit is not durable, a push still gets the
    transaction's true verdict (#104309)."""
    sim = Simulation(1)

    async def run() -> None:
        async with running_store(sim) as store:
            feed = store.range_feed(SPAN, ZERO)
            transaction = store.begin()
            await transaction.put([key("a")], [b"1"])
            hold_log(store)
            committing = asyncio.create_task(transaction.commit())
            await asyncio.sleep(8.0)  # the intents are old, and the pusher has asked
            resolved = ZERO
            rows: list[Timestamp] = []
            release_log(store)
            committed = await committing
            while resolved < committed:
                for event in await feed.next():
                    if isinstance(event, ValueBatch):
                        assert resolved < event.timestamps[0]
                        rows += event.timestamps
                    elif isinstance(event, Checkpoint):
                        resolved = event.resolved
            assert rows == [committed]
            feed.close()

    sim.run(run())


def test_aborted_intent_is_not_an_aborted_transaction() -> None:
    """A transaction that writes a key again aborts its intent there, and goes on to commit
    (#35777): resolved must wait for what it has left."""
    small = SmallRange()
    feed = small.feeds.register(WHOLE, ZERO)
    ts = small.clock.now()
    small.lay_intents(X, ts, small_key("a"), small_key("b"))
    small.abort_intents(X, small_key("a"))
    small.sync()
    small.advance(10)
    assert resolved_in(feed.poll())[-1] == ts - 1
    later = small.clock.now()
    again = WriteIntent(X, later, 2, [small_key("b")], [encode_value(b"again")])
    small.propose(AbortIntent(X, [small_key("b")]), again)
    small.sync()
    small.advance(10)
    assert resolved_in(feed.poll())[-1] == later - 1
    small.commit_intents(X, later, small_key("b"))
    small.sync()
    assert "b=intent" in told(feed.poll())


def test_overflow_keeps_a_useful_checkpoint() -> None:
    """What was buffered is delivered before the end, and then a checkpoint above all of it: a feed
    that was cut off with a checkpoint at zero alone has scanned in vain (reference 4.3)."""
    small = SmallRange(settings={"kv.rangefeed.buffer_bytes": "3000"})
    small.put((small_key("a"), b"caught up"))
    feed = small.feeds.register(WHOLE, ZERO)
    while feed.poll():
        pass
    kept: list[Timestamp] = []
    while not small.metrics.get("rangefeed_slow_consumers_total"):
        kept.append(small.put((small_key("b"), b"v" * 200)))
        small.advance(10)
    events: list[Event] = []
    with pytest.raises(RangeFeedEnded) as ended:
        while True:
            events += feed.poll()
    assert ended.value.reason is FeedEnd.SLOW_CONSUMER
    delivered = [ts for e in events if isinstance(e, ValueBatch) for ts in e.timestamps]
    assert delivered == kept[:-1]
    assert kept[-2] <= resolved_in(events)[-1] < kept[-1]
    again = small.feeds.register(WHOLE, resolved_in(events)[-1])
    assert [word for word in told(again.poll()) if "=" in word] == [f"b={'v' * 200}"]


def test_long_scan_beside_a_busy_writer_ends() -> None:
    """While it scans, a feed holds no entries in memory: so it cannot overflow, scan again, and
    overflow again for ever (reference 4.3)."""
    sim = Simulation(2)

    async def run() -> None:
        async with running_store(
            sim, settings=Settings({"kv.rangefeed.buffer_bytes": "2000"})
        ) as store:
            expected = {await put(store, {key(f"{n:03}"): b"v" * 100}) for n in range(50)}
            feed = store.range_feed(SPAN, ZERO)
            expected |= {await put(store, {key(f"{n:03}"): b"w" * 100}) for n in range(300)}
            seen: set[Timestamp] = set()
            while seen != expected:
                for event in await feed.next():
                    if isinstance(event, ValueBatch):
                        seen |= set(event.timestamps)
            assert store.metrics.get("rangefeed_slow_consumers_total") == 0
            feed.close()

    sim.run(run())


def test_checkpoint_below_the_start_is_tolerated() -> None:
    """A feed that starts ahead of what its range has resolved is told so first (#103770, #37009).
    Nobody moves back for it, and no value comes from below the start."""
    sim = Simulation(3)

    async def run() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            other = store.range_feed(SPAN, ZERO)
            writer = store.begin()
            await writer.put([key("a")], [b"held"])
            await put(store, {key("b"): b"1"})
            await asyncio.sleep(0.1)
            start = store.clock.now()
            feed = store.range_feed(SPAN, start)
            first = await feed.next()
            assert any(isinstance(e, Checkpoint) and e.resolved < start for e in first)
            spans = store.span_feed([SPAN], start)
            low = spans.frontier.low_water
            assert not [e for e in spans.poll() if isinstance(e, Checkpoint)]
            assert spans.frontier.low_water == low
            await writer.commit()
            await asyncio.sleep(0.1)
            for _ in range(3):
                for event in await spans.next():
                    assert not isinstance(event, ValueBatch)
                    if isinstance(event, Checkpoint):
                        assert event.resolved > start
                assert spans.frontier.low_water >= low == start
            for watched in (other, feed, spans):
                watched.close()

    sim.run(run())


@pytest.mark.parametrize("seed", range(10))
def test_split_repeats_only_what_is_above_the_checkpoint(seed: int) -> None:
    """Both halves start again from the last checkpoint (#61111): what they repeat lies above it,
    and nothing is missing."""
    sim = Simulation(seed)

    async def run() -> None:
        async with running_store(sim) as store:
            written = asyncio.create_task(_write_and_split(store, sim))
            feed = store.span_feed([SPAN], ZERO)
            seen: set[Timestamp] = set()
            resolved: dict[Span, Timestamp] = {}
            while not written.done() or feed.frontier.low_water < max(written.result()):
                for event in await feed.next():
                    if isinstance(event, ValueBatch):
                        for name, ts in zip(event.keys, event.timestamps, strict=True):
                            over = [at for span, at in resolved.items() if span.contains(name)]
                            assert ts > max(over, default=ZERO), "a resolved row was repeated"
                            seen.add(ts)
                    elif isinstance(event, Checkpoint):
                        resolved |= dict.fromkeys(event.spans, event.resolved)
            assert seen == written.result()
            feed.close()

    sim.run(run())


async def _write_and_split(store: Store, sim: Simulation) -> set[Timestamp]:
    written: set[Timestamp] = set()
    for number in range(60):
        written.add(await put(store, {key(f"{number % 20:02}"): b"v"}))
        if number % 20 == 10:
            await store.split(key(f"{sim.random.randrange(1, 20):02}x{number}"))
        await asyncio.sleep(sim.random.choice((0, 0, 0.004)))
    return written
