from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import StoreClosed
from tailrace.schemafeed import PollingSchemaFeed, TableDropped, TableUnknown, describe
from tests.harness.nodes import open_catalog, open_nodes
from tests.harness.simulation import Simulation


def test_a_row_waits_until_a_poll_proves_its_time() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], catalog.store.clock.now())
            await asyncio.sleep(0.3)
            row_at = catalog.store.clock.now()
            assert feed.try_peek(table.id, row_at) is None
            answer = await feed.peek(table.id, row_at)
            assert (answer.events, answer.canonical) == ((), table)
            assert 0.9 < sim.now < 1.1
            await feed.close()

    sim.run(scenario())


def test_it_is_primed_with_the_descriptors_of_its_start() -> None:
    """A feed that resumes below a schema change is told of it."""
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            cursor = catalog.store.clock.now()
            changed = await catalog.add_column(table.id, "w")
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], cursor)
            assert (await feed.peek(table.id, cursor)).canonical == table
            answer = await feed.pop(table.id, catalog.store.clock.now())
            assert [(e.before, e.after) for e in answer.events] == [(table, changed)]
            assert describe(answer.events[0].kinds) == "ADD_COLUMN"
            await feed.close()

    sim.run(scenario())


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_published_below_a_proven_time(seed: int) -> None:
    """A publication under way while a poll reads either is in the poll or commits above it."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            catalog.store.settings.set("changefeed.experimental_poll_interval", "3ms")
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], catalog.store.clock.now())
            for name in "abcdef":
                changed = await catalog.add_column(table.id, name)
                answer = await feed.pop(table.id, changed.modification_time)
                assert [event.after for event in answer.events] == [changed]
                await asyncio.sleep(sim.random.random() / 100)
            await feed.close()

    sim.run(scenario())


def test_a_dropped_table_ends_its_feed_at_the_drop() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], catalog.store.clock.now())
            dropped = await catalog.publish(table.id, state=DescriptorState.DROPPED)
            with pytest.raises(TableDropped):
                await feed.peek(table.id, dropped.modification_time)
            before = Timestamp(dropped.modification_time - 1)
            assert (await feed.peek(table.id, before)).canonical == table
            await feed.close()

    sim.run(scenario())


def test_a_table_that_is_not_there_is_refused() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            before = catalog.store.clock.now()
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            with pytest.raises(TableUnknown):
                await feed.start([table.id], before)

    sim.run(scenario())


def test_a_closed_store_ends_the_waiting() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], catalog.store.clock.now())
            await asyncio.sleep(0.1)
            waiting = asyncio.create_task(feed.peek(table.id, catalog.store.clock.now()))
            await asyncio.sleep(0.1)
            await catalog.store.close()
            with pytest.raises(StoreClosed):
                await waiting
            await feed.close()

    sim.run(scenario())


def test_a_paused_table_is_not_polled_and_goes_on_from_where_it_is_told() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            table = await catalog.create(locked=True)
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors)
            await feed.start([table.id], catalog.store.clock.now())
            await asyncio.sleep(0.1)
            feed.pause(table.id)
            paused_at = feed.frontier(table.id)
            await asyncio.sleep(30)
            assert feed.frontier(table.id) == paused_at
            unlocked = await catalog.publish(table.id, locked=False)
            feed.resume(table.id, catalog.store.clock.now())
            changed = await catalog.add_column(table.id, "w")
            answer = await feed.pop(table.id, changed.modification_time)
            assert [(e.before, e.after) for e in answer.events] == [(unlocked, changed)]
            assert sim.now < 30.5  # a table that is resumed does not wait for an interval
            await feed.close()

    sim.run(scenario())


def test_a_start_that_moves_with_its_frontier_survives_garbage_collection() -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            store = catalog.store
            table = await catalog.create(locked=True)
            feed = PollingSchemaFeed(store, catalog.descriptors)
            await feed.start([table.id], store.clock.now())
            await asyncio.sleep(0.1)
            feed.pause(table.id)
            await asyncio.sleep(100)
            frontier = store.clock.now()
            await store.collect_garbage(table.primary_span, store.clock.now())
            await asyncio.sleep(1)
            feed.resume(table.id, store.clock.now())
            assert (await feed.peek(table.id, store.clock.now())).canonical == table
            assert feed.frontier(table.id) > frontier
            await feed.close()

    sim.run(scenario())


def test_a_version_seen_is_told_to_the_lease_manager() -> None:
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            node.mute_feeds()
            table = await catalog.create()
            feed = PollingSchemaFeed(catalog.store, catalog.descriptors, node.leases)
            await feed.start([table.id], catalog.store.clock.now())
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            await catalog.add_column(table.id, "w")
            await asyncio.sleep(1.5)
            lease = node.leases.try_acquire(table.id, catalog.store.clock.now())
            assert lease is not None
            assert lease.descriptor.version == 2
            await feed.close()

    sim.run(scenario())
