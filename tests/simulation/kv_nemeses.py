"""Misfortunes of a simulated store. Each comes now and then, and ends before a quiet point."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

from tailrace.kvlayer.clock import ZERO, Timestamp, duration, seconds_between
from tailrace.kvlayer.errors import (
    BatchTimestampBeforeGC,
    KVError,
    RangeRefused,
    StoreClosed,
    StoreFull,
)
from tailrace.kvlayer.store import Store
from tests.simulation.kv_clients import ALL_TABLES, KEYS, TABLE_SPANS
from tests.simulation.kv_machine import Machine
from tests.simulation.kv_model import KVModel

JUMPS_SECONDS = (-86_400.0, -20.0, -0.1, 0.1, 20.0, 86_400.0, 400 * 86_400.0)


class Nemeses:
    """The misfortunes of one life. `gathered` is what the seed has in store for it."""

    def __init__(
        self,
        machine: Machine,
        store: Store,
        model: KVModel,
        random: Random,
        counts: Counter[str],
    ) -> None:
        self.machine = machine
        self.model = model
        self.store = store
        self.random = random
        self.counts = counts
        every = [
            self.stall_engine,
            self.hang_log,
            self.prolong_flush,
            self.fill_disk,
            self.jump_clock,
            self.collect_garbage,
            self.cut_range,
            self.join_ranges,
        ]
        self.gathered: list[Callable[[], Awaitable[None]]] = [
            each for each in every if random.random() < 0.5
        ]

    async def strike(self, stop: asyncio.Event) -> None:
        """One misfortune after the other, until told to stop or the store is gone.

        Run it twice, and a range is split while the engine stalls or the log is full.
        """
        while self.gathered and not stop.is_set():
            await asyncio.sleep(self.random.choice((0.001, 0.02, 0.1)))
            nemesis = self.random.choice(self.gathered)
            try:
                await nemesis()
            except StoreFull:
                self.counts[f"{nemesis.__name__}: the log is full"] += 1
            except StoreClosed:
                return

    async def stall_engine(self) -> None:
        self.machine.engine.stalled = True
        await asyncio.sleep(self.random.choice((0.003, 0.05)))
        self.machine.engine.stalled = False
        self.counts["engine stalls"] += self.machine.engine.stall_count > 0

    async def hang_log(self) -> None:
        self.machine.hang_log(hang=True)
        await asyncio.sleep(self.random.choice((0.005, 0.1)))
        self.machine.hang_log(hang=False)
        self.counts["log hung"] += 1

    async def prolong_flush(self) -> None:
        self.machine.prolong_flushes(prolong=True)
        await asyncio.sleep(self.random.choice((0.02, 0.2)))
        self.machine.prolong_flushes(prolong=False)
        self.counts["flushes prolonged"] += 1

    async def fill_disk(self) -> None:
        disk = self.machine.sim.disk
        disk.space_left = self.random.choice((0, 0, self.machine.segment_bytes))
        await asyncio.sleep(self.random.choice((0.05, 0.6)))
        disk.space_left = None
        self.counts["clock stood still"] += self.store.clock.stands
        self.counts["disk filled"] += 1

    async def jump_clock(self) -> None:
        before = self.store.clock.now()
        self.machine.sim.wall.jump(self.random.choice(JUMPS_SECONDS))
        moved = seconds_between(before, self.store.clock.now())
        assert 0 <= moved < 1, f"the clock followed a jump by {moved} s"
        self.counts["clock jumps"] += 1

    async def cut_range(self) -> None:
        """Splits where nobody asked for it; at the borders of tables too."""
        place = self.random.choice((*KEYS, *[span.start for span in TABLE_SPANS]))
        self._note_trouble()
        await self.store.split(place, sticky_until=ZERO)
        self.counts["splits"] += 1

    async def join_ranges(self) -> None:
        """Merges a range with its right neighbour."""
        ranges = self.store.ranges()
        if len(ranges) > 1:
            self._note_trouble()
            try:
                await self.store.merge(self.random.choice(ranges[:-1]).id)
            except RangeRefused:  # the other misfortune has merged it while this one waited
                self.counts["merges refused"] += 1
                return
            self.counts["merges"] += 1

    def _note_trouble(self) -> None:
        if self.machine.engine.stalled:
            self.counts["split or merge in a stall"] += 1
        if self.machine.sim.disk.space_left is not None:
            self.counts["split or merge on a full disk"] += 1

    async def collect_garbage(self) -> None:
        span = self.random.choice((*TABLE_SPANS, ALL_TABLES))
        ago = duration(seconds=self.random.choice((0.0, 0.01, 0.1)))
        threshold = Timestamp(self.store.clock.now() - ago)
        try:
            removed = await self.store.collect_garbage(span, threshold)
        except (BatchTimestampBeforeGC, StoreClosed):
            raise
        except KVError as error:
            self.counts[f"collection refused: {type(error).__name__}"] += 1
            return
        self.model.note_thresholds(KEYS, self.store.gc_threshold_of)
        self.counts["collections"] += 1
        self.counts["versions collected"] += removed
