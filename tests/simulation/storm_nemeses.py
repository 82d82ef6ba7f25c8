"""The misfortunes of a storm: nodes that stop, go deaf or die, and jobs that are stopped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

from tailrace.catalog.jobs import JobState
from tailrace.catalog.schema_change.job import JOB_KIND
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import Alteration, ControlTarget
from tailrace.kvlayer.errors import KVError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.simulation.schema_feeds import StormFeed
from tests.simulation.storm_mirrors import StormMirror
from tests.simulation.storm_places import NodeDied, Place, choose

JUMPS_SECONDS = (-86_400.0, -3.0, -0.4, -0.05, 0.05, 0.4, 3.0, 86_400.0)
"""How far a machine's clock jumps: within what it may at once, and beyond."""

SILENT_SECONDS_MAX = 6.0
"""A job that has come no further for so long says what it waits for."""


class Nemeses:
    """Each of its coroutines is one, which goes on until `stop` is set."""

    def __init__(self, sim: Simulation, feeds: Sequence[StormFeed]) -> None:
        self._sim = sim
        self._random = sim.random
        self._feeds = feeds
        self.deaths = 0
        self.pauses = 0
        self.jumps = 0
        self.alterations: Counter[str] = Counter()
        """Targets of feeds that were altered, by what was done to them."""

    async def trouble_nodes(self, places: list[Place], stop: asyncio.Event) -> None:
        """Nodes that stop, lose their connections or their notices, and die."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.5)
            place = choose(self._random, places)
            if place.network is None or stop.is_set():
                continue
            match self._random.randrange(8):
                case 0 | 1 | 2:
                    place.stop()
                    await asyncio.sleep(self._random.choice([0.05, 0.5, 2.5]))
                    place.go_on()
                case 3 | 4:
                    place.network.disconnect()
                case 5 | 6:
                    place.network.mute()
                    await asyncio.sleep(self._random.choice([0.2, 1.0, 4.0]))
                    place.go_on()
                case _ if self._random.random() < 0.5:
                    place.stop()
                    place.dead = True
                    place.died.set()
                    self.deaths += 1
                    await self._move_feeds(places, place)

    async def trouble_clock(self, luck: Random, stop: asyncio.Event) -> None:
        """A clock that jumps ahead and back. It is set right at the end: the run is judged by what
        happened, not by how long the clock took to come back.

        `luck` is its own, so that a seed without jumps is the run that it was."""
        moved = 0.0
        while not stop.is_set():
            await asyncio.sleep(luck.random() * luck.choice([0.1, 1.0]))
            seconds = luck.choice([*JUMPS_SECONDS, -moved, -moved])
            self._sim.wall.jump(seconds)
            moved += seconds
            self.jumps += 1
        self._sim.wall.jump(-moved)

    async def _move_feeds(self, places: list[Place], dead: Place) -> None:
        for feed in self._feeds:
            if feed.task is not None:
                feed.die()
                if self._random.random() < 0.7:
                    feed.start(choose(self._random, places).node)

    async def trouble_feeds(self, places: list[Place], stop: asyncio.Event) -> None:
        """Feeds that are away for a while, and find afterwards what came of their mirrors."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.6)
            feed = self._random.choice(self._feeds)
            if self._random.random() < 0.4:
                feed = next(each for each in self._feeds if each.mirror is not None)
            if feed.task is None:
                feed.start(choose(self._random, places).node)
                continue
            feed.die()
            self.pauses += 1
            if feed.mirror is not None:
                self._trouble_file(feed.mirror)
            await asyncio.sleep(self._random.choice([0.0, 0.3, 1.0, 3.0]))
            if feed.task is None and not stop.is_set():
                feed.start(choose(self._random, places).node)

    async def alter_feeds(self, places: list[Place], stop: asyncio.Event) -> None:
        """Tables that join and leave feeds, are paused, go on and are shown again."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.2)
            feed, place = self._random.choice(self._feeds), choose(self._random, places)
            try:
                await place.attend(self._alter(feed, place), "ALTER CHANGEFEED")
            except (SQLError, KVError, NodeDied):
                continue

    async def _alter(self, feed: StormFeed, place: Place) -> None:
        chosen = await feed.choose_alterations(place.node, self._random)
        await feed.alter(place.node, chosen)
        self.alterations.update(map(_deed, chosen))

    def _trouble_file(self, mirror: StormMirror) -> None:
        match self._random.randrange(4):
            case 0:
                mirror.delete()
            case 1:
                mirror.put_back()
            case 2:
                mirror.keep_copy()

    async def trouble_jobs(self, places: list[Place], stop: asyncio.Event) -> None:
        """Jobs that are stopped as a crash would, paused, resumed and canceled."""
        while not stop.is_set():
            await asyncio.sleep(self._random.random() * 0.1)
            registry = places[0].node.registry
            jobs = [j for j in await registry.list() if j.kind == JOB_KIND and not j.state.final]
            if not jobs:
                continue
            job = self._random.choice(jobs)
            try:
                match self._random.randrange(8):
                    case 0:
                        await registry.request_cancel(job.id)
                    case 1 | 2:
                        await registry.request_pause(job.id)
                    case 3 | 4:
                        await registry.request_resume(job.id)
                    case _:
                        for runner in list(registry._runners.values()):
                            await runner.close()
            except (SQLError, KVError):
                pass  # it was faster
            if job.state is JobState.PAUSED:
                await resume_jobs(places[0].node)

    async def watch_jobs(self, places: list[Place], stop: asyncio.Event) -> None:
        """A job that comes no further says why."""
        node = places[0].node
        known: dict[int, tuple[object, float]] = {}
        while not stop.is_set():
            await asyncio.sleep(1.0)
            for job in await node.registry.list():
                if job.kind != JOB_KIND or job.state is not JobState.RUNNING:
                    known.pop(job.id, None)
                    continue
                state = (await node.registry.progress(job.id), job.epoch, job.error)
                former, since = known.get(job.id, (None, 0.0))
                if former != state:
                    known[job.id] = (state, self._sim.now)
                elif self._sim.now - since > SILENT_SECONDS_MAX:
                    assert job.error, f"{job} has stood still since {since}, and does not say why"


def _deed(alteration: Alteration) -> str:
    if isinstance(alteration, ControlTarget):
        return f"targets: {alteration.action.value}"
    return f"targets: {type(alteration).__name__}"


async def resume_jobs(node: SqlNode) -> None:
    for job in await node.registry.list():
        if job.state is JobState.PAUSED and job.kind == JOB_KIND:
            try:
                await node.registry.request_resume(job.id)
            except (SQLError, KVError):
                pass  # somebody was faster
