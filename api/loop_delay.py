"""The event loop's delay: how late it runs what is due. Everything on it is that late."""

from __future__ import annotations

import asyncio

from ..kvlayer.clock import WallClock
from ..kvlayer.metrics import Histogram

PROBE_SECONDS = 0.1


class LoopDelay:
    """Asks to be woken at set times, and counts by how much each was missed."""

    def __init__(self, wall: WallClock) -> None:
        self._wall = wall
        self._probe: asyncio.Task[None] | None = None
        self.histogram = Histogram()

    def start(self) -> None:
        self._probe = asyncio.create_task(self._run(), name="loop delay")

    def close(self) -> None:
        if self._probe is not None:
            self._probe.cancel()

    async def _run(self) -> None:
        while True:
            due = self._wall.monotonic_ns() + round(PROBE_SECONDS * 1e9)
            await asyncio.sleep(PROBE_SECONDS)
            self.histogram.observe(max(0, self._wall.monotonic_ns() - due))
