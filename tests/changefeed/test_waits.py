"""Waits for a feed that runs on another node."""

from __future__ import annotations

import asyncio

from tailrace.changefeed.jobs.waits import FeedWaits
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.sinks import SinkProgress
from tailrace.kvlayer.errors import StoreFull
from tests.harness.nodes import open_nodes
from tests.harness.simulation import Simulation


def test_a_wait_is_answered_also_where_the_first_answer_cannot_be_written() -> None:
    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [asker, runner]):
            asking = FeedWaits(asker.store, LiveFeed)
            live = LiveFeed(7)
            serving = FeedWaits(runner.store, lambda job_id: live)
            await asking.start(alone=True)
            await serving.start(alone=False)
            at = await catalog.store.now()
            live.note_flushed(SinkProgress(frontier=(), resolved=at, scan_complete=True))
            runner.fail_writes(*[StoreFull("the disk is full")] * 2)
            async with asyncio.timeout(60), asking.asking(7, at) as answered:
                await answered.wait()
            assert catalog.store.metrics.get("feed_wait_failures_total") == 2
            await serving.close()
            await asking.close()

    sim = Simulation(1)
    sim.run(scenario())
