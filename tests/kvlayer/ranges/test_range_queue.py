"""The range queue: splits by size and by load, merges of what is small, and sticky borders."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.span_config import SpanConfig
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, key, open_store, put, reopen, running_store

SMALL = {"kv.range_max_bytes": "1000000", "kv.range_min_bytes": "200000"}
SPAN = table_span(7)


async def load(store: Store, rows: range, *, size: int = 1000) -> None:
    for first in range(rows.start, rows.stop, 100):
        names = [key(f"{number:06}") for number in range(first, min(first + 100, rows.stop))]
        await put(store, dict.fromkeys(names, b"v" * size))


def test_large_range_is_split_evenly() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim, settings=Settings(SMALL)) as store:
            await load(store, range(4000))
            await asyncio.sleep(30)
            found = store.ranges(SPAN)
            assert 4 <= len(found) <= 8
            assert all(each.bytes <= 1_000_000 for each in found)
            assert not any(each.sticky_until for each in found)
            rows = [
                len(await store.snapshot(store.clock.last).scan(part))
                for part in store.divide(SPAN)
            ]
            assert sum(rows) == 4000
            assert max(rows) < 1000

    sim.run(main())


def test_small_ranges_are_merged() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim, settings=Settings(SMALL)) as store:
            await load(store, range(4000))
            await asyncio.sleep(30)
            assert len(store.ranges(SPAN)) >= 4
            await put(store, {key(f"{number:06}"): None for number in range(4000)})
            await asyncio.sleep(1)
            await store.collect_garbage(SPAN, store.clock.now())
            await asyncio.sleep(60)
            assert len(store.ranges()) == 1

    sim.run(main())


def test_what_was_split_is_not_merged_back() -> None:
    """Splitting and merging the same ranges for ever would end their feeds for ever."""
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim, settings=Settings(SMALL)) as store:
            await load(store, range(1200))
            await asyncio.sleep(30)
            before = [found.id for found in store.ranges()]
            for number in range(20):
                await put(store, {key("last"): b"%d" % number})
                await asyncio.sleep(15)
            assert [found.id for found in store.ranges()] == before
            assert len(before) == 2

    sim.run(main())


def test_sticky_border_stays_until_it_expires() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            until = Timestamp(store.clock.now() + duration(seconds=60))
            await store.split(key("b"), sticky_until=until)
            await store.split(key("c"))
            await put(store, {key("a"): b"1"})
            await asyncio.sleep(40)
            assert len(store.ranges()) == 3
            await asyncio.sleep(40)
            await put(store, {key("a"): b"2"})
            await asyncio.sleep(30)
            assert [found.start for found in store.ranges()][1:] == [key("c")]

    sim.run(main())


def test_busy_range_is_split_where_the_load_divides() -> None:
    sim = Simulation(5)
    settings = Settings(
        {
            "kv.range_split.by_load.enabled": "true",
            "kv.range_split.load_threshold": "50",
            "kv.range_queue.interval": "2s",
        }
    )

    async def main() -> None:
        async with running_store(sim, settings=settings) as store:
            reader = store.begin(read_only=True)
            await put(store, {key("m"): b"1"})
            for number in range(1000):
                await reader.get(key(f"{number % 100:02}"))
                await asyncio.sleep(0.005)
                if number % 100 == 0:
                    await put(store, {key("m"): b"1"})
            borders = [found.start for found in store.ranges()][1:]
            assert borders
            assert key("25") < borders[0] < key("75")
            await reader.rollback()
            settings.set("kv.range_split.by_load.enabled", "false")
            await put(store, {key("m"): b"2"})
            await asyncio.sleep(60)
            assert len(store.ranges()) == 1

    sim.run(main())


def test_one_hot_key_is_no_reason_to_split() -> None:
    sim = Simulation(6)
    settings = Settings(
        {"kv.range_split.by_load.enabled": "true", "kv.range_split.load_threshold": "10"}
    )

    async def main() -> None:
        async with running_store(sim, settings=settings) as store:
            for number in range(2000):
                await put(store, {key("hot"): b"%d" % number})
                await asyncio.sleep(0.01)
            assert len(store.ranges()) == 1

    sim.run(main())


def test_span_config_says_how_large() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            await store.span_configs.set(SPAN, SpanConfig(range_max_bytes=500_000))
            await load(store, range(1000))
            await asyncio.sleep(30)
            assert len(store.ranges(SPAN)) >= 2

    sim.run(main())


def test_sizes_survive_a_crash() -> None:
    sim = Simulation(8)

    async def before() -> int:
        store = await open_store(sim, settings=Settings(SMALL))
        await load(store, range(600))
        await asyncio.sleep(30)
        size = store.ranges(SPAN)[0].bytes
        crash(sim)
        return size

    async def after(size: int) -> None:
        store = await reopen(sim, settings=Settings(SMALL))
        assert abs(store.ranges(SPAN)[0].bytes - size) <= 50_000
        await store.close()

    sim.run(after(sim.run(before())))


def test_feed_of_a_range_that_grew_too_large_divides_its_span() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim, settings=Settings(SMALL)) as store:
            feed = store.range_feed(Span(key("a"), key("b")), store.clock.now())
            await load(store, range(2000))
            await asyncio.sleep(30)
            try:
                while True:
                    await feed.next()
            except RangeFeedEnded as end:
                assert end.reason is FeedEnd.RANGE_SPLIT

    sim.run(main())


def test_idle_store_has_no_timer() -> None:
    sim = Simulation(10)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {key("a"): b"1"})
            await asyncio.sleep(120)
            assert store._range_queue._timer is None

    sim.run(main())


@pytest.mark.parametrize("killed", [False, True])
def test_small_ranges_keep_their_sizes_in_a_restart(killed: bool) -> None:
    """Sizes lack the versions of the last seconds before a kill."""
    sim = Simulation(9)
    sizes: list[tuple[int, int]] = []

    async def before() -> None:
        store = await open_store(sim)
        await store.split(SPAN.start, sticky_until=Timestamp(2**62))
        await load(store, range(10))
        if killed:
            await asyncio.sleep(30)
            crash(sim)
        sizes.extend((found.bytes, found.version_count) for found in store.ranges())
        if not killed:
            await store.close()

    async def after() -> None:
        store = await reopen(sim)
        assert [(found.bytes, found.version_count) for found in store.ranges()] == sizes
        assert store.ranges(SPAN)[0].version_count == 10
        await store.close()

    sim.run(before())
    sim.run(after())


def test_an_idle_store_writes_no_sizes() -> None:
    sim = Simulation(10)

    async def main() -> None:
        async with running_store(sim) as store:
            await load(store, range(10))
            await asyncio.sleep(60)
            index = store.log.last_index
            await asyncio.sleep(600)
            assert store.log.last_index == index

    sim.run(main())
