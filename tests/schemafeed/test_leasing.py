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
from tailrace.catalog.leases import Lease, LeaseBeyondSession, LeaseManager
from tailrace.kvlayer.clock import Timestamp
from tailrace.schemafeed import (
    LOCK_CHANGES,
    LeasingSchemaFeed,
    PollingSchemaFeed,
    RangeFeedSchemaFeed,
    TableDropped,
    classify,
    describe,
)
from tailrace.schemafeed.proving import ProvingSchemaFeed
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation


class Watched:
    """A table, a node, and a leasing schema feed over it."""

    def __init__(
        self, catalog: CatalogFixture, node: Node, table: TableDescriptor, other: Node | None = None
    ) -> None:
        self.catalog = catalog
        self.other = other or node
        self.node = node
        self.table = table
        self.polling = PollingSchemaFeed(node.store, catalog.descriptors)
        self.feed = LeasingSchemaFeed(node.leases, self.polling)

    def now(self) -> Timestamp:
        return self.catalog.store.clock.now()

    def fast(self) -> bool:
        """Whether a row of this moment is answered without waiting."""
        return self.feed.try_peek(self.table.id, self.now()) is not None

    async def change(self, **changes: object) -> TableDescriptor:
        """The next version, once nobody holds the one before."""
        await self.node.leases.wait_for_one_version(self.table.id, timeout=30)
        return await self.catalog.publish(self.table.id, **changes)

    async def add_column(self, name: str) -> TableDescriptor:
        await self.node.leases.wait_for_one_version(self.table.id, timeout=30)
        return await self.catalog.add_column(self.table.id, name)

    async def pop(self) -> list[str]:
        answer = await self.feed.pop(self.table.id, self.now())
        return [describe(event.kinds) for event in answer.events]


@asynccontextmanager
async def watched(sim: Simulation, *, locked: bool = True) -> AsyncIterator[Watched]:
    async with open_nodes(sim, 2) as (catalog, [node, other]):
        table = await catalog.create(locked=locked)
        watching = Watched(catalog, node, table, other)
        await watching.feed.start([table.id], watching.now())
        yield watching
        await watching.feed.close()


def test_a_locked_table_is_answered_at_once_for_as_long_as_it_is_locked() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with watched(sim) as on:
            for _ in range(200):
                assert on.fast()
                await asyncio.sleep(0.3)

    sim.run(scenario())


def test_an_unlocked_table_waits_for_a_poll() -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with watched(sim, locked=False) as on:
            await asyncio.sleep(0.5)
            assert not on.fast()
            await on.pop()
            assert 0.9 < sim.now < 1.1

    sim.run(scenario())


def test_locking_makes_it_fast_and_unlocking_slow() -> None:
    sim = Simulation(3)

    async def scenario() -> None:
        async with watched(sim, locked=False) as on:
            await on.change(locked=True)
            await asyncio.sleep(1.1)
            assert await on.pop() == ["LOCK"]
            assert on.fast()
            await on.change(locked=False)
            await asyncio.sleep(0.05)
            assert not on.fast()

    sim.run(scenario())


def test_a_change_between_two_locks_is_never_passed_over() -> None:
    """Unlock, ALTER and re-lock between the frontier and the row: the row waits for the delegate,
    though a locked version covers it by itself."""
    sim = Simulation(4)

    async def scenario() -> None:
        async with watched(sim) as on:
            assert on.fast()
            await on.change(locked=False)
            changed = await on.add_column("w")
            relocked = await on.change(locked=True)
            await asyncio.sleep(0.05)  # by now the feed holds the new lock
            row_at = on.now()
            assert relocked.modification_time < row_at
            answer = on.feed.try_peek(on.table.id, row_at) or await on.feed.peek(
                on.table.id, row_at
            )
            told = [event for event in answer.events if event.kinds & ~LOCK_CHANGES]
            assert [event.after for event in told] == [changed]
            assert logically_equal(answer.canonical, relocked)
            assert not on.feed.fast(on.table.id)  # nothing was consumed yet
            await on.pop()
            assert on.fast()

    sim.run(scenario())


@pytest.mark.parametrize("delegate", [PollingSchemaFeed, RangeFeedSchemaFeed])
@pytest.mark.parametrize("seconds", [0, 1.2])
def test_a_comment_under_the_lock_is_passed_over(
    delegate: type[ProvingSchemaFeed], seconds: float
) -> None:
    """The lease that was let go covers the next version too; the delegate may have read that one
    already, which is no schema change that was passed over."""
    sim = Simulation(14)

    async def scenario() -> None:
        async with watched(sim) as on:
            await on.feed.close()
            made = delegate(on.node.store, on.catalog.descriptors)
            on.feed = LeasingSchemaFeed(on.node.leases, made)
            await on.feed.start([on.table.id], on.now())
            for number in range(4):
                at = (await on.change(comment=f"{number}")).modification_time
                await asyncio.sleep(seconds)
                answer = on.feed.try_peek(on.table.id, at)
                assert answer is not None
                assert not answer.events
                await asyncio.sleep(0.5)
                told = await asyncio.wait_for(on.feed.pop(on.table.id, on.now()), 3)
                assert told.canonical.locked

    sim.run(scenario())


def test_the_lease_is_let_go_on_notice_whatever_the_feeds_owner_does() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with watched(sim) as on:
            await on.change(locked=False)
            started_at = sim.now
            await on.add_column("w")  # nobody asked the feed anything meanwhile
            assert sim.now - started_at < 0.5

    sim.run(scenario())


def test_rows_below_the_release_stay_provable() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with watched(sim) as on:
            row_at = on.now()
            unlocked = await on.change(locked=False)
            await on.add_column("w")
            assert on.feed.try_peek(on.table.id, row_at) is not None
            late = on.feed.try_peek(on.table.id, unlocked.modification_time)
            assert late is not None
            assert logically_equal(late.canonical, on.table)

    sim.run(scenario())


def test_the_frontier_advances_while_the_delegate_rests() -> None:
    """Else the delegate would go on from a time whose versions are collected by then."""
    sim = Simulation(7)

    async def scenario() -> None:
        async with watched(sim) as on:
            for _ in range(100):
                assert on.fast()
                await asyncio.sleep(1)
            frontier = on.feed.frontier(on.table.id)
            assert on.polling.frontier(on.table.id) < frontier
            await on.change(locked=False)
            await asyncio.sleep(0.05)  # by now the notice is here
            assert on.polling.frontier(on.table.id) >= frontier
            assert await on.pop() in (["UNLOCK"], [])

    sim.run(scenario())


def test_an_observer_that_came_after_the_broadcast_is_told() -> None:
    """The feed starts while the node already holds, and was told of, a newer version."""
    sim = Simulation(8)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create(locked=True)
            (await node.leases.acquire(table.id, catalog.store.clock.now())).release()
            await catalog.publish(table.id, locked=False)
            await asyncio.sleep(0.5)
            on = Watched(catalog, node, table)
            await on.feed.start([table.id], on.now())
            assert not on.feed.fast(table.id)
            await on.add_column("w")
            await on.feed.close()

    sim.run(scenario())


def test_a_feed_that_starts_in_the_past_catches_up_before_it_is_fast() -> None:
    sim = Simulation(9)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            table = await catalog.create()
            cursor = catalog.store.clock.now()
            await catalog.add_column(table.id, "w")
            await catalog.publish(table.id, locked=True)
            on = Watched(catalog, node, table)
            await on.feed.start([table.id], cursor)
            assert (await on.feed.peek(table.id, cursor)).canonical == table
            assert await on.pop() == ["ADD_COLUMN", "LOCK"]
            assert on.fast()
            await on.feed.close()

    sim.run(scenario())


def test_a_lost_session_is_no_proof_and_is_made_up_for() -> None:
    sim = Simulation(10)

    async def scenario() -> None:
        async with watched(sim) as on:
            assert on.fast()
            on.node.stop()
            await asyncio.sleep(60)
            assert not on.fast()
            on.node.go_on()
            await asyncio.sleep(2)
            assert await on.pop() == []
            assert on.fast()

    sim.run(scenario())


@pytest.mark.parametrize("refusals", [1, 3])
def test_a_lease_that_no_session_reaches_is_taken_later(
    monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """The store takes longer than sessions live: the delegate answers until that is over."""
    sim = Simulation(15)
    left = refusals
    acquire = LeaseManager.acquire_freshest

    async def refusing(manager: LeaseManager, table_id: int) -> Lease:
        nonlocal left
        left -= 1
        if left >= 0:
            raise LeaseBeyondSession(table_id, Timestamp(0), Timestamp(0))
        return await acquire(manager, table_id)

    async def scenario() -> None:
        monkeypatch.setattr(LeaseManager, "acquire_freshest", refusing)
        async with watched(sim) as on:
            assert not on.fast()
            assert await on.pop() == []
            await asyncio.sleep(1)
            assert await on.pop() == []
            assert on.fast()

    sim.run(scenario())


def test_a_change_during_a_stop_is_told() -> None:
    """The others did not wait for the stopped node: its lease is worth nothing for their time."""
    sim = Simulation(11)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [node, other]):
            table = await catalog.create(locked=True)
            on = Watched(catalog, node, table)
            await on.feed.start([table.id], on.now())
            assert on.fast()
            node.stop()
            await catalog.publish(table.id, locked=False)
            await other.leases.wait_for_one_version(table.id, timeout=10)
            changed = await catalog.add_column(table.id, "w")
            await catalog.publish(table.id, locked=True)
            assert on.feed.try_peek(table.id, changed.modification_time) is None
            node.go_on()
            assert "ADD_COLUMN" in await on.pop()
            await on.feed.close()

    sim.run(scenario())


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_a_version_told_of_while_a_lease_is_taken_is_not_held_up(turns: int) -> None:
    """The feed takes a lease on the lock; the notice of the unlock comes before it has it."""
    sim = Simulation(14)

    async def scenario() -> None:
        async with watched(sim, locked=False) as on:
            await on.catalog.publish(on.table.id, locked=True)
            (await on.node.leases.acquire(on.table.id, on.now())).release()
            for _ in range(turns):
                await asyncio.sleep(0)
            on.node.leases.note_version(on.table.id, 3)
            await on.other.leases.wait_for_one_version(on.table.id, timeout=1)
            await on.catalog.publish(on.table.id, locked=False)
            await on.other.leases.wait_for_one_version(on.table.id, timeout=1)
            assert (await on.catalog.add_column(on.table.id, "w")).version == 4

    sim.run(scenario())


def test_a_candidate_that_was_lost_with_the_session_is_replaced() -> None:
    sim = Simulation(13)

    async def scenario() -> None:
        async with watched(sim, locked=False) as on:
            await on.change(locked=True)
            await asyncio.sleep(0.1)  # the lock is leased; its event was not consumed yet
            on.node.stop()
            await asyncio.sleep(10)
            on.node.go_on()
            await asyncio.sleep(2)
            assert await on.pop() == ["LOCK"]
            assert on.fast()

    sim.run(scenario())


def test_a_dropped_table_ends_the_feed() -> None:
    sim = Simulation(12)

    async def scenario() -> None:
        async with watched(sim) as on:
            await on.change(locked=False)
            await on.change(state=DescriptorState.DROPPED)
            with pytest.raises(TableDropped, match="orders"):
                await on.pop()

    sim.run(scenario())


async def change_at_random(sim: Simulation, on: Watched, published: list[TableDescriptor]) -> None:
    """A dozen schema changes, and now and then a node that stands still."""
    for turn in range(12):
        await asyncio.sleep(sim.random.choice((0, 0.001, 0.05, 0.8, 2.0)))
        if sim.random.random() < 0.15:
            on.node.stop()
            asyncio.get_running_loop().call_later(sim.random.random() * 12, on.node.go_on)
        await on.other.leases.wait_for_one_version(on.table.id, timeout=60)
        if published[-1].locked:
            published.append(await on.catalog.publish(on.table.id, locked=False))
        elif sim.random.random() < 0.5:
            published.append(await on.catalog.publish(on.table.id, locked=True))
        else:
            published.append(await on.catalog.add_column(on.table.id, f"w{turn}"))


def real_changes(published: list[TableDescriptor]) -> list[TableDescriptor]:
    """The versions that differ from the one before in more than the lock."""
    steps = pairwise(published)
    return [after for before, after in steps if classify(before, after) & ~LOCK_CHANGES]


def canonical_at(published: list[TableDescriptor], at: Timestamp) -> TableDescriptor:
    return [version for version in published if version.modification_time <= at][-1]


@pytest.mark.parametrize("seed", range(25))
def test_every_answer_is_what_was_canonical(seed: int) -> None:
    """Random schema changes, stops and questions; the versions published are the oracle."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with watched(sim, locked=sim.random.random() < 0.5) as on:
            published = [on.table]
            answers: list[tuple[TableDescriptor, Timestamp]] = []
            told: list[TableDescriptor] = []
            started_at = on.now()
            changing = asyncio.create_task(change_at_random(sim, on, published))
            while not changing.done() or len(told) < len(real_changes(published)):
                asked_at = on.now()
                await asyncio.sleep(sim.random.choice((0, 0, 0.01, 0.3)))
                peeked = await on.feed.peek(on.table.id, asked_at)
                answers.append((peeked.canonical, asked_at))
                if sim.random.random() < 0.7:
                    popped = await on.feed.pop(on.table.id, asked_at)
                    real = [event for event in popped.events if event.kinds & ~LOCK_CHANGES]
                    told += [event.after for event in real]
                earlier = Timestamp(sim.random.randint(started_at, asked_at))
                answers.append((on.feed.canonical_at(on.table.id, earlier), earlier))
            changing.result()
            assert told == real_changes(published)
            for answer, at in answers:
                assert logically_equal(answer, canonical_at(published, at)), (answer, at)

    sim.run(scenario())
