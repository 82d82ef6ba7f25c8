"""What every schema feed promises, whichever way it proves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from tailrace.catalog.descriptors.descriptor import (
    DescriptorState,
    TableDescriptor,
    logically_equal,
)
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import StoreClosed
from tailrace.schemafeed import LOCK_CHANGES, TableDropped, TableUnknown, classify, describe
from tailrace.schemafeed.feed import SchemaFeed
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation
from tests.schemafeed.conformance.kinds import KINDS, MakeFeed

kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
lock_states = pytest.mark.parametrize("locked", [False, True], ids=["unlocked", "locked"])


class Watched:
    """A schema feed over one table of a node; another node changes the table."""

    def __init__(
        self, catalog: CatalogFixture, nodes: list[Node], table: TableDescriptor, feed: SchemaFeed
    ) -> None:
        self.catalog = catalog
        self.node, self.other = nodes
        self.table = table
        self.feed = feed

    def now(self) -> Timestamp:
        return self.catalog.store.clock.now()

    async def publish(self, **changes: object) -> TableDescriptor:
        await self.other.leases.wait_for_one_version(self.table.id, timeout=60)
        return await self.catalog.publish(self.table.id, **changes)

    async def add_column(self, name: str) -> TableDescriptor:
        await self.other.leases.wait_for_one_version(self.table.id, timeout=60)
        return await self.catalog.add_column(self.table.id, name)

    async def pop(self) -> list[str]:
        answer = await self.feed.pop(self.table.id, self.now())
        return [describe(event.kinds) for event in answer.events]


@asynccontextmanager
async def watched(sim: Simulation, make: MakeFeed, *, locked: bool) -> AsyncIterator[Watched]:
    async with open_nodes(sim, 2) as (catalog, nodes):
        table = await catalog.create(locked=locked)
        on = Watched(catalog, nodes, table, make(catalog, nodes[0]))
        await on.feed.start([table.id], on.now())
        yield on
        await on.feed.close()


@kinds
@lock_states
def test_a_row_of_now_is_answered_in_time(make: MakeFeed, locked: bool) -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with watched(sim, make, locked=locked) as on:
            for _ in range(5):
                answer = await asyncio.wait_for(on.feed.peek(on.table.id, on.now()), 2)
                assert (answer.events, answer.canonical) == ((), on.table)

    sim.run(scenario())


@kinds
@lock_states
def test_an_idle_table_is_proven_for_ever(make: MakeFeed, locked: bool) -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with watched(sim, make, locked=locked) as on:
            frontier = on.feed.frontier(on.table.id)
            for _ in range(5):
                await asyncio.sleep(4)
                await on.feed.peek(on.table.id, on.now())
                assert on.feed.frontier(on.table.id) > frontier
                frontier = on.feed.frontier(on.table.id)

    sim.run(scenario())


@kinds
def test_events_come_in_order_and_once(make: MakeFeed) -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with watched(sim, make, locked=False) as on:
            await on.add_column("w")
            assert await on.pop() == ["ADD_COLUMN"]
            assert await on.pop() == []
            await on.publish(name="purchases")
            await on.publish(locked=True)
            assert await on.pop() == ["RENAME_TABLE", "LOCK"]

    sim.run(scenario())


@kinds
def test_a_peek_consumes_nothing(make: MakeFeed) -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with watched(sim, make, locked=False) as on:
            changed = await on.add_column("w")
            for _ in range(3):
                answer = await on.feed.peek(on.table.id, on.now())
                assert [event.after for event in answer.events] == [changed]
                assert (answer.canonical, answer.since) == (changed, changed.modification_time)

    sim.run(scenario())


@kinds
def test_below_an_event_the_old_version_holds(make: MakeFeed) -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with watched(sim, make, locked=False) as on:
            changed = await on.add_column("w")
            await on.pop()
            before = Timestamp(changed.modification_time - 1)
            assert on.feed.canonical_at(on.table.id, before) == on.table
            assert on.feed.canonical_at(on.table.id, changed.modification_time) == changed
            assert (await on.feed.peek(on.table.id, before)).canonical == on.table

    sim.run(scenario())


@kinds
def test_a_feed_that_starts_below_a_change_is_told_of_it(make: MakeFeed) -> None:
    """Primed with what is newest instead, it would decode old rows wrongly, and skip a backfill."""
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, nodes):
            table = await catalog.create()
            cursor = catalog.store.clock.now()
            changed = await catalog.add_column(table.id, "w")
            feed = make(catalog, nodes[0])
            await feed.start([table.id], cursor)
            assert (await feed.peek(table.id, cursor)).canonical == table
            answer = await feed.pop(table.id, catalog.store.clock.now())
            assert [event.after for event in answer.events] == [changed]
            await feed.close()

    sim.run(scenario())


@kinds
@lock_states
def test_a_drop_ends_it_at_the_drop(make: MakeFeed, locked: bool) -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with watched(sim, make, locked=locked) as on:
            if locked:
                await on.publish(locked=False)
            dropped = await on.publish(state=DescriptorState.DROPPED)
            with pytest.raises(TableDropped):
                await on.feed.peek(on.table.id, dropped.modification_time)
            below = await on.feed.peek(on.table.id, Timestamp(dropped.modification_time - 1))
            assert logically_equal(below.canonical, on.table)

    sim.run(scenario())


@kinds
def test_a_table_that_is_not_there_is_refused(make: MakeFeed) -> None:
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, nodes):
            before = catalog.store.clock.now()
            table = await catalog.create()
            feed = make(catalog, nodes[0])
            with pytest.raises(TableUnknown):
                await feed.start([table.id], before)
            await feed.close()

    sim.run(scenario())


@kinds
def test_a_closed_store_ends_the_waiting(make: MakeFeed) -> None:
    sim = Simulation(9)

    async def scenario() -> None:
        async with watched(sim, make, locked=False) as on:
            await asyncio.sleep(0.1)
            await on.catalog.store.close()
            with pytest.raises(StoreClosed):
                await asyncio.wait_for(on.feed.peek(on.table.id, on.now()), 30)

    sim.run(scenario())


@kinds
def test_tables_are_proven_one_by_one(make: MakeFeed) -> None:
    """An event of one table is none of the other's, and holds nothing of it up."""
    sim = Simulation(10)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, nodes):
            first, second = await catalog.create(), await catalog.create("payments")
            feed = make(catalog, nodes[0])
            await feed.start([first.id, second.id], catalog.store.clock.now())
            changed = await catalog.add_column(first.id, "w")
            now = catalog.store.clock.now()
            assert (await feed.pop(second.id, now)).events == ()
            assert [event.after for event in (await feed.pop(first.id, now)).events] == [changed]
            await feed.close()

    sim.run(scenario())


@kinds
@pytest.mark.parametrize("seed", range(6))
def test_a_publication_never_falls_below_what_is_proven(make: MakeFeed, seed: int) -> None:
    sim = Simulation(seed)

    async def scenario() -> None:
        async with watched(sim, make, locked=False) as on:
            on.catalog.store.settings.set("changefeed.experimental_poll_interval", "3ms")
            for name in "abcde":
                asked = asyncio.create_task(on.feed.peek(on.table.id, on.now()))
                changed = await on.add_column(name)
                await asked
                answer = await on.feed.pop(on.table.id, changed.modification_time)
                assert [event.after for event in answer.events] == [changed]
                await asyncio.sleep(sim.random.random() / 100)

    sim.run(scenario())


async def change_at_random(sim: Simulation, on: Watched, published: list[TableDescriptor]) -> None:
    """A dozen schema changes, and now and then a node that stands still."""
    for turn in range(12):
        await asyncio.sleep(sim.random.choice((0, 0.001, 0.05, 0.8, 2.0)))
        if sim.random.random() < 0.15:
            on.node.stop()
            asyncio.get_running_loop().call_later(sim.random.random() * 12, on.node.go_on)
        if published[-1].locked:
            published.append(await on.publish(locked=False))
        elif sim.random.random() < 0.5:
            published.append(await on.publish(locked=True))
        else:
            published.append(await on.add_column(f"w{turn}"))


def real_changes(published: list[TableDescriptor]) -> list[TableDescriptor]:
    """The versions that differ from the one before in more than the lock."""
    steps = pairwise(published)
    return [after for before, after in steps if classify(before, after) & ~LOCK_CHANGES]


@kinds
@pytest.mark.parametrize("seed", range(12))
def test_every_answer_is_what_was_canonical(make: MakeFeed, seed: int) -> None:
    """Random changes, stops and questions. The versions that were published are the oracle."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with watched(sim, make, locked=sim.random.random() < 0.5) as on:
            published, started_at = [on.table], on.now()
            answers: list[tuple[TableDescriptor, Timestamp]] = []
            told: list[TableDescriptor] = []
            changing = asyncio.create_task(change_at_random(sim, on, published))
            while not changing.done() or len(told) < len(real_changes(published)):
                asked_at = on.now()
                await asyncio.sleep(sim.random.choice((0, 0, 0.01, 0.3)))
                peeked = await on.feed.peek(on.table.id, asked_at)
                answers.append((peeked.canonical, asked_at))
                if sim.random.random() < 0.7:
                    popped = await on.feed.pop(on.table.id, asked_at)
                    told += [e.after for e in popped.events if e.kinds & ~LOCK_CHANGES]
                earlier = Timestamp(sim.random.randint(started_at, asked_at))
                answers.append((on.feed.canonical_at(on.table.id, earlier), earlier))
            changing.result()
            assert told == real_changes(published)
            for answer, at in answers:
                due = [version for version in published if version.modification_time <= at][-1]
                assert logically_equal(answer, due), (answer, at)

    sim.run(scenario())
