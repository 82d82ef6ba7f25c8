"""The watchdog of a storm: a feed that has work comes further, or is said to stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tailrace.kvlayer.clock import Timestamp
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.simulation.schema_feeds import StormFeed

STILL_SECONDS_MAX = 90.0
"""A node is stopped for 4 s at most, and a schema change waits for leases for 6 at a time: a feed
whose durable progress has not moved for so much longer will never move."""

LOOK_SECONDS = 1.0


class Watchdog:
    """Looks at the durable progress of feeds, which moves also where nobody writes."""

    def __init__(self, sim: Simulation, feeds: Sequence[StormFeed]) -> None:
        self._sim = sim
        self._feeds = feeds
        self._known: dict[int, tuple[object, float]] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        """Raises AssertionError where a feed stands still."""
        while not stop.is_set():
            self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def settle(self, node: SqlNode, at: Timestamp) -> None:
        """Waits until each feed has come as far as `at`, or stands still."""
        arrivals = [asyncio.create_task(feed.caught_up(node, at)) for feed in self._feeds]
        try:
            while not all(arrival.done() for arrival in arrivals):
                for feed in self._feeds:
                    feed.check_alive()
                self._look()
                await asyncio.wait(arrivals, timeout=LOOK_SECONDS)
            for arrival in arrivals:
                arrival.result()
        finally:
            for arrival in arrivals:
                arrival.cancel()

    def _look(self) -> None:
        for number, feed in enumerate(self._feeds):
            state = (feed.task, feed.live.progress)
            known, since = self._known.get(number, (None, 0.0))
            if feed.task is None or feed.idle or known != state:
                self._known[number] = (state, self._sim.now)
            else:
                assert self._sim.now - since < STILL_SECONDS_MAX, (
                    f"{feed} stands still since {since}: {feed.live.state}, "
                    f"{feed.live.last_error}, resolved {feed.live.resolved}"
                )
