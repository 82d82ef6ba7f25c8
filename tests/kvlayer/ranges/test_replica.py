"""Replicas: versions from another store, and ranges that close by what that store has said."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
import pytest

from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import RangeRefused
from tailrace.kvlayer.events import ValueBatch
from tailrace.kvlayer.rangefeed import SpanFeed
from tailrace.kvlayer.raw import keyspace_span, raw_key
from tailrace.kvlayer.replication.replica import (
    Begin,
    End,
    Ingest,
    Look,
    Open,
    ReplicaRefused,
    ReplicaState,
)
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, open_store, put, reopen, running_store

SPAN = keyspace_span(7)
A, B, M, Z = (raw_key(7, name) for name in (b"a", b"b", b"m", b"z"))
FEED_SECONDS = 0.1


async def begun(store: Store) -> ReplicaState:
    await store.replica(SPAN, Begin())
    opened = await store.replica(SPAN, Open("main"))
    assert opened is not None
    return opened


def sent(epoch: int, *versions: tuple[bytes, int, bytes], resolved: int | None = None) -> Ingest:
    return Ingest(
        source="main",
        epoch=epoch,
        origin=9,
        keys=[key for key, _, _ in versions],
        bodies=[body for _, _, body in versions],
        timestamps=[Timestamp(at) for _, at, _ in versions],
        resolved=None if resolved is None else Timestamp(resolved),
    )


async def told(feed: SpanFeed) -> tuple[list[tuple[bytes, int]], int]:
    """The versions that came within a while, and how far the feed was resolved."""
    found: list[tuple[bytes, int]] = []
    with suppress(TimeoutError):
        async with asyncio.timeout(FEED_SECONDS):
            while True:
                for event in await feed.next():
                    if isinstance(event, ValueBatch):
                        found += zip(event.keys, event.timestamps, strict=True)
    return found, feed.frontier.low_water


def test_a_replica_closes_by_its_source_and_the_rest_by_the_clock() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            here, there = (store.span_feed([s], Timestamp(1)) for s in (SPAN, keyspace_span(8)))
            assert await told(here) == ([], 1)
            now = store.clock.last
            old = now - duration(seconds=3600)
            await store.replica(SPAN, sent(1, (A, old, b"1"), (M, old + 5, b"2")))
            assert await told(here) == ([(A, old), (M, old + 5)], 1)
            await told(there)
            assert there.frontier.low_water > now
            # Ranges within the replica may split and merge; each closes as before.
            await store.split(M)
            await store.replica(SPAN, sent(1, (B, old + 9, b"3"), resolved=old + 7))
            versions, resolved = await told(here)
            assert (B, old + 9) in versions
            assert resolved == old + 7

    sim.run(main())


def test_borders_between_closings_stay() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            await store.split(M)
            for found in store.ranges():
                if found.end in (SPAN.start, SPAN.end):
                    with pytest.raises(RangeRefused, match="replica"):
                        await store.merge(found.id)
            await store.unsplit(M)
            await store._range_queue.look()
            assert [found.start for found in store.ranges()][1:] == [SPAN.start, SPAN.end]
            await store.replica(SPAN, End())
            await store._range_queue.look()
            assert len(store.ranges()) == 1

    sim.run(main())


def test_what_is_known_is_dropped_and_what_is_late_or_ahead_refused() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            now = store.clock.last
            first = sent(1, (A, now, b"1"), (A, now + 3, b"2"), resolved=now + 3)
            assert (await store.replica(SPAN, first)) == ReplicaState(
                source="main", epoch=1, resolved=Timestamp(now + 3), taken=2
            )
            again = await store.replica(SPAN, first)
            assert again is not None
            assert (again.taken, again.known) == (0, 2)
            ahead = now + duration(seconds=61)
            refusals = {
                "not above what is resolved": sent(1, (B, now + 1, b"late")),
                "ahead_max": sent(1, (B, ahead, b"ahead")),
                "none of the replica's": sent(1, (raw_key(8, b"a"), now + 9, b"")),
                "epoch 2 of main is over": sent(2, (B, now + 9, b"")),
                "epoch 1 of other": msgspec.structs.replace(first, source="other"),
            }
            for words, order in refusals.items():
                with pytest.raises(ReplicaRefused, match=words):
                    await store.replica(SPAN, order)
            with pytest.raises(ReplicaRefused, match="cannot be a second"):
                await store.replica(SPAN, Open("other"))
            assert await store.replica(keyspace_span(8), Look()) is None
            with pytest.raises(ReplicaRefused, match="no replica"):
                await store.replica(keyspace_span(8), Open("main"))
            await put(store, {raw_key(8, b"k"): b"v"})
            with pytest.raises(ReplicaRefused, match="versions of its own"):
                await store.replica(keyspace_span(8), Begin())

    sim.run(main())


def test_tasks_of_a_source_go_on_by_themselves() -> None:
    """Each has its epoch and its progress, and the replica has resolved the least of theirs."""
    sim = Simulation(8)
    low, high = Span(SPAN.start, M), Span(M, SPAN.end)
    at: list[Timestamp] = []

    async def before() -> None:
        store = await open_store(sim)
        await store.replica(SPAN, Begin())
        at.append(store.clock.last)
        for task, epoch in ((low, 1), (high, 2)):
            opened = await store.replica(SPAN, Open("main", task, SPAN))
            assert opened is not None
            assert (opened.epoch, opened.resolved, opened.note) == (epoch, 0, b"")
        told = await store.replica(SPAN, sent(2, (Z, at[0], b"1"), resolved=at[0] + 9))
        assert told is not None
        assert (told.epoch, told.resolved, told.taken) == (2, at[0] + 9, 1)
        assert (await store.replica(SPAN, Look())).resolved == 0  # type: ignore[union-attr]
        noted = msgspec.structs.replace(sent(1, resolved=at[0] + 3), note=b"low")
        await store.replica(SPAN, noted)
        for words, order in {
            "its task's": sent(1, (Z, at[0] + 20, b"")),
            "epoch 0": sent(0, (A, at[0] + 20, b"")),
            "epoch 3": sent(3, (A, at[0] + 20, b"")),
            "not above what is resolved": sent(2, (Z, at[0] + 5, b"late")),
        }.items():
            with pytest.raises(ReplicaRefused, match=words):
                await store.replica(SPAN, order)
        with pytest.raises(ReplicaRefused, match="no part"):
            await store.replica(SPAN, Open("main", high, low))
        await store.replica(SPAN, sent(1, (A, at[0] + 5, b"2")))
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert (await store.replica(SPAN, Look())).resolved == at[0] + 3  # type: ignore[union-attr]
        opened = await store.replica(SPAN, Open("main", low, SPAN))
        assert opened is not None
        assert (opened.epoch, opened.resolved, opened.note) == (3, at[0] + 3, b"low")
        with pytest.raises(ReplicaRefused, match="epoch 1 of main is over"):
            await store.replica(SPAN, sent(1, (A, at[0] + 20, b"")))
        await store.replica(SPAN, sent(2, (Z, at[0] + 20, b"3"), resolved=at[0] + 21))
        whole = await store.replica(SPAN, Open("main"))
        assert whole is not None
        assert (whole.epoch, whole.resolved, whole.tasks) == (4, at[0] + 3, ())
        with pytest.raises(ReplicaRefused, match="epoch 2 of main is over"):
            await store.replica(SPAN, sent(2, (Z, at[0] + 30, b"")))
        await store.close()

    sim.run(before())
    sim.run(after())


def test_a_replica_is_one_again_after_a_crash() -> None:
    sim = Simulation(4)
    at: list[Timestamp] = []

    async def before() -> None:
        store = await open_store(sim)
        await begun(store)
        at.append(store.clock.last)
        await store.replica(SPAN, sent(1, (A, at[0], b"1"), (B, at[0] + 9, b"2"), resolved=at[0]))
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        looked = await store.replica(SPAN, Look())
        assert looked == ReplicaState(source="main", epoch=1, resolved=at[0])
        opened = await store.replica(SPAN, Open("main"))
        assert opened is not None
        assert opened.epoch == 2
        with pytest.raises(ReplicaRefused, match="epoch 1 of main is over"):
            await store.replica(SPAN, sent(1, (M, at[0] + 20, b"3")))
        feed = store.span_feed([SPAN], Timestamp(at[0] - 1))
        assert await told(feed) == ([(A, at[0]), (B, at[0] + 9)], at[0])
        await store.close()

    sim.run(before())
    sim.run(after())


def test_what_is_written_after_the_end_is_newer() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            with pytest.raises(ReplicaRefused, match="no other writes"):
                await put(store, {A: b"too early"})
            ahead = Timestamp(store.clock.last + duration(seconds=50))
            await store.replica(SPAN, sent(1, (A, ahead, b"1"), resolved=ahead - 5))
            feed = store.span_feed([SPAN], Timestamp(1))
            await told(feed)
            ended = await store.replica(SPAN, End())
            assert ended is not None
            assert ended.resolved == ahead - 5
            for order in (sent(1, (A, ahead + 1, b"2")), Open("main")):
                with pytest.raises(ReplicaRefused, match="promoted"):
                    await store.replica(SPAN, order)
            assert await store.replica(SPAN, Begin()) == ended
            written = await put(store, {A: b"mine"})
            assert written > ahead
            versions, resolved = await told(feed)
            assert versions[-1] == (A, written)
            assert resolved >= written
            assert await store.snapshot(store.clock.last).get(A) == b"mine"

    sim.run(main())


def test_garbage_stays_below_what_a_replica_has_resolved() -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            old = store.clock.last
            await store.replica(SPAN, sent(1, (A, old, b"1"), (A, old + 4, b"2"), resolved=old + 2))
            await store.collect_garbage(SPAN, store.clock.now())
            assert await store.snapshot(Timestamp(old + 2)).get(A) == b"1"
            assert store.gc_threshold_of(SPAN) == old + 1

    sim.run(main())


def test_values_of_an_omitted_origin_are_left_out() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            await begun(store)
            at = store.clock.last
            await store.replica(SPAN, sent(1, (A, at, b"1")))
            feeds = [
                store.span_feed([SPAN], Timestamp(1), omitted_origins=frozenset((origin,)))
                for origin in (9, 8)
            ]
            await store.replica(SPAN, sent(1, (B, at + 1, b"2"), resolved=at + 1))
            left, right = [await told(feed) for feed in feeds]
            assert left == ([], at + 1)
            assert right == ([(A, at), (B, at + 1)], at + 1)

    sim.run(main())
