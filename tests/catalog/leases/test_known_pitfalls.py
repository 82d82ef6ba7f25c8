"""The pitfalls that the anchor's lease manager has met, one named test for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.leases import DescriptorDropped, LeaseHolder, LeaseWaitTimeout
from tailrace.catalog.leases.liveness import TTL
from tailrace.catalog.leases.waits import live_leases
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation


class Observer:
    def __init__(self) -> None:
        self.told: list[int] = []

    def on_new_version(self, table_id: int, version: int) -> None:
        self.told.append(version)

    def on_leases_lost(self) -> None:
        pass


async def hold(catalog: CatalogFixture, node: Node, table_id: int) -> None:
    """The node has the newest version leased and unused, and has settled."""
    (await node.leases.acquire(table_id, catalog.store.clock.now())).release()
    await asyncio.sleep(0.1)


async def versions_held(catalog: CatalogFixture, node: Node, table_id: int) -> int:
    lease = await node.leases.acquire(table_id, catalog.store.clock.now())
    lease.release()
    return lease.descriptor.version


def test_every_wait_is_bounded_and_cancellable_and_says_for_whom() -> None:
    """A wait for one version hung, and ignored shutdown."""
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            lease = await second.leases.acquire(table.id, catalog.store.clock.now())
            await catalog.add_column(table.id, "w")
            told: list[list[int]] = []

            async def tell(holders: Sequence[LeaseHolder]) -> None:
                told.append([holder.node_id for holder in holders])

            with pytest.raises(LeaseWaitTimeout, match="node 2"):
                await first.leases.wait_for_one_version(table.id, timeout=1, tell=tell)
            assert told == [[2]]
            waiting = asyncio.create_task(first.leases.wait_for_no_version(table.id, timeout=600))
            await asyncio.sleep(1)
            [wait] = first.leases.waits.under_way()
            assert {holder.node_id for holder in wait.holders} == {2}
            waiting.cancel()
            await asyncio.wait([waiting])
            assert first.leases.waits.under_way() == ()
            lease.release()

    sim.run(scenario())


def test_a_lost_notice_is_made_up_for_by_looking() -> None:
    """A start of ten minutes, because one notification was lost."""
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            catalog.store.settings.set("catalog.leases.watchdog", "2s")
            table = await catalog.create()
            await hold(catalog, second, table.id)
            second.mute_feeds()
            await catalog.add_column(table.id, "w")
            assert await first.leases.wait_for_one_version(table.id, timeout=5) == 2

    sim.run(scenario())


def test_a_watcher_whose_feed_fails_for_good_begins_another() -> None:
    """A terminal error of the range feed ended the notices for ever."""
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            await hold(catalog, node, table.id)
            node.fail_feeds(RangeFeedEnded(FeedEnd.MVCC_HISTORY_MUTATION))
            await catalog.add_column(table.id, "w")
            await asyncio.sleep(1)
            assert await node.leases.wait_for_one_version(table.id, timeout=1) == 2
            await catalog.add_column(table.id, "x")
            await asyncio.sleep(1)
            assert node.leases.observe([table.id], Observer()) == {table.id: 3}

    sim.run(scenario())


def test_a_stalled_notice_stream_refreshes_and_purges() -> None:
    """Recovery refreshed what was cached and forgot to let go of what was old."""
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            catalog.store.settings.set("catalog.leases.watchdog", "2s")
            table = await catalog.create()
            await hold(catalog, second, table.id)
            second.mute_feeds()
            for name in "wxyz":
                await catalog.add_column(table.id, name)
                await first.leases.wait_for_one_version(table.id, timeout=5)
            assert await versions_held(catalog, second, table.id) == 5
            second.leases.check_invariants()

    sim.run(scenario())


@pytest.mark.parametrize("seed", range(5))
def test_an_observer_registered_after_the_broadcast_is_told(seed: int) -> None:
    """Feeds held an old lease for ever, because the version was known before they registered."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            await hold(catalog, node, table.id)
            publishing = asyncio.create_task(catalog.add_column(table.id, "w"))
            await asyncio.sleep(sim.random.random() * 0.01)
            observer = Observer()
            known = node.leases.observe([table.id], observer)[table.id]
            await publishing
            await asyncio.sleep(1)
            assert max([known, *observer.told]) == 2
            assert len(observer.told) == len(set(observer.told))

    sim.run(scenario())


def test_a_dead_session_is_never_taken_for_alive() -> None:
    """A liveness cache answered "alive" on a miss, and DDL hung for ever."""
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            await second.leases.acquire(table.id, catalog.store.clock.now())
            second.stop()
            await catalog.add_column(table.id, "w")
            started_at = sim.now
            await first.leases.wait_for_one_version(table.id, timeout=60)
            assert sim.now - started_at < 6  # the session's time to live, and no more

    sim.run(scenario())


def test_a_dead_session_counts_for_nothing_while_its_row_is_there() -> None:
    """Nobody is left to remove it."""
    sim = Simulation(16)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            await node.leases.acquire(table.id, catalog.store.clock.now())
            assert len((await live_leases(catalog.store, table.id)).holders) == 1
            node.stop()
            await asyncio.sleep(6)
            assert (await live_leases(catalog.store, table.id)).holders == ()

    sim.run(scenario())


def test_heartbeats_wait_for_no_work_on_leases() -> None:
    """Renewal was starved by validation (#97630).

    Here somebody holds a descriptor's intent for longer than a session lives, so that whoever looks
    at descriptors waits for as long.
    """
    sim = Simulation(7)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            catalog.store.settings.set("kv.transaction.buffer_bytes", "0")
            writer = catalog.store.begin()
            current = await catalog.descriptors.read(writer, table.id)
            assert isinstance(current, TableDescriptor)
            changed = replace(current, version=2, locked=True)
            await catalog.descriptors.publish(writer, changed)
            # An acquisition now waits for the writer's intent on the descriptor.
            acquiring = asyncio.create_task(
                node.leases.acquire(table.id, catalog.store.clock.now())
            )
            before = node.session.incarnation
            waited = 0.0
            while waited <= 1.5 * catalog.store.settings.get(TTL):
                await asyncio.sleep(0.5)
                waited += 0.5
                assert node.session.incarnation is before, "the session was lost"
                assert before.expiration > catalog.store.clock.now(), "nobody extended it"
                assert not acquiring.done(), "it did not wait, so neither would a heartbeat have"
            await writer.rollback()
            (await acquiring).release()

    sim.run(scenario())


def test_a_dropped_descriptor_serves_older_timestamps() -> None:
    """Acquiring a dropped descriptor failed even for a time when it was there."""
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            before = catalog.store.clock.now()
            await hold(catalog, node, table.id)
            dropped = await catalog.drop(table.id)
            await asyncio.sleep(0.1)  # the notice: until it comes, the last version may be used
            lease = await node.leases.acquire(table.id, before)
            assert lease.descriptor.version == 1
            lease.release()
            with pytest.raises(DescriptorDropped):
                await node.leases.acquire(table.id, catalog.store.clock.now())
            assert dropped.dropped

    sim.run(scenario())


@pytest.mark.parametrize("seed", range(10))
def test_releasing_and_taking_again_leaves_a_row_that_protects(seed: int) -> None:
    """The delete of a release overtook the insert of the next lease on the same version."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            await hold(catalog, second, table.id)
            await catalog.add_column(table.id, "w")
            for _ in range(5):
                lease = await second.leases.acquire(table.id, catalog.store.clock.now())
                lease.release()
                freshest = await second.leases.acquire_freshest(table.id)
                await asyncio.sleep(sim.random.random() * 0.01)
                freshest.release()
            lease = await second.leases.acquire(table.id, catalog.store.clock.now())
            with pytest.raises(LeaseWaitTimeout):
                await first.leases.wait_for_no_version(table.id, timeout=0.5)
            lease.release()

    sim.run(scenario())
