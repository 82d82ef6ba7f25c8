"""A whole stack under random load and random misfortune, from one seed.

Writers, lock changes, schema changes, a slow and failing sink, stopped nodes, polling and leasing,
and the death of the process at any moment; and quiet points, at which the mirror has to equal what
was committed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tailrace.changefeed.contract.options import SchemaFeedKind
from tailrace.kvlayer.rangefeed import catch_up
from tests.harness.simulation import Simulation
from tests.simulation.mirrors import DuckDBMirror, MemoryMirror
from tests.simulation.server import Server, World, start_server

KEYS = 24
LIVES_MAX = 4
CALM_ROUNDS_MAX = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run was made of: a run in which nothing happens proves nothing."""

    commits: int
    versions: int
    crashes: int
    fast_answers: int
    emitted: int
    kills: int


class RandomRun:
    """One seed's run. With `schema_changes` the mirror is in memory and takes any schema."""

    def __init__(
        self, seed: int, folder: Path, *, schema_changes: bool, apart: bool = False
    ) -> None:
        self.sim = Simulation(seed)
        self.random = self.sim.random
        self.folder = folder
        self.kills = 0
        """How many feed workers were killed."""
        mirror = MemoryMirror() if schema_changes else DuckDBMirror(folder / "life1", apart=apart)
        self.world = World(self.sim, mirror, schema_changes=schema_changes)

    def run(self) -> Outcome:
        lives = self.random.randint(2, LIVES_MAX)
        # Small slices, so that what is replayed after a restart comes in many flushes.
        with patch.object(catch_up, "SLICE_ROWS", self.random.choice([2, 5, 500])):
            for life in range(1, lives + 1):
                self.sim.run(self._live(crashes=life < lives))
        world = self.world
        return Outcome(
            commits=len(world.rows.commits),
            versions=len(world.versions.versions),
            crashes=world.crash_count,
            fast_answers=world.watch.fast_count,
            emitted=world.watch.emitted_count,
            kills=self.kills,
        )

    async def _live(self, *, crashes: bool) -> None:
        async with start_server(self.world) as server:
            if self.world.life == 1:
                await self._first_rows(server)
            self._roll(server)
            server.start_feed()
            for _ in range(self.random.randint(0 if crashes else 1, CALM_ROUNDS_MAX)):
                await self._round(server, self.random.random() * 3)
                await server.settle()
            dead = await self._round_until_crash(server) if crashes else []
            await server.stop_feed()
            for task in dead:
                task.cancel()
            # What the tasks of a dead process raise, nobody hears.
            await asyncio.gather(*dead, return_exceptions=True)

    async def _first_rows(self, server: Server) -> None:
        """Some rows for the initial scan."""
        for _ in range(self.random.randint(0, 4)):
            await self._write(server)
        self.world.scan_at = server.store.clock.now()

    def _roll(self, server: Server) -> None:
        """The circumstances of one life."""
        if self.random.random() < 0.2:
            server.schema_feed = SchemaFeedKind.POLLING
        elif self.random.random() < 0.3:
            server.schema_feed = SchemaFeedKind.RANGEFEED
        server.slowest_sink = self.random.choice([0.0, 0.0, 0.005, 0.2])
        server.sink_failures = self.random.choice([0.0, 0.0, 0.03])
        if self.random.random() < 0.3:
            self.sim.wall.jump(self.random.uniform(-20, 20))

    async def _round(self, server: Server, seconds: float) -> None:
        """Load and misfortune for some time, and everything under way comes to its end."""
        stop = asyncio.Event()
        tasks = self._start_all(server, stop)
        await asyncio.sleep(seconds)
        stop.set()
        for task in tasks:
            await task

    async def _round_until_crash(self, server: Server) -> list[asyncio.Task[None]]:
        """Load and misfortune until the process dies; returns what it was doing."""
        tasks = self._start_all(server, asyncio.Event())
        await asyncio.sleep(self.random.random() * self.random.choice([0.05, 0.5, 4]))
        for task in tasks:
            if task.done():
                await task
        self.world.crash(self.folder / f"life{self.world.life + 1}")
        return tasks

    def _start_all(self, server: Server, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        works = [self._writer(server, stop) for _ in range(3)]
        works += [self._ddl(server, stop), self._stopper(server, stop)]
        mirror = self.world.mirror
        if isinstance(mirror, DuckDBMirror) and mirror.apart:
            works.append(self._killer(mirror, stop))
        return [asyncio.create_task(work) for work in works]

    async def _writer(self, server: Server, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self._write(server)
            await asyncio.sleep(self.random.choice([0.0, 0.001, 0.02, 0.1]))

    async def _write(self, server: Server) -> None:
        random, world = self.random, self.world
        keys = random.sample(range(KEYS), random.choice([1, 1, 2, 5]))
        if random.random() < 0.02:
            keys = list(range(KEYS, KEYS + 100))  # enough for columns, and for Arrow
        rows: dict[int, str | None] = {}
        for key in keys:
            world.written += 1
            rows[key] = None if random.random() < 0.3 else f"row {world.written}"
        seconds = random.choice([0.0, 0.01, 0.3]) if random.random() < 0.3 else None
        if random.random() < 0.005:
            seconds = 7.0  # longer than a session lives
        await server.write(rows, seconds=seconds)

    async def _ddl(self, server: Server, stop: asyncio.Event) -> None:
        """Locks, unlocks and, where the mirror can follow, adds columns in between."""
        while not stop.is_set():
            await asyncio.sleep(self.random.choice([0.02, 0.2, 1.0]))
            if stop.is_set():
                return
            last = self.world.versions.last
            if last.locked or not self.world.schema_changes or self.random.random() < 0.5:
                await server.publish(locked=not last.locked)
            else:
                await server.add_column()

    async def _stopper(self, server: Server, stop: asyncio.Event) -> None:
        """Stops a node now and then, for less or for more than its session lives."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 2)
            if self.random.random() < 0.4:
                node = self.random.choice([server.feed_node, server.sql_node])
                node.stop()
                await asyncio.sleep(self.random.choice([0.1, 1.0, 8.0]))
                node.go_on()

    async def _killer(self, mirror: DuckDBMirror, stop: asyncio.Event) -> None:
        """Kills the feed worker now and then: while nothing happens, or as it is asked for
        something."""
        while not stop.is_set():
            await asyncio.sleep(self.random.random() * 2)
            name = self.random.choice(["", "stand", "open", "emit", "flush", "read"])
            if not name:
                mirror.worker.kill()
                self.kills += 1
                continue

            def kill(asked: str, name: str = name) -> None:
                if asked == name:
                    mirror.worker.on_frame = lambda asked: None
                    mirror.worker.kill()
                    self.kills += 1

            mirror.worker.on_frame = kill


def run_seed(seed: int, folder: Path) -> Outcome:
    """Every third seed changes schemas, the others mirror into DuckDB: every other one by a feed
    worker."""
    return RandomRun(seed, folder, schema_changes=seed % 3 == 2, apart=seed // 3 % 2 == 0).run()
