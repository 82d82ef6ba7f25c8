from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState
from tailrace.catalog.leases import (
    DescriptorDropped,
    DescriptorMissing,
    LeaseBeyondSession,
    LeaseRow,
)
from tailrace.catalog.store.lease_rows import LEASES
from tailrace.catalog.store.live_leases import DescriptorLeased
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import RetryableTransaction
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation


async def lease_rows(catalog: CatalogFixture) -> list[tuple[int, int]]:
    """(node, version) of every lease row."""
    rows = await catalog.store.snapshot(catalog.store.clock.now()).scan(LEASES)
    decoded = [LeaseRow.decode(key, body) for key, body in rows]
    return [(row.node_id, row.version) for row in decoded]


async def noticed(node: Node, table_id: int, version: int) -> None:
    """Until the node serves that version."""
    for _ in range(1000):
        lease = node.leases.try_acquire(table_id, node.store.clock.now())
        if lease is not None:
            lease.release()
            if lease.descriptor.version >= version:
                return
        await asyncio.sleep(0.001)
    raise AssertionError(f"version {version} was not noticed within a second")


def test_a_lease_is_found_in_memory_the_second_time() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            now = catalog.store.clock.now()
            assert node.leases.try_acquire(table.id, now) is None
            first = await node.leases.acquire(table.id, now)
            second = node.leases.try_acquire(table.id, catalog.store.clock.now())
            assert second is not None
            assert first.descriptor == second.descriptor == table
            assert await lease_rows(catalog) == [(1, 1)]

    sim.run(scenario())


def test_acquisitions_at_one_time_share_one_read() -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            now = catalog.store.clock.now()
            leases = await asyncio.gather(*(node.leases.acquire(table.id, now) for _ in range(9)))
            assert {lease.descriptor.version for lease in leases} == {1}
            versions = catalog.store.versions(LEASES, now, catalog.store.clock.now())
            assert sum([len(rows) async for rows in versions]) == 1

    sim.run(scenario())


def test_the_version_after_next_waits_for_every_node() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            now = catalog.store.clock.now()
            held = await first.leases.acquire(table.id, now)
            (await second.leases.acquire(table.id, now)).release()
            await catalog.add_column(table.id, "w")  # version 2, while 1 is held
            await noticed(first, table.id, 2)
            await noticed(second, table.id, 2)
            with pytest.raises(DescriptorLeased, match=r"node 1 .* version 1"):
                await catalog.add_column(table.id, "x")
            held.release()
            assert await second.leases.wait_for_one_version(table.id, timeout=5) == 2
            assert (await catalog.add_column(table.id, "x")).version == 3

    sim.run(scenario())


def test_a_stopped_node_holds_a_version_until_its_session_expires() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            table = await catalog.create()
            lease = await first.leases.acquire(table.id, catalog.store.clock.now())
            first.stop()
            await catalog.add_column(table.id, "w")
            with pytest.raises(DescriptorLeased):
                await catalog.add_column(table.id, "x")
            started_at = sim.now
            await second.leases.wait_for_one_version(table.id, timeout=10)
            assert 3 < sim.now - started_at <= 5.2
            published = await catalog.add_column(table.id, "x")
            assert lease.coverage_end() <= published.modification_time

    sim.run(scenario())


def test_a_stopped_node_covers_nothing_of_its_minute() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, _]):
            table = await catalog.create(locked=True)
            before = await first.leases.acquire(table.id, catalog.store.clock.now())
            expiration = first.session.incarnation.expiration
            first.stop()
            await asyncio.sleep(60)
            assert first.leases.try_acquire(table.id, catalog.store.clock.now()) is None
            first.go_on()
            assert before.coverage_end() == expiration
            after = await first.leases.acquire(table.id, catalog.store.clock.now())
            assert before.coverage_end() == expiration  # also when it lives again
            assert after.covers(catalog.store.clock.now())
            before.release()

    sim.run(scenario())


def test_a_session_that_was_removed_is_replaced_and_its_leases_retaken() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, _]):
            table = await catalog.create()
            await first.leases.acquire(table.id, catalog.store.clock.now())
            former = first.session.incarnation
            first.stop()
            await asyncio.sleep(7)
            assert await lease_rows(catalog) == []  # swept by the other node
            first.go_on()
            await noticed(first, table.id, 1)
            assert former.lost
            assert first.session.incarnation.session_id != former.session_id
            assert await lease_rows(catalog) == [(1, 1)]

    sim.run(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_acquiring_and_publishing_see_each_other(seed: int) -> None:
    """Of an acquisition of v1 and a publication of v3 at one time, one gives way."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, _]):
            table = await catalog.create()
            await asyncio.sleep(sim.random.random() / 1000)
            now = catalog.store.clock.now()

            async def two_versions() -> None:
                for name in ("w", "x"):
                    try:
                        await catalog.add_column(table.id, name)
                    except RetryableTransaction:
                        return

            lease, _ = await asyncio.gather(first.leases.acquire_freshest(table.id), two_versions())
            newest = await catalog.read(table.id)
            assert newest.version <= lease.descriptor.version + 1
            assert lease.descriptor.modification_time >= now or lease.descriptor.version == 1

    sim.run(scenario())


def test_older_timestamps_are_served_from_history_without_a_row() -> None:
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            first = await catalog.create()
            second = await catalog.add_column(first.id, "w")
            third = await catalog.add_column(first.id, "x")
            newest = await node.leases.acquire(first.id, catalog.store.clock.now())
            old = await node.leases.acquire(first.id, Timestamp(third.modification_time - 1))
            assert (newest.descriptor.version, old.descriptor.version) == (3, 2)
            assert old.coverage_end() == third.modification_time
            assert old.descriptor.modification_time == second.modification_time
            assert await lease_rows(catalog) == [(1, 3)]

    sim.run(scenario())


def test_a_dropped_table_is_leased_for_older_timestamps_only() -> None:
    sim = Simulation(9)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            dropped = await catalog.publish(table.id, state=DescriptorState.DROPPED)
            await node.leases.wait_for_one_version(table.id, timeout=5)
            with pytest.raises(DescriptorDropped, match="orders"):
                await node.leases.acquire(table.id, catalog.store.clock.now())
            old = await node.leases.acquire(table.id, Timestamp(dropped.modification_time - 1))
            assert old.descriptor == table
            assert await lease_rows(catalog) == []

    sim.run(scenario())


def test_unknown_ids_and_distant_futures_are_refused() -> None:
    sim = Simulation(10)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            now = catalog.store.clock.now()
            with pytest.raises(DescriptorMissing):
                await node.leases.acquire(999, now)
            with pytest.raises(LeaseBeyondSession):
                await node.leases.acquire(table.id, Timestamp(now + duration(seconds=60)))

    sim.run(scenario())


def test_the_freshest_joins_no_earlier_read() -> None:
    sim = Simulation(11)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            node.mute_feeds()
            earlier = asyncio.create_task(node.leases.acquire(table.id, catalog.store.clock.now()))
            node.withhold_answers()
            while not await lease_rows(catalog):  # version 1 is read, and the node not told yet
                await asyncio.sleep(0)
            await catalog.add_column(table.id, "w")
            freshest = asyncio.create_task(node.leases.acquire_freshest(table.id))
            await asyncio.sleep(0.1)
            assert not earlier.done()
            node.go_on()
            assert (await earlier).descriptor.version == 1
            assert (await freshest).descriptor.version == 2
            (await earlier).release()

    sim.run(scenario())


def test_a_notice_during_an_acquisition_is_not_lost() -> None:
    """The acquisition read version 1; version 2 was published before it returned, and no other
    notice of it comes."""
    sim = Simulation(12)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            node.mute_feeds()
            acquiring = asyncio.create_task(
                node.leases.acquire(table.id, catalog.store.clock.now())
            )
            node.withhold_answers()
            while not await lease_rows(catalog):
                await asyncio.sleep(0)
            await catalog.add_column(table.id, "w")
            node.leases.note_version(table.id, 2)
            node.go_on()
            lease = await acquiring
            assert lease.descriptor.version == 1
            lease.release()
            await asyncio.sleep(0.1)
            assert await lease_rows(catalog) == [(1, 2)]

    sim.run(scenario())


def test_a_superseded_lease_in_use_gets_an_end() -> None:
    sim = Simulation(13)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            catalog.store.settings.set("sql.catalog.descriptor_lease_duration", "20s")
            table = await catalog.create()
            lease = await node.leases.acquire(table.id, catalog.store.clock.now())
            await catalog.add_column(table.id, "w")
            started_at = sim.now
            await node.leases.wait_for_one_version(table.id, timeout=60)
            assert 19 < sim.now - started_at < 21
            published = await catalog.add_column(table.id, "x")
            assert lease.deadline() <= published.modification_time
            lease.release()

    sim.run(scenario())


def test_a_restarted_node_finds_no_leases_of_its_former_life() -> None:
    sim = Simulation(14)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            await node.leases.acquire(table.id, catalog.store.clock.now())
            node.stop()  # for ever, as far as the store can tell
            again = Node(catalog, 1)
            await again.start()
            assert await lease_rows(catalog) == []
            await again.close()

    sim.run(scenario())


def test_closing_releases_everything() -> None:
    sim = Simulation(15)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            lease = await node.leases.acquire(table.id, catalog.store.clock.now())
            await node.leases.close()
            assert await lease_rows(catalog) == []
            assert not lease.covers(catalog.store.clock.now())

    sim.run(scenario())


def test_a_silent_notice_stream_is_made_up_for() -> None:
    """Without a checkpoint for a while, every lease is read anew and old ones are let go."""
    sim = Simulation(16)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            catalog.store.settings.set("catalog.leases.watchdog", "2s")
            table = await catalog.create()
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            await asyncio.sleep(0.1)
            node.mute_feeds()
            await catalog.add_column(table.id, "w")
            await asyncio.sleep(11)
            lease = node.leases.try_acquire(table.id, catalog.store.clock.now())
            assert lease is not None
            assert lease.descriptor.version == 2
            assert await lease_rows(catalog) == [(1, 2)]

    sim.run(scenario())
