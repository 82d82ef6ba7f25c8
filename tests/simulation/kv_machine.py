"""The machine under a simulated store: small segments, an engine that stalls, and a power switch.

machine = Machine(sim)
store = await machine.start(settings)
machine.plan_crash(on_crash)      # at some sync to come, in some way: the seed decides
...
machine.bring_back()              # before the next `start`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from random import Random

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import ZERO, Clock, PhysicalTime, Timestamp
from tailrace.kvlayer.engine import EngineBatch, EngineStall, MemoryEngine
from tailrace.kvlayer.files.data_folder import ClockBoundFile
from tailrace.kvlayer.log import CommandLog
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.mvcc import body_of
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import prefix_end
from tailrace.kvlayer.store import Store
from tests.harness.sim_disk import SimDisk
from tests.harness.sim_offload import SimOffload
from tests.harness.simulation import Simulation

SEGMENT_BYTES = (2 * 1024, 16 * 1024, 64 * 1024)
"""Small, so that a run of some hundred commands crosses segments, and an entry may exceed one."""


class Death(Enum):
    """How a process can end."""

    CUT = auto()  # power is lost, and the log's unsynced bytes are there up to one of them
    PAGES = auto()  # power is lost, and each unsynced page is there, or torn, or not
    KILLED = auto()  # the process alone dies: the page cache has all it wrote


class StallingEngine(MemoryEngine):
    """Refuses writes while it is told to, as RocksDB does when compaction is behind."""

    stalled = False
    stall_count = 0

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        if self.stalled:
            self.stall_count += 1
            raise EngineStall("the simulated engine stalls")
        super().write(batch, applied_index=applied_index)


class Machine:
    """What a store runs on, and what a crash leaves of it."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.engine = StallingEngine()
        self.metrics = Metrics()
        self.segment_bytes = sim.random.choice(SEGMENT_BYTES)
        self.failure: BaseException | None = None
        """Why the log ended by itself, if it did while the process lived."""
        ClockBoundFile(sim.disk, "the simulated disk").save(ZERO)  # as a new data folder does
        self._left: tuple[SimDisk, StallingEngine] | None = None
        self._store: Store | None = None

    async def start(self, settings: Settings, physical: PhysicalTime | None = None) -> Store:
        log = await CommandLog.open(
            self.sim.disk,
            self.sim.offload,
            flushed_index=self.engine.applied_index,
            on_failure=self._fail,
            segment_bytes=self.segment_bytes,
        )
        self._store = await Store.open(
            log=log,
            engine=self.engine,
            clock=Clock(
                self.sim.wall, ClockBoundFile(self.sim.disk, "the simulated disk"), physical
            ),
            offload=self.sim.offload,
            settings=settings,
            metrics=self.metrics,
            random=Random(f"{self.sim.seed}:store:{self.sim.now}"),
        )
        return self._store

    def _fail(self, error: BaseException) -> None:
        if self._left is None:
            self.failure = error
        if self._store is not None:
            self._store.fail(error)

    def check_running(self) -> None:
        """Raises what ended the log, though no disk failed for good."""
        if self.failure is not None:
            raise self.failure

    def hang_log(self, *, hang: bool) -> None:
        """From now on nothing becomes durable, or everything does again."""
        assert self._store is not None
        lane = self._store.log._flush_lane
        assert isinstance(lane, SimOffload)
        if hang:
            lane.hold()
        else:
            lane.release()

    def prolong_flushes(self, *, prolong: bool) -> None:
        """From now on the engine's flushes do not end, or all of them do.

        One covers what had been applied when it began: RocksDB's can take seconds.
        """
        assert self._store is not None
        lane = self._store._flush_lane
        assert isinstance(lane, SimOffload)
        if prolong:
            lane.mute()
        else:
            lane.unmute()

    def plan_crash(self, syncs: int, on_crash: Callable[[], None]) -> None:
        """The process dies when it is about to sync for the `syncs`-th time from now."""
        left = [syncs]

        def about_to_sync() -> None:
            left[0] -= 1
            if left[0] == 0:
                self.crash()
                on_crash()

        self.sim.disk.before_sync = about_to_sync

    @property
    def dead(self) -> bool:
        return self._left is not None

    def crash(self) -> Death:
        """The process dies now, in a way that the seed chooses."""
        assert self._left is None, "a process dies once"
        random, disk = self.sim.random, self.sim.disk
        disk.before_sync = None
        death = random.choice(list(Death))
        match death:
            case Death.CUT:
                survivor = disk.crash(cut_at=random.randint(0, disk.unsynced_bytes))
            case Death.PAGES:
                survivor = disk.crash()
            case Death.KILLED:
                survivor = disk.killed()
        self._left = (survivor, self.engine.crashed())
        return death

    def bring_back(self) -> None:
        """The machine is on again."""
        assert self._left is not None, "nobody died"
        self.sim.disk, self.engine = self._left
        self._left = None
        self.metrics = Metrics()

    def versions(self, universe: Sequence[bytes]) -> dict[tuple[bytes, Timestamp], bytes | None]:
        """Every version of every table that the engine holds, read behind the store's back.

        A range tombstone is a deletion of each of `universe` that it covers.
        """
        start = keys.VERSION + keys.TABLE_KIND
        found = {
            (key, tombstone.timestamp): None
            for tombstone in self.engine.range_tombstones
            for key in universe
            if tombstone.span.contains(key)
        }
        return found | {
            keys.split_version_key(engine_key): body_of(value)
            for engine_key, value in self.engine.scan(start, prefix_end(start))
        }
