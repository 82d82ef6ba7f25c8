"""A store alone under random load and misfortune: cheap, so that thousands of seeds can be run.

    outcome = run_store(seed)

A run is some lives of one store. In each, clients write and read, followers follow feeds, and
misfortunes strike; a life ends by a crash at some byte of the log, or at a quiet point, where
everybody has come to the end and all that was said is judged.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from unittest.mock import patch

from tailrace.kvlayer import clock, locked_keys
from tailrace.kvlayer.clock import duration
from tailrace.kvlayer.rangefeed import catch_up
from tailrace.kvlayer.ranges import collection
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import limits, resolution
from tests.harness.simulation import Simulation
from tests.simulation.kv_clients import KEYS, TABLE_SPANS, Clients
from tests.simulation.kv_followers import Follower, RangeFollower, SpanFollower
from tests.simulation.kv_lockers import Lockers
from tests.simulation.kv_machine import Machine
from tests.simulation.kv_model import KVModel
from tests.simulation.kv_nemeses import Nemeses

LIVES_MAX = 3
CLIENTS_MAX = 6
LOCKERS_MAX = 4
SETTLE_SECONDS = 60.0
"""Far above every interval of the store: what has not come by then never comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run was made of: a run in which nothing happens proves nothing."""

    commits: int
    reads: int
    crashes: int
    counts: Counter[str]


class StoreRun:
    """One seed's run."""

    def __init__(self, seed: int) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        # Of every second seed. What chance they have is their own.
        self.locks_random = None if seed % 2 else Random(f"{seed}:lockers")
        self.machine = Machine(self.sim)
        self.model = KVModel()
        self.counts: Counter[str] = Counter()
        self.followers: list[Follower] = []
        self.crash_count = 0

    def run(self) -> Outcome:
        lives = self.random.randint(1, LIVES_MAX)
        rows = self.random.choice((2, 5, 500))
        ahead = self.random.choice((clock.BOUND_AHEAD_US, 100_000))
        # A bound that is due often, so that the disk is full when it is.
        # Small slices and commands, so that what is sliced and divided is, and crashes between.
        with (
            patch.object(catch_up, "SLICE_ROWS", rows),
            patch.object(collection, "SLICE_ENTRIES", rows),
            patch.object(limits, "COMMAND_ROWS_MAX", rows),
            patch.object(resolution, "COMMAND_ROWS_MAX", rows),
            patch.object(locked_keys, "PORTION_KEYS", rows),
            patch.object(clock, "BOUND_AHEAD_US", ahead),
            patch.object(clock, "_RESERVE", duration(seconds=ahead / 10e6)),
        ):
            for life in range(lives):
                self.sim.run(self._live(first=life == 0, last=life == lives - 1))
        for follower in self.followers:
            follower.finish()
        return Outcome(
            commits=self.model.commit_count,
            reads=self.model.read_count,
            crashes=self.crash_count,
            counts=self.counts,
        )

    async def _live(self, *, first: bool, last: bool) -> None:
        store = await self.machine.start(self._settings())
        if not first:
            self._compare(store, recovered=True)
        self._add_followers(store)
        following = [asyncio.create_task(each.follow(store)) for each in self.followers]
        if last:
            await self._round(store, self.random.random() * 2)
            await self._settle(store, following)
            await self._close(store, following)
        else:
            await self._round_until_crash(store, following)
            self.machine.bring_back()

    def _settings(self) -> Settings:
        choice = self.random.choice
        return Settings(
            {
                "kv.engine.flush_bytes": choice(("500", "5000", "100000000")),
                "kv.rangefeed.buffer_bytes": choice(("300", "2000", "67108864")),
                "kv.rangefeed.push_txns.age": "100ms",
                "kv.rangefeed.push_txns.interval": "50ms",
                "kv.closed_timestamp.target_duration": choice(("100ms", "3s")),
                "kv.transaction.heartbeat_interval": "200ms",
                "kv.transaction.heartbeat_timeout": "1s",
                "kv.lock_timeout": "1s",
                # Intents alone; spilled in mid-transaction; buffered to the commit.
                "kv.transaction.buffer_bytes": choice(("0", "600", "1500", "1048576")),
            }
        )

    def _add_followers(self, store: Store) -> None:
        kind = self.random.choice((SpanFollower, RangeFollower))
        spans = self.random.choice((TABLE_SPANS, TABLE_SPANS[:1], TABLE_SPANS[1:]))
        start = self.random.choice((store.gc_threshold, store.clock.last))
        self.followers.append(
            kind(
                self.model,
                self.random,
                self.counts,
                [(span, start) for span in spans],
                protected=self.random.random() < 0.5,
            )
        )

    # Rounds

    def _start_all(self, store: Store, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        clients = Clients(store, self.model, self.random, self.counts)
        nemeses = Nemeses(self.machine, store, self.model, self.random, self.counts)
        works = [clients.work(stop) for _ in range(self.random.randint(2, CLIENTS_MAX))]
        if self.locks_random is not None:
            lockers = Lockers(store, self.model, self.locks_random, self.counts)
            works += [lockers.work(stop) for _ in range(self.locks_random.randint(1, LOCKERS_MAX))]
        strikes = [nemeses.strike(stop) for _ in range(2)]
        return [asyncio.create_task(work) for work in (*works, *strikes)]

    async def _round(self, store: Store, seconds: float) -> None:
        """Load and misfortune for some time, and everything under way comes to its end."""
        stop = asyncio.Event()
        tasks = self._start_all(store, stop)
        await asyncio.sleep(seconds)
        stop.set()
        for task in tasks:
            await task

    async def _round_until_crash(self, store: Store, following: list[asyncio.Task[None]]) -> None:
        dead = asyncio.Event()

        def die() -> None:
            self.model.frozen = True
            dead.set()

        tasks = self._start_all(store, asyncio.Event())
        self.machine.plan_crash(self.random.randint(1, 400), die)
        seconds = self.random.choice((0.05, 0.5, 3.0))
        try:
            async with asyncio.timeout(seconds):
                await dead.wait()
        except TimeoutError:
            if not self.machine.dead:  # it may have died in the moment in which the time was over
                self.machine.crash()
                die()
        self.crash_count += 1
        self.machine.check_running()
        ended = [task for task in (*tasks, *following) if task.done()]
        for task in ended:
            await task  # it failed before the process died
        for task in (*tasks, *following):
            task.cancel()
        # What the tasks of a dead process raise, nobody hears.
        await asyncio.gather(*tasks, *following, return_exceptions=True)

    # Quiet points

    async def _settle(self, store: Store, following: list[asyncio.Task[None]]) -> None:
        """Nobody writes: every follower comes to the present, and all that was said is judged."""
        self.machine.check_running()
        end = store.clock.now()
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                while any(each.resolved < end for each in self.followers):
                    for task in following:
                        if task.done():
                            await task
                    self.machine.check_running()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            for each in self.followers:
                each.finish()
            late = [each.watch.entries for each in self.followers if each.resolved < end]
            raise AssertionError(f"feeds stand still below {end}: {late}") from None
        self._compare(store, recovered=False)

    def _compare(self, store: Store, *, recovered: bool) -> None:
        """The store holds what the model says, and has forgotten no threshold."""
        found = self.machine.versions(KEYS)
        if recovered:
            self.model.adopt(found, store.gc_threshold_of)
        else:
            self.model.compare(found, store.gc_threshold_of)
        self.model.judge()
        store.check_invariants()

    async def _close(self, store: Store, following: list[asyncio.Task[None]]) -> None:
        for name, value in self.machine.metrics.items():
            if name.endswith("_total"):
                self.counts[name] += round(value)
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        await store.close()


def run_store(seed: int) -> Outcome:
    """Runs a seed. Raises AssertionError, or whatever else went wrong."""
    return StoreRun(seed).run()
