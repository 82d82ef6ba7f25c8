"""A keyspace that stores hand over: what each step takes with it, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import product

import pytest

from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.errors import FollowerAway, NotLeader, OracleAway, StoreUnreachable
from tailrace.kvlayer.raw import (
    IngestedEntry,
    Leadership,
    Placement,
    Placements,
    RawKeyspace,
    ReplicaKeyspace,
    encode_entry,
    keyspace_span,
    raw_key,
)
from tailrace.kvlayer.replication.leadership import Event, Role, next_role
from tailrace.kvlayer.replication.replica import (
    Begin,
    Drain,
    Follow,
    Lead,
    Look,
    Reclaim,
    ReplicaRefused,
    ReplicaState,
    TakeOver,
)
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, hold_log, open_store, release_log, reopen, running_store

SPAN = keyspace_span(7)
A, B, M = (raw_key(7, name) for name in (b"a", b"b", b"m"))
DRAIN = Drain(group="g", term=1, leader="store b")


def run(body: Callable[[Simulation, Store], Awaitable[None]]) -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await body(sim, store)

    sim.run(main())


async def drained(store: Store) -> ReplicaState:
    state = await store.replica(SPAN, DRAIN)
    assert state is not None
    return state


async def following(store: Store, *, resolved: Timestamp) -> None:
    """The store has everything of place `a` up to `resolved`, and one version there."""
    await store.replica(SPAN, Begin())
    replica = ReplicaKeyspace(store, 7)
    opened = await replica.open("a")
    entry = IngestedEntry(b"k", b"a's", resolved)
    await replica.ingest([entry], source="a", epoch=opened.epoch, origin=1, resolved=resolved)


def taking(barrier: Timestamp, *, term: int = 2, source: str = "a") -> TakeOver:
    return TakeOver(source=source, group="g", term=term, barrier=barrier)


def test_the_table_has_six_steps() -> None:
    steps = {(role, event): next_role(role, event) for role, event in product(Role, Event)}
    assert sum(after is not None for after in steps.values()) == 6
    assert {role for (role, _), after in steps.items() if after is Role.LEADING} == {
        Role.DRAINING,
        Role.TAKING_OVER,
    }


def test_a_leader_that_drains_refuses_writes_and_says_where_to_go() -> None:
    async def body(sim: Simulation, store: Store) -> None:
        keyspace = RawKeyspace(store, 7)
        before = await keyspace.put(b"k", b"1")
        state = await drained(store)
        assert state.role is Role.DRAINING
        assert state.resolved >= before
        with pytest.raises(NotLeader, match="write to store b"):
            await keyspace.put(b"k", b"2")
        assert await keyspace.get(b"k", at=state.resolved) == b"1"
        await RawKeyspace(store, 8).put(b"k", b"other keyspaces go on")
        reclaimed = await store.replica(SPAN, Reclaim(2))
        assert reclaimed is not None
        assert (reclaimed.role, reclaimed.term) == (Role.LEADING, 2)
        assert await keyspace.put(b"k", b"2") > state.resolved

    run(body)


@pytest.mark.parametrize("change", ["split", "merge", "nothing"])
def test_what_is_not_durable_is_below_the_barrier(change: str) -> None:
    """The store has closed nothing of it, so it is the ranges' maximum that says so: a split copies
    it to both halves, and a merge keeps the greater."""

    async def body(sim: Simulation, store: Store) -> None:
        for border in (SPAN.start, M, SPAN.end):
            await store.split(border)
        await asyncio.sleep(0.1)
        hold_log(store)
        pending = await store.submit_one_phase(lambda step: step.put([A], [encode_entry(b"v")]))
        changes = {
            "split": lambda: store.split(B),
            "merge": lambda: store.merge(_range_of(store, A)),
        }
        tasks: list[asyncio.Task[object]] = []
        if change in changes:
            tasks.append(asyncio.create_task(changes[change]()))
        await asyncio.sleep(0.01)
        tasks.append(asyncio.create_task(drained(store)))
        await asyncio.sleep(0.01)
        assert not tasks[-1].done(), "what is not durable drains first"
        ((_, state),) = store.replicas()
        assert state.resolved >= pending.timestamp, "the maximum was forgotten"
        release_log(store)
        await asyncio.gather(*tasks)

    run(body)


def _range_of(store: Store, key: bytes) -> int:
    return next(each.id for each in store.ranges() if each.span.contains(key))


@pytest.mark.parametrize("crashes", [False, True])
def test_who_takes_over_writes_above_its_leader(crashes: bool) -> None:
    """Also where the leader's clock was ahead of its own."""
    sim = Simulation(1)

    async def before() -> None:
        store = await open_store(sim)
        ahead = Timestamp(store.clock.now() + duration(seconds=30))
        await following(store, resolved=ahead)
        await store.replica(SPAN, taking(ahead))
        with pytest.raises(ReplicaRefused, match="the keyspace is a replica"):
            await RawKeyspace(store, 7).put(b"k", b"mine")
        if crashes:
            crash(sim)
        else:
            await lead(store)

    async def after() -> None:
        await lead(await reopen(sim))

    async def lead(store: Store) -> None:
        ((_, taken),) = store.replicas()
        assert taken.role is Role.TAKING_OVER
        await store.replica(SPAN, Lead(2))
        assert await RawKeyspace(store, 7).put(b"k", b"mine") > taken.resolved
        assert await RawKeyspace(store, 7).get(b"k") == b"mine"
        await store.close()

    sim.run(before())
    if crashes:
        sim.run(after())


def test_who_lacks_something_or_comes_late_does_not_take_over() -> None:
    async def body(sim: Simulation, store: Store) -> None:
        now = store.clock.now()
        await following(store, resolved=now)
        for order, words in (
            (taking(Timestamp(now + 1)), "its leader has written up to"),
            (taking(now, source="c"), "the replica's source is a"),
            (taking(now, term=0), "another leader's"),
        ):
            with pytest.raises(ReplicaRefused, match=words):
                await store.replica(SPAN, order)
        await store.replica(SPAN, taking(now, term=3))
        with pytest.raises(ReplicaRefused, match="epoch 2 is over"):
            await store.replica(SPAN, Lead(2))
        with pytest.raises(ReplicaRefused, match="taking over cannot drain"):
            await store.replica(SPAN, DRAIN)
        followed = await store.replica(SPAN, Follow(source="c", term=4))
        assert followed is not None
        assert (followed.role, followed.source) == (Role.FOLLOWING, "c")

    run(body)


def test_old_leader_takes_nothing_until_it_follows() -> None:
    async def body(sim: Simulation, store: Store) -> None:
        await RawKeyspace(store, 7).put(b"k", b"1")
        await drained(store)
        replica = ReplicaKeyspace(store, 7)
        with pytest.raises(ReplicaRefused, match="is led here"):
            await replica.open("b")
        await store.replica(SPAN, Follow(source="b", term=2))
        with pytest.raises(ReplicaRefused, match="another source"):
            await replica.open("c")
        assert (await replica.open("b")).resolved > 0

    run(body)


class Away:
    """A follower that has everything, and is never heard of again once it is to lead."""

    async def resolved(self) -> Timestamp:
        return Timestamp(1 << 62)

    async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
        raise FollowerAway("it does not answer")


def test_leader_goes_on_where_the_follower_did_not_take_over() -> None:
    async def body(sim: Simulation, store: Store) -> None:
        placements = Placements(_own(store))
        leadership, keyspace = Leadership(store, placements), RawKeyspace(store, 7)
        first = await keyspace.put(b"k", b"1")
        with pytest.raises(FollowerAway):
            await leadership.transfer(7, Away(), "store b")
        assert await keyspace.put(b"k", b"2") > first
        assert await placements.read(leadership.place(7)) == Placement(leadership.place(7), 2)

    run(body)


def test_transfer_names_an_oracle_that_does_not_answer() -> None:
    """The error is none that another run of the statement would mend."""

    async def body(sim: Simulation, store: Store) -> None:
        async def reset() -> Store:
            raise StoreUnreachable("the connection was reset")

        keyspace = RawKeyspace(store, 7)
        with pytest.raises(OracleAway, match="the oracle, which keeps the placement, does not"):
            await Leadership(store, Placements(reset)).transfer(7, Away(), "store b")
        await keyspace.put(b"k", b"1")

    run(body)


class Listening(Away):
    """A follower that hears the secret, and is silent."""

    def __init__(self) -> None:
        self.heard: list[tuple[TakeOver, bytes]] = []

    async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
        self.heard.append((order, secret))
        raise FollowerAway("it does not answer")


def test_nobody_takes_over_what_is_not_handed_to_them() -> None:
    """Neither by a guess, nor by what an earlier transfer told them."""

    async def body(sim: Simulation, store: Store) -> None:
        placements = Placements(_own(store))
        leadership, follower = Leadership(store, placements), Listening()
        for _ in range(2):
            with pytest.raises(FollowerAway):
                await leadership.transfer(7, follower, "store b")
        place, forged = leadership.place(7), keyspace_span(8)
        await store.replica(forged, Begin())
        await ReplicaKeyspace(store, 8).open(place)
        (order, old), (newer, new) = follower.heard
        assert old != new
        for secret in (b"", old, new, b"\0" * 32):
            for term in (order.term, newer.term, newer.term + 1):
                claim = TakeOver(source=place, group=place, term=term, barrier=Timestamp(0))
                with pytest.raises(ReplicaRefused, match="does not hand"):
                    await leadership.take_over(8, claim, store.id, secret)
        state = await store.replica(forged, Look())
        assert state is not None
        assert (state.role, state.group) == (Role.FOLLOWING, "")
        assert await placements.read(place) == Placement(place, newer.term)
        await RawKeyspace(store, 7).put(b"k", b"1")

    run(body)


@pytest.mark.parametrize("dies", ["nobody", "the follower", "the leader"])
def test_offer_is_taken_once_by_who_knows_its_secret(dies: str) -> None:
    """Also where the follower dies behind its step; a leader that died takes the placement back."""
    sim = Simulation(1)
    offered: list[tuple[TakeOver, bytes]] = []

    class Follower(Away):
        async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
            offered.append((order, secret))
            await asyncio.Event().wait()

    async def before() -> None:
        store = await open_store(sim)
        leadership = Leadership(store, Placements(_own(store)))
        await RawKeyspace(store, 7).put(b"k", b"1")
        asking = asyncio.create_task(leadership.transfer(7, Follower(), "store b"))
        while not offered:
            await asyncio.sleep(0.01)
        asking.cancel()
        ((order, _),) = offered
        await store.replica(keyspace_span(8), Begin())
        replica = ReplicaKeyspace(store, 8)
        opened = await replica.open(order.source)
        await replica.ingest(
            [], source=order.source, epoch=opened.epoch, origin=1, resolved=order.barrier
        )
        if dies == "the follower":
            await store.replica(keyspace_span(8), order)
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        leadership = Leadership(store, Placements(_own(store)))
        ((order, secret),) = offered
        if dies == "the leader":
            assert (await leadership.settle(7)).role is Role.LEADING
            with pytest.raises(ReplicaRefused, match="does not hand"):
                await leadership.take_over(8, order, store.id, secret)
        else:
            for _ in range(2):
                taken = await leadership.take_over(8, order, store.id, secret)
                assert (taken.role, taken.term) == (Role.LEADING, order.term)
            assert (await leadership.settle(7)).role is Role.FOLLOWING
        await store.close()

    sim.run(before())
    sim.run(after())


def test_leader_of_an_older_copy_is_fenced() -> None:
    """Two stores claim one keyspace: the placement knows whose it is, and in which epoch."""

    async def body(sim: Simulation, store: Store) -> None:
        placements = Placements(_own(store))
        leadership = Leadership(store, placements)
        group = leadership.place(7)
        await placements.swap(group, None, Placement("another/7", 5))
        with pytest.raises(NotLeader, match="another/7 leads the keyspace, in epoch 5"):
            await leadership.transfer(7, Away(), "store b")
        assert not await placements.swap(group, Placement("another/7", 4), Placement(group, 6))

    run(body)


def _own(store: Store) -> Callable[[], Awaitable[Store]]:
    async def reach() -> Store:
        return store

    return reach
