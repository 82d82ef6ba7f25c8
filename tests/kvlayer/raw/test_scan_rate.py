"""Catch-up scans of keyspaces, all together, are read at the rate that a setting allows."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.clock import ZERO
from tailrace.kvlayer.events import SteadyState, ValueBatch
from tailrace.kvlayer.rangefeed import SpanFeed
from tailrace.kvlayer.rangefeed.catch_up import SLICE_ROWS
from tailrace.kvlayer.raw import RawKeyspace, keyspace_span
from tailrace.kvlayer.settings import Settings
from tests.harness.simulation import Simulation
from tests.harness.stores import running_store

SLICES = 4
PAIRS = [(b"%06d" % n, b"v" * 100) for n in range(SLICES * SLICE_ROWS)]


async def caught_up(feed: SpanFeed) -> int:
    """The versions that the feed brings before it is steady."""
    count = 0
    while True:
        for event in await feed.next():
            if isinstance(event, ValueBatch):
                count += len(event.keys)
            elif isinstance(event, SteadyState):
                feed.close()
                return count


def scanned(rate: int, feeds: int) -> tuple[float, float]:
    """The seconds after which so many feeds have caught up, and how often a slice waited."""
    sim = Simulation(3)

    async def main() -> tuple[float, float]:
        settings = Settings({"kv.raw.scan_rate": str(rate)})
        async with running_store(sim, settings=settings) as store:
            await RawKeyspace(store, 7).put_many(PAIRS)
            began = sim.now
            opened = [store.span_feed([keyspace_span(7)], ZERO) for _ in range(feeds)]
            counts = await asyncio.gather(*map(caught_up, opened))
            assert counts == [len(PAIRS)] * feeds
            assert store.metrics.get("rangefeed_scanned_versions_total") == len(PAIRS) * feeds
            return sim.now - began, store.metrics.get("rangefeed_scan_waits_total")

    return sim.run(main())


def test_scans_share_the_rate() -> None:
    """Each slice but the first waits for those before it: some 60,000 bytes of 60,000 a second."""
    rate = SLICE_ROWS * 120
    alone, both = scanned(rate, 1)[0], scanned(rate, 2)[0]
    assert SLICES - 1 < alone < SLICES + 1
    assert 2 * SLICES - 1 < both < 2 * SLICES + 1


def test_without_a_rate_no_slice_waits() -> None:
    seconds, waits = scanned(0, 2)
    assert seconds < 0.1
    assert waits == 0
