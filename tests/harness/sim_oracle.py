"""An oracle of raw keyspaces in a simulation: a clock of its own, which can be away."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.clock import LOGICAL_BITS, ZERO, Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.errors import StoreUnreachable
from tests.harness.simulation import Simulation, SimWall


class SimOracle:
    """Answers from a clock that jumps of the asker's machine do not reach."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._clock = Clock(SimWall(sim), MemoryBoundStore())
        self.away = False
        self.back_seconds = 0
        """So far its answers lie back: it has lost its history."""
        self.greatest = ZERO
        """Of what it has answered."""
        self.good_at: float | None = None
        """When it last gave an answer above all before."""

    async def now(self) -> Timestamp:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnreachable("the oracle does not answer")
        drawn = Timestamp(self._clock.now() - (self.back_seconds * 1_000_000 << LOGICAL_BITS))
        if drawn > self.greatest:
            self.greatest = drawn
            self.good_at = self._sim.now
        return drawn
