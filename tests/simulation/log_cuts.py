"""A crash at every byte of the log, one history recorded once.

Whenever bytes of the log are about to become durable, everything that a crash at that moment would
leave is kept: the disk with the unsynced bytes, the engine's last flush, the clock's bound, the
mirror file, and what had been acknowledged. Each of those moments can then be recovered with the
log cut at any of its unsynced bytes.

What a cut leaves must be a prefix of the history: with more bytes there, never fewer transactions.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.engine import MemoryEngine
from tailrace.kvlayer.log import CommandLog
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import limits, resolution
from tests.harness.nodes import CatalogFixture, Node
from tests.harness.sim_disk import SimDisk
from tests.harness.simulation import Simulation
from tests.simulation.mirrors import DuckDBMirror
from tests.simulation.row_model import Writes, read_history
from tests.simulation.server import Server, World

SEGMENT_BYTES = 8 * 1024
"""So small that the history crosses several segments, and the first are deleted on the way."""

SETTINGS = {"kv.engine.flush_bytes": "6000"}
TRANSACTIONS = 60
KEYS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashPoint:
    """All that a crash in one moment would leave, but for the choice of where to cut."""

    disk: SimDisk
    engine: MemoryEngine
    bound: Timestamp
    seconds: float
    clock_last: Timestamp
    acknowledged: frozenset[Timestamp]
    mirror: DuckDBMirror
    explicit: bool
    """Whether an explicit transaction was under way."""

    @property
    def cuts(self) -> int:
        """The log can be cut at 0 to this many of its unsynced bytes."""
        return self.disk.unsynced_bytes

    def edges(self) -> Iterator[int]:
        """Where one more byte may matter most."""
        yield from sorted({0, min(1, self.cuts), max(0, self.cuts - 1), self.cuts})


class Recording:
    """One history, with every moment at which it could have been cut short."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.sim = Simulation(seed)
        self.points: list[CrashPoint] = []
        self._folder = folder
        self._bounds = MemoryBoundStore()
        self._explicit = 0
        self._numbers = itertools.count()
        self.world = World(self.sim, DuckDBMirror(folder / "recorded"), schema_changes=False)
        # Small commands, so that a commit's record and its intents' ends are entries of their own.
        with (
            patch.object(limits, "COMMAND_ROWS_MAX", 2),
            patch.object(resolution, "COMMAND_ROWS_MAX", 2),
        ):
            self.sim.run(self._record())
        self.commits: Mapping[Timestamp, Writes] = self.world.rows.commits

    async def _record(self) -> None:
        world, sim = self.world, self.sim
        store = await _open(sim, MemoryEngine(), self._bounds)
        await bootstrap(store)
        catalog = CatalogFixture(store)
        world.versions.note(await catalog.create(locked=True))
        async with _serving(world, store, catalog) as server:
            await server.write(dict.fromkeys(range(4), "scanned"))
            world.scan_at = store.clock.now()
            server.start_feed()
            await server.settle()
            sim.disk.before_sync = lambda: self._note_point(store)
            await asyncio.gather(*[self._write(server, n) for n in range(3)])
            sim.disk.before_sync = None
            await server.settle()
            await server.stop_feed()

    async def _write(self, server: Server, number: int) -> None:
        random = Random(f"{self.sim.seed}:{number}")
        for count in range(TRANSACTIONS // 3):
            keys = random.sample(range(KEYS), random.choice([1, 1, 5]))
            rows = {k: None if random.random() < 0.35 else f"{number}.{count}.{k}" for k in keys}
            explicit = random.random() < 0.3
            self._explicit += explicit
            await server.write(rows, seconds=random.choice([0.0, 0.003]) if explicit else None)
            self._explicit -= explicit
            await asyncio.sleep(random.choice([0.0, 0.001, 0.004]))

    def _note_point(self, store: Store) -> None:
        disk = self.sim.disk.killed()
        if not disk.unsynced_bytes:
            return
        if self.points and self.points[-1].disk.unsynced_writes <= disk.unsynced_writes:
            self.points.pop()  # another file was synced meanwhile: nothing became durable
        assert isinstance(store.engine, MemoryEngine)
        self.points.append(
            CrashPoint(
                disk=disk,
                engine=store.engine.crashed(),
                bound=self._bounds.load(),
                seconds=self.sim.now,
                clock_last=store.clock.last,
                acknowledged=frozenset(self.world.rows.commits),
                mirror=self._copy_mirror(),
                explicit=self._explicit > 0,
            )
        )

    def _copy_mirror(self) -> DuckDBMirror:
        assert isinstance(self.world.mirror, DuckDBMirror)
        return self.world.mirror.crash(self._folder / f"point{next(self._numbers)}")


class Recovery:
    """One crash point, cut at one byte, and brought back."""

    def __init__(self, recording: Recording, point: CrashPoint, cut: int) -> None:
        self._recording = recording
        self._point = point
        self.sim = Simulation(cut)
        self.sim.disk = point.disk.crash(cut_at=cut)
        if cut % 2:
            self.sim.wall.jump(point.seconds)  # else the wall clock went back, to the beginning
        self._bounds = MemoryBoundStore(point.bound)

    def check(self) -> frozenset[Timestamp]:
        """The store alone. Returns the transactions that are there."""
        return self.sim.run(self._check())

    def check_with_mirror(self, folder: Path) -> None:
        """The store, and a feed into the mirror that the crash left."""
        self.sim.run(self._check_with_mirror(folder))

    async def _open(self) -> Store:
        return await _open(self.sim, self._point.engine.crashed(), self._bounds)

    async def _check(self) -> frozenset[Timestamp]:
        store = await self._open()
        found = await self._read(store)
        before = store.log.last_index
        assert store.engine.applied_index <= before
        key = next(iter(self._recording.world.rows.versions()))[0]
        _, at = await store.one_phase(lambda evaluation: evaluation.delete([key]))
        assert at > self._point.clock_last
        assert store.log.durable_index > before
        store.check_invariants()
        await store.close()
        return frozenset(found)

    async def _read(self, store: Store) -> dict[Timestamp, Writes]:
        """What came back: whole transactions, and every acknowledged one."""
        found = await read_history(store, self._recording.world.versions.last.primary_span)
        for at, writes in found.items():
            assert writes == self._recording.commits.get(at), (at, writes)
        lost = self._point.acknowledged - found.keys()
        assert not lost, f"acknowledged and lost: {lost}"
        return found

    async def _check_with_mirror(self, folder: Path) -> None:
        recorded = self._recording.world
        world = World(self.sim, self._point.mirror.crash(folder), schema_changes=False)
        store = await self._open()
        world.versions.note(recorded.versions.last)
        world.rows.commits = dict(await self._read(store))
        world.scan_at, world.epoch = recorded.scan_at, recorded.epoch
        left = world.mirror.look(world.table_id)
        assert left.scan_complete
        world.check_mirror(left, quiet=False)
        world.watched_from = left.resolved
        async with _serving(world, store, CatalogFixture(store)) as server:
            server.start_feed()
            await server.settle()
            await server.write({0: "after", 1: None, 2: "after"})
            await server.settle()
            assert server.live.scanned_rows == 0, "a feed with progress scans nothing"
            await server.stop_feed()


@asynccontextmanager
async def _serving(world: World, store: Store, catalog: CatalogFixture) -> AsyncIterator[Server]:
    """A server whose one node does everything."""
    world.mirror.begin(world.sim)
    node = Node(catalog, 1)
    await node.start()
    yield Server(world, catalog, [node, node])
    await node.close()
    await store.close()


async def _open(sim: Simulation, engine: MemoryEngine, bounds: MemoryBoundStore) -> Store:
    def fail(error: BaseException) -> None:
        raise error

    log = await CommandLog.open(
        sim.disk,
        sim.offload,
        flushed_index=engine.applied_index,
        on_failure=fail,
        segment_bytes=SEGMENT_BYTES,
    )
    return await Store.open(
        log=log,
        engine=engine,
        clock=Clock(sim.wall, bounds),
        offload=sim.offload,
        settings=Settings(SETTINGS),
        metrics=Metrics(),
        random=Random(f"{sim.seed}:store"),
    )


def longest_explicit(points: Iterable[CrashPoint]) -> CrashPoint:
    """The moment with most to cut while an explicit transaction was under way."""
    return max((point for point in points if point.explicit), key=lambda point: point.cuts)
