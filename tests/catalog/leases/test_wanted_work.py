"""Work that is wanted while it is under way runs once more, and never twice at once."""

from __future__ import annotations

import asyncio

from tailrace.catalog.leases.wanted_work import WantedWork
from tailrace.catalog.rights.bootstrap import bootstrap
from tests.harness.simulation import Simulation
from tests.harness.stores import open_store
from tests.simulation.storm_places import start_places


class Looks:
    """Each look takes a second; `begun` is when they began."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.at_once = 0

    async def look(self) -> None:
        self.begun.append(asyncio.get_running_loop().time())
        self.at_once += 1
        assert self.at_once == 1, "one at a time"
        await asyncio.sleep(1.0)
        self.at_once -= 1


def test_what_is_wanted_meanwhile_is_done_once_more() -> None:
    looks = Looks()

    async def scenario() -> None:
        work = WantedWork(looks.look, asyncio.create_task)
        work.want()
        await asyncio.sleep(0.5)
        for _ in range(100):
            waited = work.want()
        await waited
        assert looks.begun == [0.0, 1.0]

    Simulation(1).run(scenario())


def test_somebody_in_a_hurry_ends_a_pause() -> None:
    looks = Looks()

    async def scenario() -> None:
        work = WantedWork(looks.look, asyncio.create_task)
        waited = work.want(pause=5.0)
        await asyncio.sleep(0.25)
        work.want()
        await waited
        assert looks.begun == [0.25]

    Simulation(1).run(scenario())


def test_node_that_is_cut_off_for_long_looks_once() -> None:
    """Its watchdog asks for every table every two seconds, and no look comes to an end."""

    async def scenario() -> None:
        store = await open_store(sim)
        await bootstrap(store)
        settings = {"catalog.leases.watchdog": "2s"}
        async with start_places(sim, store, 1, settings) as [home, away]:
            for name in ("a", "b", "c"):
                await home.node.sql(f"CREATE TABLE {name} (k INT8 PRIMARY KEY)")
                await away.node.sql(f"SELECT * FROM {name} WHERE k = 1")
            before = len(away.node.services.leases._tasks)
            away.stop()
            await asyncio.sleep(600.0)
            assert len(away.node.services.leases._tasks) <= before + 4
            away.go_on()
        await store.close()

    sim = Simulation(1)
    sim.run(scenario())
