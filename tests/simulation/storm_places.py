"""The nodes of a storm: one that serves the store, and others that joined it over a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, cast

from tailrace.api.rpc import StoreService
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tests.harness.sim_network import SimNetwork
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_services

T = TypeVar("T")

STATEMENT_SECONDS_MAX = 40.0
"""A lease is held for 3 s at most, a session lives 1.5 s after its last heartbeat, notices that
stand still are noticed after 2, and a statement waits 6 for leases and says then who has them: each
wait ends long before this, also behind several changes of the same table."""


class NodeDied(Exception):
    """A client's node gives no more answers."""


@dataclass(slots=True, eq=False)
class Place:
    """A node, and its network if it is not the one that serves the store."""

    node: SqlNode
    network: SimNetwork | None
    dead: bool = False
    died: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self) -> None:
        if self.network is not None:
            self.network.cut()

    def go_on(self) -> None:
        if self.network is not None and not self.dead:
            self.network.heal()

    async def state(self) -> str:
        """Who waits for what."""
        jobs = [job for job in await self.node.registry.list() if not job.state.final]
        told = [(j.id, j.description, j.state.value, j.error, j.claim_node_id) for j in jobs]
        return f"jobs {told}, waits {self.node.services.leases.waits.under_way()}"

    async def attend(self, work: Coroutine[Any, Any, T], what: str) -> T:
        """What a client gets, who waits no longer than anything may take. Raises NodeDied."""
        task = asyncio.create_task(work)
        death = asyncio.create_task(self.died.wait())
        try:
            await asyncio.wait(
                (task, death),
                timeout=STATEMENT_SECONDS_MAX,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if task.done():
                return task.result()
            if self.dead:
                raise NodeDied
            raise AssertionError(f"{what} hangs: {await self.state()}")
        finally:
            death.cancel()
            task.cancel()
            if not self.dead:  # of a dead node, nothing is waited for
                await asyncio.wait((task, death))


@asynccontextmanager
async def start_places(
    sim: Simulation, store: Store, joined: int, settings: Mapping[str, str]
) -> AsyncIterator[list[Place]]:
    """The node that serves the store, and others that have joined it."""
    async with AsyncExitStack() as closing:
        service = StoreService(store)
        service.start()
        closing.push_async_callback(service.close)
        places = [Place(await closing.enter_async_context(sql_services(sim, store, 1)), None)]
        for node_id in range(2, 2 + joined):
            network = SimNetwork(sim, service, f"network of node {node_id}, at {sim.now}")
            remote = await network.join(Settings(settings))
            closing.push_async_callback(remote.close)
            services = sql_services(sim, cast(Store, remote), node_id)
            places.append(Place(await closing.enter_async_context(services), network))
        yield places


def choose(random: Random, places: Sequence[Place]) -> Place:
    """One that lives."""
    return random.choice([place for place in places if not place.dead])
