"""Ranges split and merge under transactions and feeds, and come back after a crash."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded, RangeRefused
from tailrace.kvlayer.events import Checkpoint, SteadyState, ValueBatch
from tailrace.kvlayer.keys import ALL_KEYS
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation
from tests.harness.simulation import Simulation
from tests.harness.stores import (
    crash,
    hold_log,
    key,
    open_store,
    put,
    release_log,
    reopen,
    running_store,
    unbuffered,
)

A, B, C, D, M, Z = (key(name) for name in "abcdmz")
SPAN = Span(key(""), key("~"))


def borders(store: Store) -> list[bytes]:
    return [found.start for found in store.ranges()][1:]


def value_keys(events: list[object]) -> list[bytes]:
    return [name for event in events if isinstance(event, ValueBatch) for name in event.keys]


async def end_of(feed: RangeFeed) -> tuple[list[object], FeedEnd]:
    """What the feed still tells, and why it ends."""
    events: list[object] = []
    try:
        while True:
            events += await feed.next()
    except RangeFeedEnded as end:
        return events, end.reason


def test_split_cuts_and_merge_joins() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await store.split(M)
            left, right = store.ranges()
            assert (left.end, right.start) == (M, M)
            assert store.divide(SPAN) == [Span(SPAN.start, M), Span(M, SPAN.end)]
            await store.merge(left.id)
            assert [found.id for found in store.ranges()] == [left.id]
            await store.split(M)
            assert store.ranges()[1].id > right.id  # an id is never used again

    sim.run(main())


@pytest.mark.parametrize(("size", "known"), [(10, False), (100_000, True)])
def test_large_values_are_not_read_for_the_sizes_of_the_halves(size: int, known: bool) -> None:
    """Rows of a megabyte, some times rewritten, were read in one step of the loop: 170 ms."""
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            for number in range(40):
                await put(store, {key(f"{number:02}"): b"v" * size})
            (before,) = store.ranges(SPAN)
            await store.split(key("20"))
            halves = store.ranges(SPAN)
            assert len(halves) == 2
            assert all(half.bytes > 15 * size for half in halves)
            estimated = sum(half.bytes for half in halves) == before.bytes
            assert estimated is known, "bytes of the log are more than those of the engine"

    sim.run(main())


def test_one_entry_holds_parts_of_several_ranges() -> None:
    """A crash at any moment leaves all of a step, or nothing."""
    sim = Simulation(2)

    async def before() -> None:
        store = await open_store(sim)
        await store.split(M)
        index = store.log.last_index
        await put(store, {A: b"1", Z: b"1"})
        assert store.log.last_index == index + 1
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert borders(store) == [M]
        rows = await store.snapshot(store.clock.last).scan(SPAN)
        assert rows == [(A, b"1"), (Z, b"1")]
        await store.close()

    sim.run(before())
    sim.run(after())


def test_reads_cross_borders() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            for name in (B, C, D):
                await store.split(name)
            names = [A, B, C, D, M, Z]
            rows = [(name, b"v") for name in names]
            at = await put(store, dict(rows))
            transaction = store.begin()
            assert await transaction.scan(SPAN) == rows
            assert await transaction.scan(SPAN, reverse=True) == rows[::-1]
            assert await transaction.scan(SPAN, limit=3, reverse=True) == rows[:2:-1]
            await transaction.rollback()
            found = [row async for slice_ in store.versions(SPAN, ZERO, at) for row in slice_]
            assert found == [(name, at, b"v") for name in names]
            await put(store, dict.fromkeys(names))
            assert await store.collect_garbage(SPAN, store.clock.now()) == 12

    sim.run(main())


def test_transaction_with_intents_on_both_sides_of_a_split_commits_once() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            feed = store.span_feed([SPAN], store.clock.now())
            transaction = store.begin()
            await transaction.put([A, Z], [b"1", b"1"])
            await store.split(M)
            await transaction.put([B], [b"1"])
            store.check_invariants()
            at = await transaction.commit()
            got: list[bytes] = []
            while feed.frontier.low_water < at:
                got += value_keys([*await feed.next()])
            assert sorted(got) == [A, B, Z]
            assert feed.piece_count == 2
            feed.close()

    sim.run(main())


def test_merge_while_a_transaction_holds_intents() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await store.split(M)
            feed = store.span_feed([SPAN], store.clock.now())
            transaction = store.begin()
            await transaction.put([A, Z], [b"1", b"1"])
            await store.merge(1)
            await store._ranges.push(transaction.id)
            at = await transaction.commit()
            got: list[bytes] = []
            while feed.frontier.low_water < at:
                got += value_keys([*await feed.next()])
            assert sorted(got) == [A, Z]
            assert feed.piece_count == 1  # the pieces are one again
            feed.close()

    sim.run(main())


@pytest.mark.parametrize("merged", [False, True])
def test_feeds_of_a_changed_range_end_after_a_checkpoint(merged: bool) -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with running_store(sim) as store:
            if merged:
                await store.split(M)
            feed = store.range_feed(Span(SPAN.start, C), store.clock.now())
            await put(store, {A: b"1"})
            await asyncio.sleep(0.05)
            await (store.merge(1) if merged else store.split(M))
            events, reason = await end_of(feed)
            assert reason is (FeedEnd.RANGE_MERGED if merged else FeedEnd.MANUAL_RANGE_SPLIT)
            assert value_keys(events) == [A]
            assert any(isinstance(event, SteadyState) for event in events)
            assert isinstance(events[-1], Checkpoint)

    sim.run(main())


def test_feed_gets_what_was_not_durable_at_the_split() -> None:
    """Entries before the split are the old range's, those behind it the halves'."""
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            feed = store.span_feed([SPAN], store.clock.now())
            await feed.next()
            hold_log(store)
            first = asyncio.create_task(put(store, {A: b"1", Z: b"1"}))
            await asyncio.sleep(0.001)
            change = asyncio.create_task(store.split(M))
            await asyncio.sleep(0.001)
            second = asyncio.create_task(put(store, {B: b"2", M: b"2"}))
            await asyncio.sleep(0.1)
            assert not feed.poll() or feed.frontier.low_water < store.clock.last
            release_log(store)
            await asyncio.gather(first, change, second)
            got: list[bytes] = []
            while feed.frontier.low_water < second.result():
                got += value_keys([*await feed.next()])
            assert set(got) == {A, Z, B, M}
            feed.close()

    sim.run(main())


@pytest.mark.parametrize("merged", [False, True])
def test_push_and_abort_reach_every_range(merged: bool) -> None:
    """An idle transaction holds no range's resolved timestamp back for good, one that was merged
    over its intents neither."""
    sim = Simulation(8)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await store.split(M)
            feed = store.span_feed([SPAN], store.clock.now())
            transaction = store.begin()
            await transaction.put([A, Z], [b"1", b"1"])
            written_at = transaction.write_timestamp
            if merged:
                await store.merge(1)
            async with asyncio.timeout(4.5):  # by then it was pushed
                while feed.frontier.low_water <= written_at:
                    await feed.next()
            await transaction.rollback()
            await asyncio.sleep(0.1)
            while feed.poll():
                pass
            assert feed.frontier.low_water > transaction.write_timestamp
            feed.close()

    sim.run(main())


def test_pushed_intents_do_not_hold_a_new_feed_back() -> None:
    """What an earlier feed resolved holds; the engine has intents where they were written."""
    sim = Simulation(17)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            first = store.range_feed(SPAN, store.clock.now())
            transaction = store.begin()
            await transaction.put([A], [b"1"])
            await asyncio.sleep(4)
            await store._ranges.push(transaction.id)
            await put(store, {B: b"1"})
            await asyncio.sleep(0.1)
            first.close()  # which writes down what it has resolved
            second = store.range_feed(SPAN, store.clock.now())
            await second.next()
            second.close()
            await transaction.rollback()

    sim.run(main())


def test_merged_range_has_resolved_what_both_had() -> None:
    """What one half has resolved says nothing of an intent in the other."""
    sim = Simulation(18)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await store.split(M)
            transaction = store.begin()
            await transaction.put([Z], [b"1"])
            left = store.range_feed(Span(SPAN.start, M), store.clock.now())
            await asyncio.sleep(4)  # for so long a writer holds the closing back
            await put(store, {A: b"1"})
            await asyncio.sleep(0.1)
            left.close()  # which writes down what the left half has resolved
            assert store._ranges.ranges.holding(A).persisted_resolved > transaction.write_timestamp
            await store.merge(1)
            feed = store.span_feed([SPAN], transaction.read_timestamp)
            await asyncio.sleep(0.1)
            while feed.poll():
                pass
            assert feed.frontier.low_water < transaction.write_timestamp
            await transaction.rollback()
            feed.close()

    sim.run(main())


def test_half_that_was_merged_away_writes_nothing_down() -> None:
    """What it has resolved would be taken for what the whole has, after a restart."""
    sim = Simulation(20)
    written: list[Timestamp] = []

    async def before() -> None:
        store = await open_store(sim)
        await store.split(M)
        transaction = store.begin()
        await transaction.put([Z], [b"1"])
        left = store.range_feed(Span(SPAN.start, M), store.clock.now())
        await asyncio.sleep(4)  # for so long a writer holds the closing back
        for body in (b"1", b"2"):  # the second makes that there is something to write down
            await put(store, {A: body})
            await asyncio.sleep(0.1)
        hold_log(store)
        change = asyncio.create_task(store.merge(1))
        await asyncio.sleep(0.001)
        left.close()  # before it could hear of the merge
        release_log(store)
        await change
        await put(store, {B: b"1"})
        written.append(transaction.write_timestamp)
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert store._ranges.ranges.holding(A).persisted_resolved < written[0]
        await store.close()

    sim.run(before())
    sim.run(after())


def test_feed_of_a_split_range_makes_up_no_previous_value() -> None:
    """Garbage is collected behind the back of a range that is no more, whose feed lags."""
    sim = Simulation(21)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            feed = store.range_feed(SPAN, store.clock.now(), with_previous=True)
            await put(store, {A: b"2"})
            await store.split(M)
            await store.collect_garbage(SPAN, store.clock.now())
            with pytest.raises(BatchTimestampBeforeGC):
                await end_of(feed)

    sim.run(main())


def test_resolved_never_goes_back_over_splits_and_merges() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            feed = store.span_feed([SPAN], store.clock.now())
            seen: list[Timestamp] = []
            for name in (M, D, C):
                transaction = store.begin()
                await transaction.put([A, Z], [b"1", b"1"])
                await store.split(name)
                for _ in range(5):
                    await asyncio.sleep(0.01)
                    feed.poll()
                    seen.append(feed.frontier.low_water)
                await transaction.commit()
                await store.merge(store.ranges()[-2].id)
            assert all(before <= after for before, after in pairwise(seen))
            feed.close()

    sim.run(main())


def test_many_ranges_come_back() -> None:
    sim = Simulation(10)
    names = [key(f"{i:04}") for i in range(300)]

    async def before() -> Timestamp:
        store = await open_store(sim)
        for name in names:
            await store.split(name)
        await put(store, dict.fromkeys(names, b"v"))
        threshold = store.clock.now()
        await store.collect_garbage(Span(names[10], names[20]), threshold)
        crash(sim)
        return threshold

    async def after(threshold: Timestamp) -> None:
        store = await reopen(sim)
        assert borders(store) == names
        assert store.gc_threshold_of(Span(names[19], names[21])) == threshold
        assert store.gc_threshold_of(Span(names[20], names[30])) == ZERO
        newest = (await store.snapshot(store.clock.last).get_with_timestamp(names[5]) or (b"", 0))[
            1
        ]
        assert all(found.max_timestamp >= newest for found in store.ranges(SPAN)[1:])
        assert len(await store.snapshot(store.clock.last).scan(SPAN)) == 300
        store.check_invariants()
        await store.close()

    sim.run(after(sim.run(before())))


def test_intents_of_a_dead_transaction_end_in_every_range() -> None:
    sim = Simulation(11)

    async def before() -> None:
        store = await open_store(sim)
        await store.split(M)
        transaction = store.begin()
        await transaction.put([A, Z], [b"1", b"1"])
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert await store.snapshot(store.clock.last).scan(SPAN) == []
        store.check_invariants()
        await store.close()

    sim.run(before())
    sim.run(after())


@pytest.mark.parametrize(
    "border", [b"", ALL_KEYS.start, ALL_KEYS.end, ALL_KEYS.end + b"x", A + b"x" * 20_000]
)
def test_split_outside_the_store_is_refused(border: bytes) -> None:
    sim = Simulation(12)

    async def main() -> None:
        async with running_store(sim) as store:
            with pytest.raises(RangeRefused, match="border"):
                await store.split(border)
            assert len(store.ranges()) == 1

    sim.run(main())


def test_merges_that_cannot_be_are_refused() -> None:
    sim = Simulation(13)

    async def main() -> None:
        async with running_store(sim) as store:
            with pytest.raises(RangeRefused, match="the last"):
                await store.merge(1)
            with pytest.raises(RangeRefused, match="does not exist"):
                await store.merge(99)
            with pytest.raises(RangeRefused, match="manual split"):
                await store.unsplit(M)

    sim.run(main())


def test_range_feed_over_a_border_is_refused() -> None:
    sim = Simulation(14)

    async def main() -> None:
        async with running_store(sim) as store:
            await store.split(M)
            with pytest.raises(RangeFeedEnded) as refused:
                store.range_feed(SPAN, store.clock.now())
            assert refused.value.reason is FeedEnd.RANGE_KEY_MISMATCH

    sim.run(main())


def test_thresholds_split_and_join_with_their_keys() -> None:
    sim = Simulation(15)

    async def main() -> None:
        async with running_store(sim) as store:
            low = store.clock.now()
            await store.collect_garbage(Span(A, D), low)
            await store.split(B)
            high = store.clock.now()
            await store.collect_garbage(Span(B, C), high)
            await store.merge(1)
            spans = [Span(A, B), Span(B, C), Span(C, D), Span(D, M)]
            assert [store.gc_threshold_of(span) for span in spans] == [low, high, low, ZERO]

    sim.run(main())


def test_bulk_writes_across_ranges_are_one_command() -> None:
    sim = Simulation(16)
    names = [key(f"{i:04}") for i in range(1000)]

    async def main() -> None:
        async with running_store(sim) as store:
            for name in names[100::100]:
                await store.split(name)
            feed = store.span_feed([SPAN], store.clock.now())

            def evaluate(evaluation: Evaluation) -> None:
                evaluation.put(names[::-1], [b"v"] * len(names))

            _, at = await store.one_phase(evaluate)
            got: list[bytes] = []
            while feed.frontier.low_water < at:
                got += value_keys([*await feed.next()])
            assert sorted(got) == names
            feed.close()

    sim.run(main())
