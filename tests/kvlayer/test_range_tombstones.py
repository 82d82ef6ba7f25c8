"""Range tombstones: the fragments against a naive model, and one claim a test over a store."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from tailrace.kvlayer.errors import LockTimeout
from tailrace.kvlayer.events import DeleteRange, Event, SteadyState, ValueBatch
from tailrace.kvlayer.mvcc import scan_at
from tailrace.kvlayer.range_tombstones import NO_TOMBSTONES, RangeTombstone, RangeTombstones
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.span import Span, prefix_end
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn.one_phase import Evaluation
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, key, open_store, put, reopen, running_store

ALL = Span.prefix(key(""))
NAMES = "abcdefgh"
Rows = dict[bytes, bytes]


def part(low: str, high: str) -> Span:
    return Span(key(low), key(high))


async def delete(store: Store, span: Span, *, then: Rows | None = None) -> Timestamp:
    """Deletes the span, and writes `then` behind it in the same transaction."""

    def evaluate(evaluation: Evaluation) -> None:
        evaluation.delete_range(span)
        if then:
            evaluation.put(list(then), list(then.values()))

    return (await store.one_phase(evaluate))[1]


async def rows_of(store: Store, at: Timestamp) -> Rows:
    return dict(await store.snapshot(at).scan(ALL))


def all_of(feed: RangeFeed) -> list[Event]:
    events: list[Event] = []
    while polled := feed.poll():
        events += polled
    return events


SPANS = st.tuples(st.integers(0, 7), st.integers(1, 8)).filter(lambda pair: pair[0] < pair[1])


@settings(max_examples=200)
@given(st.lists(st.tuples(SPANS, st.integers(1, 9)), max_size=8, unique_by=lambda found: found[1]))
def test_fragments_agree_with_naive_model(written: list[tuple[tuple[int, int], int]]) -> None:
    spans = [(Span(bytes((low,)), bytes((high,))), ts) for (low, high), ts in written]
    tombstones = RangeTombstones(tuple(RangeTombstone(span, Timestamp(ts)) for span, ts in spans))
    assert bool(tombstones) == bool(spans)
    for name in range(9):
        for at in range(11):
            over = [ts for span, ts in spans if ts <= at and span.contains(bytes((name,)))]
            found = tombstones.newest(bytes((name,)), Timestamp(at))
            assert found == max(over, default=None)


def test_range_deletion_is_one_entry_and_one_record() -> None:
    sim = Simulation(1)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key(f"{number:04}"): b"v" for number in range(1000)})
            before = store.log.last_index
            await delete(store, ALL)
            assert store.log.last_index == before + 1
            [(_, entry)] = store.log.read(before + 1, before + 1)
            assert len(entry) < 100
            prefix = keys.RANGE_TOMBSTONE
            assert len(list(store.engine.scan(prefix, prefix_end(prefix)))) == 1
            assert await rows_of(store, store.clock.now()) == {}

    sim.run(run())


def test_history_below_a_range_deletion_is_readable() -> None:
    sim = Simulation(2)

    async def run() -> None:
        async with running_store(sim) as store:
            first = await put(store, {key("a"): b"1", key("b"): b"1"})
            deleted = await delete(store, part("a", "b"))
            assert await rows_of(store, first) == {key("a"): b"1", key("b"): b"1"}
            assert await rows_of(store, deleted) == {key("b"): b"1"}
            second = await put(store, {key("a"): b"2"})
            assert (await rows_of(store, second))[key("a")] == b"2"

    sim.run(run())


def test_what_is_written_behind_the_deletion_stays() -> None:
    sim = Simulation(3)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key("a"): b"old", key("b"): b"old"})
            at = await delete(store, ALL, then={key("b"): b"new"})
            assert await rows_of(store, at) == {key("b"): b"new"}

    sim.run(run())


def test_own_deletion_is_read() -> None:
    sim = Simulation(4)

    def evaluate(evaluation: Evaluation) -> None:
        evaluation.put([key("c")], [b"mine"])
        evaluation.delete_range(part("a", "d"))
        assert evaluation.get(key("a")) is None
        assert evaluation.get(key("c")) is None
        assert evaluation.first_existing([key("a"), key("b")]) is None
        evaluation.put([key("b")], [b"again"])
        assert evaluation.scan(ALL) == [(key("b"), b"again"), (key("d"), b"1")]

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key(name): b"1" for name in "abd"})
            await store.one_phase(evaluate)

    sim.run(run())


def test_deletion_waits_for_intents_in_its_span() -> None:
    sim = Simulation(5)

    async def run() -> None:
        async with running_store(sim) as store:
            transaction = store.begin()
            await transaction.put([key("b")], [b"1"])
            with pytest.raises(LockTimeout):
                await store.one_phase(lambda e: e.delete_range(ALL), lock_timeout=0.1)
            await store.one_phase(lambda e: e.delete_range(part("c", "d")), lock_timeout=0.1)
            waiting = asyncio.create_task(delete(store, ALL))
            await asyncio.sleep(0.01)
            committed = await transaction.commit()
            deleted = await waiting
            assert deleted > committed
            assert await rows_of(store, deleted) == {}

    sim.run(run())


def test_older_transaction_writes_above_the_deletion() -> None:
    sim = Simulation(6)

    async def run() -> None:
        async with running_store(sim) as store:
            transaction = store.begin()
            deleted = await delete(store, ALL)
            await transaction.put([key("a")], [b"1"])
            assert await transaction.commit() > deleted
            assert await rows_of(store, store.clock.now()) == {key("a"): b"1"}

    sim.run(run())


def test_incremental_reads_name_the_keys() -> None:
    """Exports and refreshes see a deletion of each key that was there, in order of time."""
    sim = Simulation(7)

    async def run() -> None:
        async with running_store(sim) as store:
            start = await put(store, {key("a"): b"1", key("b"): b"1", key("z"): b"1"})
            await put(store, {key("b"): None})
            deleted = await delete(store, part("a", "m"), then={key("c"): b"2"})
            again = await put(store, {key("a"): b"3"})
            found = [
                (name, ts, body)
                async for rows in store.versions(ALL, start, again)
                for name, ts, body in rows
            ]
            assert found[1:] == [
                (key("a"), deleted, None),
                (key("c"), deleted, b"2"),
                (key("a"), again, b"3"),
            ]

    sim.run(run())


def test_range_deletions_come_first_in_catch_up() -> None:
    sim = Simulation(8)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key("a"): b"1"})
            first = await delete(store, part("a", "c"))
            second = await delete(store, part("b", "z"))
            await put(store, {key("b"): b"2"})
            feed = store.range_feed(part("a", "p"), ZERO)
            events = all_of(feed)
            assert events[:2] == [
                DeleteRange(part("a", "c"), first),
                DeleteRange(part("b", "p"), second),
            ]
            assert isinstance(events[2], ValueBatch)
            later = await delete(store, part("k", "z"))
            assert DeleteRange(part("k", "p"), later) in await feed.next()
            feed.close()

    sim.run(run())


def test_start_above_a_range_deletion_leaves_it_out() -> None:
    sim = Simulation(9)

    async def run() -> None:
        async with running_store(sim) as store:
            deleted = await delete(store, ALL)
            feed = store.range_feed(ALL, deleted)
            assert isinstance(feed.poll()[0], SteadyState)
            feed.close()

    sim.run(run())


def test_previous_value_below_a_range_deletion_is_none() -> None:
    sim = Simulation(10)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key("a"): b"1", key("b"): b"1"})
            deleted = await delete(store, part("a", "b"))
            await put(store, {key("a"): b"2", key("b"): b"2"})
            feed = store.range_feed(ALL, deleted, with_previous=True)
            [batch] = [event for event in all_of(feed) if isinstance(event, ValueBatch)]
            assert batch.previous == [None, b"1"]
            feed.close()

    sim.run(run())


def test_omitted_range_deletion_is_no_event() -> None:
    sim = Simulation(11)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key("a"): b"1"})
            live = store.range_feed(ALL, ZERO)
            await store.one_phase(lambda e: e.delete_range(ALL, omit_from_feeds=True))
            caught_up = store.range_feed(ALL, ZERO)
            await asyncio.sleep(0.05)
            for feed in (live, caught_up):
                assert not any(isinstance(event, DeleteRange) for event in all_of(feed))
                feed.close()
            assert await rows_of(store, store.clock.now()) == {}

    sim.run(run())


def test_garbage_collection_removes_rows_and_then_tombstone() -> None:
    sim = Simulation(12)

    async def run() -> None:
        async with running_store(sim) as store:
            await put(store, {key(name): b"1" for name in NAMES})
            await delete(store, part("a", "e"))
            await put(store, {key("b"): b"2"})
            snapshot = store.engine.snapshot()
            now = store.clock.now()
            assert await store.collect_garbage(part("c", "z"), now) == 2
            [left] = store.engine.range_tombstones
            assert left.span == part("a", "c")
            assert await store.collect_garbage(ALL, now) == 2
            assert not store.engine.range_tombstones
            expected = {key(name): b"1" for name in "efgh"} | {key("b"): b"2"}
            assert await rows_of(store, store.clock.now()) == expected
            # Who looks at the state before still sees the deletion that hides the rows.
            assert dict(scan_at(snapshot, ALL, MAX_TIMESTAMP)) == expected
            snapshot.close()

    sim.run(run())


def test_range_deletion_survives_a_crash() -> None:
    sim = Simulation(13)

    async def before() -> None:
        store = await open_store(sim)
        await put(store, {key("a"): b"1"})
        await delete(store, ALL)
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert store.engine.range_tombstones
        assert await rows_of(store, store.clock.now()) == {}
        await store.close()

    sim.run(before())
    sim.run(after())


def test_state_without_tombstones_is_false() -> None:
    assert not NO_TOMBSTONES
    assert NO_TOMBSTONES.newest(b"a", MAX_TIMESTAMP) is None


async def random_history(store: Store, random: Random) -> dict[Timestamp, Rows]:
    """The rows after each commit, as a model in memory has them."""
    model: Rows = {}
    states: dict[Timestamp, Rows] = {}
    for _ in range(40):
        low, high = sorted(random.sample(range(9), 2))
        span = Span(key(chr(97 + low)), key(chr(97 + high)))
        if random.random() < 0.3:
            then = {key(random.choice(NAMES)): b"then"} if random.random() < 0.5 else {}
            at = await delete(store, span, then=then)
            model = {name: body for name, body in model.items() if not span.contains(name)} | then
        else:
            name, body = key(random.choice(NAMES)), random.choice((None, b"1", b"2"))
            at = await put(store, {name: body})
            model = {other: kept for other, kept in model.items() if other != name}
            if body is not None:
                model[name] = body
        states[at] = model
    return states


@pytest.mark.parametrize("seed", range(15))
def test_random_history_reads_as_the_model(seed: int) -> None:
    """Gets, scans both ways, and versions replayed from any point, at every timestamp."""
    sim = Simulation(seed)

    async def run() -> None:
        async with running_store(sim) as store:
            states = await random_history(store, sim.random)
            for at, rows in states.items():
                assert await rows_of(store, at) == rows
                assert dict(scan_at(store.engine, ALL, at, reverse=True)) == rows
                reader = store.begin(read_timestamp=at)
                assert {n: b for n in map(key, NAMES) if (b := await reader.get(n))} == rows
                await reader.rollback()
            start = sim.random.choice(list(states))
            replayed, last = dict(states[start]), max(states)
            async for versions in store.versions(ALL, start, last):
                for name, _, body in versions:
                    replayed.pop(name, None)
                    if body is not None:
                        replayed[name] = body
            assert replayed == states[last]

    sim.run(run())
