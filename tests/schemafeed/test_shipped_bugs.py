"""The bugs that the shipped feature had, each under the number of its report.

CockroachDB built this feature before us, and told how it failed. A test here is named for what a
user saw; the number is that project's issue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.leases import Lease
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp
from tailrace.schemafeed import LeasingSchemaFeed, RangeFeedSchemaFeed, describe
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation


class Watched:
    """A locked table, and the leasing feed of one of two nodes over it."""

    def __init__(self, catalog: CatalogFixture, nodes: list[Node], table: TableDescriptor) -> None:
        self.catalog = catalog
        self.node, self.other = nodes
        self.table = table
        self.delegate = RangeFeedSchemaFeed(self.node.store, catalog.descriptors, self.node.leases)
        self.feed = LeasingSchemaFeed(self.node.leases, self.delegate)

    def now(self) -> Timestamp:
        return self.catalog.store.clock.now()

    async def change(self, **changes: object) -> TableDescriptor:
        await self.other.leases.wait_for_one_version(self.table.id, timeout=2)
        return await self.catalog.publish(self.table.id, **changes)

    async def add_column(self, name: str) -> TableDescriptor:
        await self.other.leases.wait_for_one_version(self.table.id, timeout=2)
        return await self.catalog.add_column(self.table.id, name)


@asynccontextmanager
async def watched(sim: Simulation, *, started: bool = True) -> AsyncIterator[Watched]:
    async with open_nodes(sim, 2) as (catalog, nodes):
        on = Watched(catalog, nodes, await catalog.create(locked=True))
        if started:
            await on.feed.start([on.table.id], on.now())
        yield on
        await on.feed.close()


def test_105845_the_fast_path_is_used_on_a_locked_table() -> None:
    """It was there, and silently not taken: every row waited as before."""
    sim = Simulation(1)

    async def scenario() -> None:
        async with watched(sim) as on:
            for _ in range(20):
                assert on.feed.fast(on.table.id)
                assert on.feed.try_peek(on.table.id, on.now()) is not None
                await asyncio.sleep(0.5)

    sim.run(scenario())


@pytest.mark.parametrize("number", [114383, 114865, 117960])
def test_the_frontier_advances_while_paused(number: int) -> None:
    """A feed that resumed polling from where it had paused read versions that were collected."""
    sim = Simulation(number)

    async def scenario() -> None:
        async with watched(sim) as on:
            await asyncio.sleep(1)
            assert on.feed.try_peek(on.table.id, on.now()) is not None
            frontier = on.feed.frontier(on.table.id)
            assert on.delegate.frontier(on.table.id) < frontier
            await on.change(locked=False)
            await asyncio.sleep(0.1)
            assert on.delegate.frontier(on.table.id) >= frontier
            answer = await asyncio.wait_for(on.feed.pop(on.table.id, on.now()), 1)
            assert not answer.canonical.locked

    sim.run(scenario())


def test_149861_unlock_and_a_change_are_never_one_version() -> None:
    """The layer of convenience wrote both in one: neighbours differed, a backfill was skipped."""
    sim = Simulation(2)

    async def scenario() -> None:
        async with watched(sim) as on:
            columns = on.table.columns[:1]
            with pytest.raises(SQLError) as refused:
                await on.change(locked=False, columns=columns)
            assert refused.value.sqlstate == "25001"
            await on.change(locked=False)
            await on.change(columns=columns)
            await on.change(locked=True)
            told = (await on.feed.pop(on.table.id, on.now())).events
            kinds = [describe(event.kinds) for event in told]
            assert [kind for kind in kinds if "LOCK" not in kind] == ["DROP_COLUMN"]

    sim.run(scenario())


@pytest.mark.parametrize("number", [168182, 169268])
def test_a_version_that_was_cached_already_is_still_told(number: int) -> None:
    """The node had read the new version for a statement before the notice: the feed was not told,
    and held the old one."""
    sim = Simulation(number)

    async def scenario() -> None:
        async with watched(sim) as on:
            on.node.mute_feeds()
            unlocked = await on.change(locked=False)
            lease = await on.node.leases.acquire_freshest(on.table.id)
            assert lease.descriptor == unlocked
            lease.release()
            await asyncio.sleep(0.1)
            assert not on.feed.fast(on.table.id)
            await on.add_column("w")

    sim.run(scenario())


@pytest.mark.parametrize("number", [169505, 169820, 170405, 171007])
def test_an_observer_that_came_behind_the_broadcast_is_told(number: int) -> None:
    """It held the old version for ever, and every schema change after it hung."""
    sim = Simulation(number)

    async def scenario() -> None:
        async with watched(sim, started=False) as on:
            (await on.node.leases.acquire(on.table.id, on.now())).release()
            at = on.now()
            unlocked = await on.change(locked=False)
            on.node.leases.note_version(on.table.id, unlocked.version)  # broadcast, to nobody
            await on.feed.start([on.table.id], at)
            await asyncio.wait_for(on.add_column("w"), 2)

    sim.run(scenario())


def test_150484_no_second_change_slips_in_beside_the_unlock() -> None:
    """SET (schema_locked = false), and another clause behind a comma."""
    sim = Simulation(3)

    async def scenario() -> None:
        async with watched(sim) as on:
            with pytest.raises(SQLError) as refused:
                await on.change(locked=False, name="purchases")
            assert refused.value.sqlstate == "25001"
            assert on.feed.fast(on.table.id)

    sim.run(scenario())


@pytest.mark.parametrize("number", [152932, 159378])
def test_a_locked_table_is_not_truncated(number: int) -> None:
    sim = Simulation(number)

    async def scenario() -> None:
        async with watched(sim) as on:
            with pytest.raises(SQLError) as refused:
                await on.change(primary_index_id=2, next_index_id=3)
            assert refused.value.sqlstate == "57000"
            assert on.feed.fast(on.table.id)

    sim.run(scenario())


def test_41694_a_feed_that_resumes_below_a_change_is_told_of_it() -> None:
    """Primed with the newest version instead of that of its start, it skipped the backfill."""
    sim = Simulation(4)

    async def scenario() -> None:
        async with watched(sim, started=False) as on:
            at = on.now()
            await on.change(locked=False)
            added = await on.add_column("w")
            await on.change(locked=True)
            await on.feed.start([on.table.id], at)
            answer = await on.feed.pop(on.table.id, on.now())
            assert added in [event.after for event in answer.events]

    sim.run(scenario())


def test_163761_an_event_costs_the_same_with_many_tables() -> None:
    """One feed burned a core with ten thousand: an answer looks at its own table alone."""
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, nodes):
            tables = [await catalog.create(f"t{number}", locked=True) for number in range(20)]
            on = Watched(catalog, nodes, tables[0])
            await on.feed.start([table.id for table in tables], on.now())
            looked: list[Timestamp] = []
            coverage_end = Lease.coverage_end

            def counted(lease: Lease) -> Timestamp:
                looked.append(coverage_end(lease))
                return looked[-1]

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Lease, "coverage_end", counted)
                assert on.feed.try_peek(on.table.id, on.now()) is not None
            assert len(looked) == 1
            await on.feed.close()

    sim.run(scenario())
