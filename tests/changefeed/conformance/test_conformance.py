"""The feed contract's five promises, over everything that a feed may follow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.kvlayer.clock import ZERO, Timestamp
from tests.changefeed.conformance.jobs import WRITES, Jobs, due, write
from tests.changefeed.conformance.sources import SOURCES, Source
from tests.changefeed.feeds import TargetKind
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node, sql_services
from tests.harness.stores import crash, open_store, reopen
from tests.harness.validators import Watch

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
            if self.random.random() < 0.5:
                await self.source.resolve()
            await asyncio.sleep(self.random.choice((0, 0.01, 0.3)))
        self.ended_at = await self.source.resolve()

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
                middle = await source.resolve()
                tasks.create_task(following.watch(middle, with_previous=True, patience=0.1))
                await writing
                late = sim.random.choice(source.timestamps)
                tasks.create_task(following.watch(late, with_previous=False, patience=0.1))
            return following

    following = sim.run(scenario())
    assert following.watched == 4
    assert len(following.source.timestamps) > WRITES // 4


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("seed", range(2))
def test_feed_goes_on_after_a_crash(make: Make, seed: int) -> None:
    """What a feed had resolved is all that it knows: from there on everything comes again."""
    sim = Simulation(seed)
    kept: list[tuple[Source, Watch]] = []

    async def before() -> None:
        store = await open_store(sim)
        await bootstrap(store)
        async with sql_services(sim, store, 1) as node:
            source = await make(node)
            starts = [(span, ZERO) for span in source.spans]
            watch = Watch(source.history, starts, restarts_hidden=True)
            feed = store.span_feed_from(starts)
            for _ in range(WRITES):
                await source.write(sim.random)
                if sim.random.random() < 0.3:
                    middle = await source.resolve()
                    while watch.resolved < middle:
                        watch.note_events(await feed.next())
            kept.append((source, watch))
            crash(sim)

    async def after() -> None:
        ((source, watch),) = kept
        store = await reopen(sim)
        async with sql_services(sim, store, 1) as node:
            source.moved(node)
            for span, at in watch.entries:
                watch.note_restart(span, at)
            feed = store.span_feed_from(watch.entries)
            for _ in range(WRITES):
                await source.write(sim.random)
            ended_at = await source.resolve()
            while watch.resolved < ended_at:
                watch.note_events(await feed.next())
            feed.close()
            watch.finish()
            assert not watch.failures, watch.failures
        await store.close()

    sim.run(before())
    sim.run(after())


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("seed", range(3))
def test_changefeed_scans_stops_and_catches_up(make: Make, seed: int) -> None:
    """Rows that were there, rows written while it runs, while its sink fails and while it is
    paused: in the end its target has each row as it was written last, and at that timestamp."""
    sim = Simulation(seed)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            source, kind = await make(node), TargetKind(sim, fail=0.1)
            jobs = Jobs(sim, node, kind, "target")
            for _ in range(WRITES):
                await source.write(sim.random)
            await source.resolve()
            job_id = await jobs.create(source, "target://a")
            scanned_at = node.feeds.requests[-1][0].newest
            for _ in range(3):
                writing = asyncio.create_task(write(source, sim.random))
                await jobs.run_until(job_id, await source.resolve())
                await writing
            ended_at = await source.resolve()
            await jobs.run_until(job_id, ended_at)
            target = kind.targets["target://a"]
            assert target.progress is not None
            assert target.progress.resolved >= ended_at
            found = [(at, row) for at, row in target.versions.values() if row is not None]
            # A scan shows rows as of one timestamp, whenever they were written.
            assert sorted(found, key=repr) == sorted(
                ((max(at, scanned_at), row) for at, row in due(source, ended_at)), key=repr
            )
            for key in {key for key, _ in target.applied}:
                stamps = [at for each, at in target.applied if each == key]
                assert stamps == sorted(stamps), (key, stamps)

    sim.run(scenario())
