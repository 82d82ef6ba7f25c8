"""Feeds that catch up while the log is cut behind the engine's flushes: in small segments."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tailrace.kvlayer.clock import ZERO, Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.errors import FeedEnd, RangeFeedEnded
from tailrace.kvlayer.events import Checkpoint, ValueBatch
from tailrace.kvlayer.log import CommandLog
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.rangefeed import RangeFeed
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put

SPAN = Span.prefix(key(""))
SEGMENT_BYTES = 8192
BODY = b"v" * 200


async def small_segments(sim: Simulation, *, retained_bytes: int) -> Store:
    """A store that flushes every 16 kB and then deletes the log's segments of 8 kB."""
    log = await CommandLog.open(
        sim.disk, sim.offload, flushed_index=0, on_failure=_fail, segment_bytes=SEGMENT_BYTES
    )
    return await Store.open(
        log=log,
        engine=MemoryEngine(),
        clock=Clock(sim.wall, MemoryBoundStore()),
        offload=sim.offload,
        settings=Settings(
            {
                "kv.engine.flush_bytes": "16384",
                "kv.log.retained_bytes_max": str(retained_bytes),
            }
        ),
        metrics=Metrics(),
        random=Random(sim.seed),
    )


def _fail(error: BaseException) -> None:
    raise AssertionError(error)


async def write(store: Store, count: int) -> set[Timestamp]:
    return {await put(store, {key(f"{number % 50:02}"): BODY}) for number in range(count)}


class Consumer:
    """Takes what a feed gives, and checks that nothing comes at or below a checkpoint."""

    def __init__(self) -> None:
        self.seen: set[Timestamp] = set()
        self.resolved = ZERO

    async def take(self, feed: RangeFeed) -> None:
        for event in await feed.next():
            if isinstance(event, ValueBatch):
                assert min(event.timestamps) > self.resolved
                self.seen |= set(event.timestamps)
            elif isinstance(event, Checkpoint):
                self.resolved = max(self.resolved, event.resolved)


@pytest.mark.parametrize("seed", range(2))
def test_segments_stay_until_the_feed_has_read_them(seed: int) -> None:
    sim = Simulation(seed)

    async def run() -> None:
        store = await small_segments(sim, retained_bytes=10_000_000)
        expected = await write(store, 60)
        feed, consumer = store.range_feed(SPAN, ZERO), Consumer()
        expected |= await write(store, 1)
        first = store.log.last_index
        expected |= await write(store, 400)
        await asyncio.sleep(1)
        assert store.log.first_retained_index <= first
        while consumer.seen != expected:
            await consumer.take(feed)
        expected |= await write(store, 200)
        await asyncio.sleep(1)
        assert store.log.first_retained_index > first
        while consumer.seen != expected:
            await consumer.take(feed)
        assert store.metrics.get("rangefeed_slow_consumers_total") == 0
        feed.close()
        await store.close()

    sim.run(run())


@pytest.mark.parametrize("seed", range(2))
def test_feed_that_keeps_too_much_log_starts_again_and_loses_nothing(seed: int) -> None:
    """What was deleted under it comes from the next catch-up scan, above its last checkpoint."""
    sim = Simulation(seed)

    async def run() -> None:
        store = await small_segments(sim, retained_bytes=4 * SEGMENT_BYTES)
        other = store.range_feed(SPAN, ZERO)  # so that the range resolves
        expected = await write(store, 60)
        feed, consumer = store.range_feed(SPAN, ZERO), Consumer()
        expected |= await write(store, 400)
        with pytest.raises(RangeFeedEnded) as ended:
            while True:
                await consumer.take(feed)
        assert ended.value.reason is FeedEnd.SLOW_CONSUMER
        assert consumer.resolved > ZERO, "the scan was not in vain"
        feed = store.range_feed(SPAN, consumer.resolved)
        while consumer.seen != expected:
            await consumer.take(feed)
        for watched in (feed, other):
            watched.close()
        await store.close()

    sim.run(run())
