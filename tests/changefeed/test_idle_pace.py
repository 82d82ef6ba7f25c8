"""Idle feeds checkpoint at the pace of their number, and are there at once when there is work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.pipeline.idle_pace import IdlePace
from tailrace.changefeed.pipeline.live import FeedState
from tests.changefeed.test_pipeline import Bench
from tests.harness.simulation import Simulation

OTHERS = 500
"""At two milliseconds each and a tenth of a core: a checkpoint every ten seconds."""

PERIOD = 10.0


def beside_idle_feeds(
    scenario: Callable[[Bench], Coroutine[Any, Any, None]], **options: str
) -> None:
    """Runs the scenario on a feed that has been idle for a while, beside many that are."""

    async def main() -> None:
        bench = Bench(sim)
        if options:
            given = parse_options({**options, "initial_scan": "no"})
            bench.options = replace(given, cursor=None)
        for _ in range(OTHERS):
            bench.pace.enter()
        async with bench.running():
            await resolve_for(bench, 2 * PERIOD)
            bench.target.flush_rows.clear()
            await scenario(bench)

    sim = Simulation(5)
    sim.run(main())


async def resolve_for(bench: Bench, seconds: float) -> None:
    """The store's ticks, and a moment for what they set off."""
    for _ in range(round(seconds / 0.05)):
        bench.store.resolve()
        await asyncio.sleep(0.05)


def test_idle_feed_checkpoints_at_the_pace() -> None:
    async def scenario(bench: Bench) -> None:
        await resolve_for(bench, 10 * PERIOD)
        assert 9 <= len(bench.target.flush_rows) <= 11

    beside_idle_feeds(scenario)


def test_idle_feed_lets_its_range_feed_sleep() -> None:
    async def scenario(bench: Bench) -> None:
        assert bench.store.feeds[0].spacing == PERIOD / 2 + 0.01  # it is one of them itself
        bench.store.write((1, "a"))
        await asyncio.sleep(0.01)
        assert bench.store.feeds[0].spacing == 0.0

    beside_idle_feeds(scenario)


def test_few_idle_feeds_keep_the_default_frequency() -> None:
    async def main() -> None:
        bench = Bench(sim)
        async with bench.running():
            await resolve_for(bench, 10.0)
            assert 45 <= len(bench.target.flush_rows) <= 51
            assert bench.store.feeds[0].spacing == 0.0

    sim = Simulation(6)
    sim.run(main())


def test_asked_frequency_is_kept() -> None:
    async def scenario(bench: Bench) -> None:
        await resolve_for(bench, 10.0)
        assert 9 <= len(bench.target.flush_rows) <= 11

    beside_idle_feeds(scenario, min_checkpoint_frequency="1s")


def test_row_of_idle_feed_is_flushed_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        bench.store.write((1, "a"))
        await asyncio.sleep(0.01)
        assert bench.target.rows() == {1: "a"}

    beside_idle_feeds(scenario)


def test_row_brings_the_next_checkpoint_forward() -> None:
    async def scenario(bench: Bench) -> None:
        written = bench.store.write((1, "a"))
        await resolve_for(bench, 0.5)
        assert bench.live.resolved >= written

    beside_idle_feeds(scenario)


def test_wait_for_idle_feed_is_served_at_once() -> None:
    async def scenario(bench: Bench) -> None:
        began = bench.sim.now
        await bench.caught_up()
        assert bench.sim.now - began < 0.1

    beside_idle_feeds(scenario)


def test_idle_feed_says_how_often_it_checkpoints() -> None:
    async def scenario(bench: Bench) -> None:
        bench.live.state = FeedState.STEADY
        now = bench.store.clock.now()
        told = bench.live.describe(now, now, "null:///")
        assert told == "running: 0.000 s behind, checkpoint every 10.0 s"
        bench.store.write((1, "a"))
        await asyncio.sleep(0.01)
        assert bench.live.describe(now, now, "null:///") == "running: 0.000 s behind"

    beside_idle_feeds(scenario)


def test_feed_that_ends_is_idle_no_more() -> None:
    async def main() -> None:
        bench = Bench(sim)
        async with bench.running():
            await resolve_for(bench, 2.0)
            assert bench.pace.seconds > 0
        assert bench.pace.seconds == IdlePace().seconds == 0

    sim = Simulation(7)
    sim.run(main())
