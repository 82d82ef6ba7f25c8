"""Commits to a raw keyspace that became durable together come to feeds as one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import Checkpoint, ValueBatch
from tailrace.kvlayer.rangefeed import RangeFeed, SpanFeed
from tailrace.kvlayer.raw import RawKeyspace, keyspace_span, raw_key
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, put, release_log, running_store

SPAN = keyspace_span(7)
ROW: dict[bytes, bytes | None] = {key("row", 9): b"body"}


def run(body: Callable[[Store, RawKeyspace], Awaitable[None]]) -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await body(store, RawKeyspace(store, 7))

    sim.run(main())


async def steady(store: Store, span: Span = SPAN) -> SpanFeed:
    feed = store.span_feed([span], await store.now())
    while not any(isinstance(event, Checkpoint) for event in await feed.next()):
        pass
    await asyncio.sleep(0.1)
    feed.poll()
    return feed


def batches(feed: SpanFeed | RangeFeed) -> list[list[tuple[bytes, Timestamp]]]:
    """Keys and timestamps of the batches that wait."""
    return [
        list(zip(event.keys, event.timestamps, strict=True))
        for event in feed.poll()
        if isinstance(event, ValueBatch)
    ]


async def together(store: Store, *writes: Awaitable[Timestamp]) -> list[Timestamp]:
    """The writes, in this order, which become durable together."""
    hold_log(store)
    ahead = asyncio.create_task(put(store, ROW))  # a group of its own, on its way
    await asyncio.sleep(0.01)
    tasks = []
    for write in writes:
        tasks.append(asyncio.ensure_future(write))
        await asyncio.sleep(0.01)
    release_log(store)
    await ahead
    return list(await asyncio.gather(*tasks))


def test_a_group_of_commits_is_one_batch() -> None:
    async def body(store: Store, keyspace: RawKeyspace) -> None:
        feed = await steady(store)
        one, two, three = await together(
            store, keyspace.put(b"a", b"1"), keyspace.put(b"b", b"2"), keyspace.delete(b"a")
        )
        a, b = raw_key(7, b"a"), raw_key(7, b"b")
        assert batches(feed) == [[(a, one), (b, two), (a, three)]]

    run(body)


def test_other_commits_keep_their_place_among_them() -> None:
    async def body(store: Store, keyspace: RawKeyspace) -> None:
        feed = await steady(store, Span(SPAN.start, key("~", 9)))
        first, other, last = await together(
            store, keyspace.put(b"a", b"1"), put(store, ROW), keyspace.put(b"a", b"2")
        )
        assert [batch[0][1] for batch in batches(feed)][-3:] == [first, other, last]

    run(body)


def test_a_feed_of_some_keys_is_shown_these() -> None:
    async def body(store: Store, keyspace: RawKeyspace) -> None:
        b = raw_key(7, b"b")
        feed = await steady(store, Span(b, SPAN.end))
        _, at = await together(store, keyspace.put(b"a", b"1"), keyspace.put(b"b", b"2"))
        assert batches(feed) == [[(b, at)]]

    run(body)


def test_ranges_have_runs_of_their_own() -> None:
    async def body(store: Store, keyspace: RawKeyspace) -> None:
        a, b = raw_key(7, b"a"), raw_key(7, b"b")
        await store.split(b)
        feeds = await steady(store, Span(SPAN.start, b)), await steady(store, Span(b, SPAN.end))
        one, two = await together(store, keyspace.put(b"a", b"1"), keyspace.put(b"b", b"2"))
        assert [batches(feed) for feed in feeds] == [[[(a, one)]], [[(b, two)]]]

    run(body)


def test_a_feed_that_begins_among_them_is_shown_each_once() -> None:
    async def body(store: Store, keyspace: RawKeyspace) -> None:
        old, began = await steady(store), await store.now()
        hold_log(store)
        ahead = asyncio.create_task(put(store, ROW))
        await asyncio.sleep(0.01)
        first = asyncio.create_task(keyspace.put(b"a", b"1"))
        await asyncio.sleep(0.01)
        new = store.span_feed([SPAN], began)  # its snapshot has the first, which is not durable
        second = asyncio.create_task(keyspace.put(b"b", b"2"))
        third = asyncio.create_task(keyspace.put(b"c", b"3"))
        await asyncio.sleep(0.01)
        release_log(store)
        await ahead
        a, b, c = (raw_key(7, name) for name in (b"a", b"b", b"c"))
        wanted = {a: await first, b: await second, c: await third}
        shown: list[tuple[bytes, Timestamp]] = []
        while len(shown) < len(wanted):
            for event in await new.next():
                if isinstance(event, ValueBatch):
                    shown += zip(event.keys, event.timestamps, strict=True)
        await asyncio.sleep(0.1)
        assert not batches(new)
        assert sorted(shown) == sorted(wanted.items())
        assert sorted(pair for batch in batches(old) for pair in batch) == sorted(wanted.items())

    run(body)
