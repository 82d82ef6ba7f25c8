from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.leases import LeaseWaitTimeout
from tests.harness.nodes import open_nodes
from tests.harness.simulation import Simulation


class Observer:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self.lost_count = 0

    def on_new_version(self, table_id: int, version: int) -> None:
        self.told.append((table_id, version))

    def on_leases_lost(self) -> None:
        self.lost_count += 1


def test_each_version_is_told_once_however_it_was_learned_of() -> None:
    """By acquiring it, by notice, by both in either order."""
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            observer = Observer()
            assert node.leases.observe([table.id], observer) == {table.id: 0}
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            for name in "abcde":
                await node.leases.wait_for_one_version(table.id, timeout=5)
                await catalog.add_column(table.id, name)
                if sim.random.random() < 0.5:
                    (await node.leases.acquire_freshest(table.id)).release()
            await asyncio.sleep(0.1)
            versions = [version for _, version in observer.told]
            assert versions == sorted(set(versions))
            assert versions[-1] == 6

    sim.run(scenario())


@pytest.mark.parametrize("delay", [0, 0.0001, 0.0005, 0.001, 0.002, 0.005, 0.1])
def test_who_registers_around_a_broadcast_knows_of_it(delay: float) -> None:
    """A version is in the snapshot, or it is told: there is no moment in between."""
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            publishing = asyncio.create_task(catalog.add_column(table.id, "w"))
            await asyncio.sleep(delay)
            observer = Observer()
            snapshot = node.leases.observe([table.id], observer)
            await publishing
            await asyncio.sleep(0.1)
            assert (snapshot[table.id] == 2) != (observer.told == [(table.id, 2)])

    sim.run(scenario())


def test_notices_may_skip_versions() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            observer = Observer()
            node.leases.observe([table.id], observer)
            node.leases.note_version(table.id, 5)
            node.leases.note_version(table.id, 4)
            assert observer.told == [(table.id, 5)]

    sim.run(scenario())


def test_an_observer_hears_of_tables_that_nobody_holds() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            observer = Observer()
            node.leases.observe([table.id], observer)
            await catalog.add_column(table.id, "w")
            await asyncio.sleep(0.1)
            assert observer.told[-1:] == [(table.id, 2)]

    sim.run(scenario())


def test_an_observer_that_left_hears_nothing() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            observer = Observer()
            node.leases.observe([table.id], observer)
            node.leases.unobserve(observer)
            await catalog.add_column(table.id, "w")
            await asyncio.sleep(0.1)
            assert observer.told == []

    sim.run(scenario())


def test_a_lost_session_is_told_once() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [node, _]):
            tables = [await catalog.create(name) for name in ("orders", "customers")]
            observer = Observer()
            node.leases.observe([table.id for table in tables], observer)
            node.stop()
            await asyncio.sleep(10)
            node.go_on()
            await asyncio.sleep(2)
            assert observer.lost_count == 1

    sim.run(scenario())


def test_a_wait_that_gives_up_names_who_holds_what_since_when() -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            before = catalog.store.clock.now()
            lease = await first.leases.acquire(table.id, before)
            await catalog.add_column(table.id, "w")
            with pytest.raises(LeaseWaitTimeout, match="still leased") as caught:
                await second.leases.wait_for_one_version(table.id, timeout=0.5)
            (holder,) = caught.value.holders
            assert (holder.node_id, holder.version) == (1, 1)
            assert holder.session_id == first.session.incarnation.session_id
            assert before < holder.since < catalog.store.clock.now()
            assert "node 1" in str(caught.value.detail)
            lease.release()

    sim.run(scenario())


def test_a_wait_can_be_cancelled() -> None:
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            lease = await first.leases.acquire(table.id, catalog.store.clock.now())
            await catalog.add_column(table.id, "w")
            waiting = asyncio.create_task(second.leases.wait_for_one_version(table.id, timeout=600))
            await asyncio.sleep(1)
            waiting.cancel()
            await asyncio.wait([waiting], timeout=0.1)
            assert waiting.cancelled()
            lease.release()

    sim.run(scenario())


def test_a_ddl_session_does_not_wait_for_its_own_unused_lease() -> None:
    """Even where no notice comes."""
    sim = Simulation(9)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            node.mute_feeds()
            await catalog.add_column(table.id, "w")
            assert await node.leases.wait_for_one_version(table.id, timeout=1) == 2

    sim.run(scenario())
