"""The resolved timestamp that a range keeps: where the next processor of its feeds begins."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.clock import ZERO
from tailrace.kvlayer.errors import StoreClosed
from tailrace.kvlayer.events import Checkpoint, Event
from tailrace.kvlayer.rangefeed.resolved_timestamp import ResolvedTimestamp
from tailrace.kvlayer.span import Span
from tests.harness.simulation import Simulation
from tests.harness.small_range import SmallRange, resolved_in
from tests.harness.small_range import key as small_key
from tests.harness.stores import crash, key, open_store, put, reopen, running_store

SPAN = Span.prefix(key(""))
X = b"x" * 16


def test_resolved_survives_a_crash() -> None:
    sim = Simulation(1)

    async def before() -> None:
        store = await open_store(sim)
        store.range_feed(SPAN, ZERO)
        await put(store, {key("a"): b"1"})
        await asyncio.sleep(11)
        await put(store, {key("b"): b"2"})
        await asyncio.sleep(11)
        await put(store, {key("c"): b"3"})
        store.check_open()
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        written = [
            ts async for rows in store.versions(SPAN, ZERO, store.clock.now()) for _, ts, _ in rows
        ]
        feed, events = store.range_feed(SPAN, ZERO), list[Event]()
        while polled := feed.poll():  # in this step: nothing is closed meanwhile
            events += polled
        assert resolved_in(events)[0] > written[-2]
        await store.close()

    sim.run(before())
    sim.run(after())


def test_idle_range_writes_nothing_to_the_log() -> None:
    sim = Simulation(2)

    async def run() -> None:
        async with running_store(sim) as store:
            feed = store.range_feed(SPAN, ZERO)
            await put(store, {key("a"): b"1"})
            await asyncio.sleep(30)
            written, resolved = store.log.last_index, (await feed.next())[-1]
            await asyncio.sleep(600)
            later = (await feed.next())[-1]
            assert store.log.last_index == written
            assert isinstance(resolved, Checkpoint)
            assert isinstance(later, Checkpoint)
            assert later.resolved > resolved.resolved
            feed.close()

    sim.run(run())


def test_next_processing_begins_where_the_last_one_ended() -> None:
    """An aborted transaction's intents, still to be cleaned up, are not counted again."""
    small = SmallRange()
    feed = small.feeds.register(SPAN, ZERO)
    small.put((small_key("a"), b"1"))
    small.advance(10)
    resolved = resolved_in(feed.poll())[-1]
    feed.close()
    assert small.persisted_resolved == resolved
    again = small.feeds.register(SPAN, ZERO)
    assert resolved_in(again.poll()) in ([], [resolved])
    assert small.feeds.resolved == resolved


def test_persisted_resolved_is_where_a_tracker_starts() -> None:
    small = SmallRange()
    ts = small.clock.now()
    tracker = ResolvedTimestamp(ts)
    assert tracker.resolved == ts
    assert not tracker.scanned()
    later = small.clock.now()
    assert tracker.close(later)
    assert tracker.resolved == later


def test_closing_store_persists_nothing() -> None:
    sim = Simulation(3)

    async def run() -> None:
        store = await open_store(sim)
        feed = store.range_feed(SPAN, ZERO)
        await put(store, {key("a"): b"1"})
        await store.close()
        feed.close()
        try:
            store.check_open()
        except StoreClosed:
            return
        raise AssertionError("the store is open")

    sim.run(run())
