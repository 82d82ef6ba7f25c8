"""The feed contract's five promises, over everything that a feed may follow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp
from tests.changefeed.conformance.sources import SOURCES, Source
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node
from tests.harness.validators import Watch

WRITES = 25
Make = Callable[[SqlNode], Awaitable[Source]]


class Following:
    """Feeds of a source, each from a start of its own, until all that was written has come."""

    def __init__(self, node: SqlNode, source: Source, random: Random) -> None:
        self.node = node
        self.source = source
        self.random = random
        self.ended_at: Timestamp | None = None
        self.watched = 0

    async def write(self) -> None:
        for _ in range(WRITES):
            await self.source.write(self.random)
            await asyncio.sleep(self.random.choice((0, 0.01, 0.3)))
        self.ended_at = await self.node.store.now()

    async def watch(self, start: Timestamp, *, with_previous: bool, patience: float) -> None:
        starts = [(span, start) for span in self.source.spans]
        watch = Watch(self.source.history, starts, restarts_hidden=True)
        feed = self.node.store.span_feed_from(starts, with_previous=with_previous)
        while self.ended_at is None or watch.resolved < self.ended_at:
            watch.note_events(await feed.next())
            await asyncio.sleep(self.random.random() * patience)
        feed.close()
        watch.finish()
        assert not watch.failures, watch.failures
        self.watched += 1


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("seed", range(4))
def test_feed_keeps_its_promises(make: Make, seed: int) -> None:
    sim = Simulation(seed)

    async def scenario() -> Following:
        async with sql_node(sim) as node:
            source = await make(node)
            following = Following(node, source, sim.random)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(following.watch(ZERO, with_previous=False, patience=0.0))
                tasks.create_task(following.watch(ZERO, with_previous=True, patience=0.5))
                writing = tasks.create_task(following.write())
                await asyncio.sleep(1)
                middle = await node.store.now()
                tasks.create_task(following.watch(middle, with_previous=True, patience=0.1))
                await writing
                late = sim.random.choice(source.timestamps)
                tasks.create_task(following.watch(late, with_previous=False, patience=0.1))
            return following

    following = sim.run(scenario())
    assert following.watched == 4
    assert len(following.source.timestamps) > WRITES // 4
