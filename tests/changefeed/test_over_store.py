"""Whole feeds over a real store: its range feeds, its leases and its polls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState
from tailrace.changefeed.contract.changes import Form
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.pipeline.budget import FeedMemory
from tailrace.changefeed.pipeline.gate import SchemaGate
from tailrace.changefeed.pipeline.idle_pace import IdlePace
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.pipeline import Pipeline, SinkEnd
from tailrace.changefeed.pipeline.progress import progress_at
from tailrace.changefeed.pipeline.shared_decoding import SharedDecoding
from tailrace.changefeed.pipeline.stage_times import Milestone
from tailrace.changefeed.sinks import SinkError, SinkProgress
from tailrace.schemafeed.feed import TableDropped
from tailrace.schemafeed.leasing import LeasingSchemaFeed
from tailrace.schemafeed.polling import PollingSchemaFeed
from tests.changefeed.model import Target, TargetSink, starts_of
from tests.changefeed.table import Table
from tests.harness.nodes import Node, open_nodes
from tests.harness.simulation import Simulation


class Feed:
    """A feed of one table into a target, across attempts."""

    def __init__(self, sim: Simulation, node: Node, table: Table, *, polling: bool = False) -> None:
        self.node = node
        self.table = table
        self.polling = polling
        self.target = Target()
        self.sink = TargetSink(sim, self.target)
        self.live = LiveFeed(1)
        self.options = ChangefeedOptions()
        self.start_at = node.store.clock.now()

    async def run(self) -> None:
        store, descriptor = self.table.catalog.store, self.table.descriptor
        start = self.target.progress or progress_at(
            [descriptor.primary_span], self.start_at, scan_complete=False
        )
        polling = PollingSchemaFeed(store, self.table.catalog.descriptors)
        schema = polling if self.polling else LeasingSchemaFeed(self.node.leases, polling)
        await schema.start([descriptor.id], max(start.resolved, self.start_at))
        try:
            await Pipeline(
                store,
                starts_of([descriptor], SchemaGate(schema), self.start_at),
                end=SinkEnd(sink=self.sink, transactional=True, form=Form.COLUMNS, save=_save),
                start=start,
                options=self.options,
                live=self.live,
                pace=IdlePace(),
                decoding=SharedDecoding(),
                memory=FeedMemory(),
            ).run()
        finally:
            await schema.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def rows(self) -> dict[int, str | None]:
        return self.target.rows(self.table.descriptor.id)

    def held_seconds(self) -> float:
        """The longest that a durable row waited for the sink to receive it."""
        stages = self.live.stages
        emit, durable = stages.samples_ns(Milestone.EMIT), stages.samples_ns(Milestone.DURABLE)
        return max(e - d for e, d in zip(emit, durable, strict=True)) / 1e9


async def _save(progress: SinkProgress) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def open_feed(
    sim: Simulation, *, locked: bool, polling: bool = False
) -> AsyncIterator[tuple[Table, Feed]]:
    async with open_nodes(sim, 1) as (catalog, [node]):
        table = Table(catalog, await catalog.create(locked=locked))
        await table.write((1, "old"), (2, "old"))
        yield table, Feed(sim, node, table, polling=polling)


def test_scan_and_live_rows_reach_the_target() -> None:
    async def scenario() -> None:
        async with open_feed(sim, locked=True) as (table, feed), feed.running():
            await table.write((2, "new"), (3, "new"), delete=[1])
            at = await table.write_slowly((4, "slow"), 0.1)
            await feed.live.wait_until(at)
            assert feed.rows() == await table.rows_at(at)
            assert feed.rows() == {2: "new", 3: "new", 4: "slow"}

    sim = Simulation(1)
    sim.run(scenario())


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "unlocked"])
def test_only_a_locked_table_skips_the_poll(locked: bool) -> None:
    async def scenario() -> None:
        async with open_feed(sim, locked=locked) as (table, feed), feed.running():
            await feed.live.wait_until(await table.write((1, "warm")))
            feed.live.stages.clear()
            for k in range(20):
                await table.write((k, "v"))
                await asyncio.sleep(0.13)
            await asyncio.sleep(2)
            if locked:
                assert feed.held_seconds() == 0.0
            else:
                assert 0.5 < feed.held_seconds() < 1.5

    sim = Simulation(2)
    sim.run(scenario())


def test_long_transaction_holds_resolved_but_not_rows() -> None:
    async def scenario() -> None:
        async with open_feed(sim, locked=True) as (table, feed), feed.running():
            await feed.live.wait_until(await table.write((1, "warm")))
            table.catalog.store.settings.set("kv.transaction.buffer_bytes", "0")
            slow = asyncio.create_task(table.write_slowly((9, "slow"), 2.0))
            await asyncio.sleep(0.1)
            feed.live.stages.clear()
            at = await table.write((2, "quick"))
            await asyncio.sleep(1)
            assert feed.rows()[2] == "quick"
            assert feed.held_seconds() == 0.0
            assert feed.live.resolved < at
            await feed.live.wait_until(await slow)

    sim = Simulation(3)
    sim.run(scenario())


def test_feed_goes_on_across_unlock_and_lock() -> None:
    async def scenario() -> None:
        async with open_feed(sim, locked=True) as (table, feed), feed.running():
            written = 0
            for locked in (False, True, False, True):
                for _ in range(30):
                    written += 1
                    await table.write((written, f"{locked}"))
                    await asyncio.sleep(0.01)
                await table.publish(locked=locked)
            await asyncio.sleep(5)
            feed.live.stages.clear()
            at = await table.write((0, "after"))
            await feed.live.wait_until(at)
            assert feed.rows() == await table.rows_at(at)
            assert feed.held_seconds() == 0.0  # the lock that came last serves again

    sim = Simulation(4)
    sim.run(scenario())


def test_drop_ends_the_feed_with_all_rows_before_it() -> None:
    async def scenario() -> None:
        async with open_feed(sim, locked=False) as (table, feed):
            task = asyncio.create_task(feed.run())
            await feed.live.wait_until(await table.write((5, "last")))
            at = await table.write((6, "very last"))
            await table.publish(state=DescriptorState.DROPPED)
            with pytest.raises(TableDropped, match="orders"):
                await task
            assert feed.rows() == await table.rows_at(at)
            assert feed.live.resolved >= at

    sim = Simulation(5)
    sim.run(scenario())


@pytest.mark.parametrize("seed", range(8))
def test_random_load_with_failing_sink_is_exact(seed: int) -> None:
    async def scenario() -> None:
        random = sim.random
        async with open_feed(sim, locked=random.random() < 0.5) as (table, feed):
            feed.sink.seconds, feed.sink.fail = 0.003, 0.05
            stop = False

            async def keep_running() -> None:
                while not stop:
                    try:
                        await feed.run()
                    except SinkError:
                        await asyncio.sleep(0.05)

            runner = asyncio.create_task(keep_running())
            locked = table.descriptor.locked
            for _ in range(150):
                keys = random.sample(range(60), random.choice([1, 2, 40]))
                if random.random() < 0.3:
                    await table.write(delete=keys)
                elif random.random() < 0.1:
                    await table.write_slowly((keys[0], "slow"), random.random() * 0.3)
                else:
                    await table.write(*[(k, f"{random.random()}") for k in keys])
                if random.random() < 0.02:
                    locked = not locked
                    await table.publish(locked=locked)
                await asyncio.sleep(random.choice([0.0, 0.001, 0.03]))
            feed.sink.fail = 0.0
            at = await table.write((1000, "end"))
            await feed.live.wait_until(at)
            stop = True
            runner.cancel()
            await asyncio.gather(runner, return_exceptions=True)
            assert feed.rows() == await table.rows_at(at)
            assert len(feed.target.applied) == len(set(feed.target.applied))

    sim = Simulation(seed)
    sim.run(scenario())
