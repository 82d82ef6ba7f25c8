"""Changefeeds under the real job registry: claims, retries, cancellation, and nodes that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.api.feeds import ChangefeedResumer, ScheduleResumer
from tailrace.catalog.jobs import JobRegistry, JobState, Resumer
from tailrace.changefeed import JOB_KIND, Changefeeds, FeedState, feeds
from tailrace.changefeed.schedules import SCHEDULE_KIND
from tailrace.kvlayer.protected_timestamp import records
from tests.changefeed.feeds import FeedBench, TargetKind
from tests.changefeed.table import Table
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation


class FeedNode:
    """A node with a job registry that runs changefeeds."""

    def __init__(
        self, sim: Simulation, catalog: CatalogFixture, node: Node, table: Table, kind: TargetKind
    ) -> None:
        self.node = node
        self.bench = FeedBench(sim, catalog, node, table, kind)
        resumers: dict[str, Resumer] = {}
        self.registry = JobRegistry(
            node.store, node.session, resumers, accepts=lambda job: self.feeds.accepts(job)
        )
        self.feeds = self.bench.feeds = Changefeeds(self.bench.services, self.registry)
        resumers[JOB_KIND] = ChangefeedResumer(self.feeds)
        resumers[SCHEDULE_KIND] = ScheduleResumer(self.feeds)


@asynccontextmanager
async def open_feed_nodes(sim: Simulation, count: int) -> AsyncIterator[list[FeedNode]]:
    async with open_nodes(sim, count) as (catalog, nodes):
        table = Table(catalog, await catalog.create(locked=True))
        await table.write((1, "old"), (2, "old"))
        kind = TargetKind(sim)
        feed_nodes = [FeedNode(sim, catalog, node, table, kind) for node in nodes]
        for each in feed_nodes:
            await each.registry.start()
        yield feed_nodes
        for each in feed_nodes:
            each.node.go_on()
            await each.registry.close()


def test_committed_feed_is_claimed_and_runs() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await only.bench.create()
            at = await only.bench.table.write((3, "new"))
            await only.feeds.wait_until(job_id, at)
            assert only.bench.rows() == {1: "old", 2: "old", 3: "new"}

    sim = Simulation(1)
    sim.run(scenario())


def test_failing_sink_is_tried_again() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            only.bench.kind.fail = 0.5
            job_id = await only.bench.create()
            for k in range(10):
                at = await only.bench.table.write((k, "new"))
                await asyncio.sleep(0.3)
            only.bench.kind.fail = 0.0
            await only.feeds.wait_until(job_id, at)
            assert only.bench.rows() == await only.bench.table.rows_at(at)

    sim = Simulation(2)
    sim.run(scenario())


def test_canceled_feed_stops_and_releases() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await only.bench.create()
            await only.feeds.wait_until(job_id, only.bench.store.clock.now())
            await only.registry.request_cancel(job_id)
            await only.registry.wait(job_id, JobState.CANCELED, timeout=10)
            assert only.bench.kind.released == [job_id]
            assert records(only.bench.store.engine) == []
            await only.bench.table.write((3, "nobody sees it"))
            await asyncio.sleep(3)
            assert only.bench.rows() == {1: "old", 2: "old"}

    sim = Simulation(3)
    sim.run(scenario())


def test_paused_feed_waits_and_goes_on() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            job_id = await only.bench.create()
            await only.feeds.wait_until(job_id, only.bench.store.clock.now())
            await only.registry.request_pause(job_id)
            await only.registry.wait(job_id, JobState.PAUSED, timeout=10)
            at = await only.bench.table.write((3, "later"))
            await asyncio.sleep(3)
            assert only.feeds.watch(job_id).state is FeedState.WAITING
            assert only.bench.rows() == {1: "old", 2: "old"}
            await only.registry.request_resume(job_id)
            await only.feeds.wait_until(job_id, at)
            assert only.bench.rows() == {1: "old", 2: "old", 3: "later"}

    sim = Simulation(4)
    sim.run(scenario())


def test_feeds_that_ended_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "ENDED_MAX", 2)

    async def scenario() -> None:
        async with open_feed_nodes(sim, 1) as [only]:
            runs = await only.bench.create()
            ended = []
            for each in range(4):
                job_id = await only.bench.create(f"target://{each}", initial_scan="only")
                await only.registry.wait(job_id, JobState.SUCCEEDED, timeout=10)
                ended.append(job_id)
            known = [each for each in (runs, *ended) if only.feeds.feed(each) is not None]
            assert known == [runs, *ended[-2:]]

    sim = Simulation(11)
    sim.run(scenario())


def test_feed_moves_from_a_node_that_stopped() -> None:
    async def scenario() -> None:
        async with open_feed_nodes(sim, 2) as nodes:
            job_id = await nodes[0].bench.create()
            await asyncio.sleep(1)
            states = [each.feeds.watch(job_id).state for each in nodes]
            holder = nodes[states.index(FeedState.STEADY)]
            other = nodes[1 - states.index(FeedState.STEADY)]
            holder.node.stop()
            at = await holder.bench.table.write((3, "new"))
            await other.feeds.wait_until(job_id, at)
            holder.node.go_on()
            await asyncio.sleep(3)
            assert holder.feeds.watch(job_id).state is FeedState.WAITING
            assert other.bench.kind.released == []
            assert len(records(other.bench.store.engine)) == 1
            at = await other.bench.table.write((4, "newer"))
            await other.feeds.wait_until(job_id, at)
            assert other.bench.rows() == await other.bench.table.rows_at(at)

    sim = Simulation(5)
    sim.run(scenario())
