from __future__ import annotations

import asyncio

from tailrace.catalog.leases import Incarnation, LivenessSession, SessionRow
from tailrace.catalog.store.lease_rows import SESSIONS, session_key
from tailrace.kvlayer.clock import seconds_between
from tests.harness.nodes import CatalogFixture, open_catalog, open_nodes
from tests.harness.simulation import Simulation


async def sessions(catalog: CatalogFixture) -> list[SessionRow]:
    rows = await catalog.store.snapshot(catalog.store.clock.now()).scan(SESSIONS)
    return [SessionRow.decode(key, body) for key, body in rows]


def test_heartbeats_keep_a_session_alive() -> None:
    sim = Simulation(1)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            incarnation = node.session.incarnation
            for _ in range(100):
                await asyncio.sleep(0.7)
                left = seconds_between(catalog.store.clock.now(), incarnation.expiration)
                assert 3.9 < left <= 5
            assert node.session.incarnation is incarnation

    sim.run(scenario())


def test_a_claim_is_never_wider_than_what_the_store_holds() -> None:
    """What the node counts on is at most what the others read."""
    sim = Simulation(2)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            for _ in range(200):
                await asyncio.sleep(sim.random.random() / 10)
                acknowledged = node.session.incarnation.expiration
                (row,) = await sessions(catalog)
                assert acknowledged <= row.expiration

    sim.run(scenario())


def test_an_expired_session_is_not_extended() -> None:
    """Others may have acted as if it were gone, though its row is still there."""
    sim = Simulation(3)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            session = LivenessSession(catalog.store, 1)
            lost: list[Incarnation] = []
            session.on_lost(lost.append)
            await session.start()
            former = session.incarnation
            sim.wall.suspend(60)
            await session.heartbeat()
            assert lost == [former]
            assert former.lost
            assert former.expiration < catalog.store.clock.now()
            assert [row.session_id for row in await sessions(catalog)] == [
                session.incarnation.session_id
            ]
            await session.close()

    sim.run(scenario())


def test_a_removed_session_is_replaced() -> None:
    sim = Simulation(4)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            former = node.session.incarnation
            key = session_key(former.session_id)
            await catalog.store.one_phase(lambda evaluation: evaluation.delete((key,)))
            await asyncio.sleep(1.5)
            assert former.lost
            assert not node.session.incarnation.lost

    sim.run(scenario())


def test_the_living_remove_the_dead_once_they_expired() -> None:
    sim = Simulation(5)

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [first, second]):
            expiration = first.session.incarnation.expiration
            first.stop()
            while len(rows := await sessions(catalog)) == 2:
                assert sim.now < 20
                await asyncio.sleep(0.01)
            assert catalog.store.clock.now() >= expiration
            assert [row.node_id for row in rows] == [2]
            assert not second.session.incarnation.lost

    sim.run(scenario())


def test_a_shorter_time_to_live_takes_nothing_back() -> None:
    sim = Simulation(6)

    async def scenario() -> None:
        async with open_nodes(sim, 1) as (catalog, [node]):
            expiration = node.session.incarnation.expiration
            catalog.store.settings.set("server.liveness.ttl", "2s")
            await node.session.heartbeat()
            assert [row.expiration for row in await sessions(catalog)] == [expiration]

    sim.run(scenario())


def test_a_restarted_node_replaces_its_own_session_at_once() -> None:
    sim = Simulation(7)

    async def scenario() -> None:
        async with open_catalog(sim) as catalog:
            killed = LivenessSession(catalog.store, 1)
            await killed.start()
            again = LivenessSession(catalog.store, 1)
            await again.start()
            ids = [row.session_id for row in await sessions(catalog)]
            assert ids == [again.incarnation.session_id]
            await again.close()
            assert await sessions(catalog) == []

    sim.run(scenario())
