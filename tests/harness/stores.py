"""Stores on a simulated machine, and how they come back after a crash.

sim = Simulation(seed=7)

async def before() -> None:
    store = await open_store(sim)
    await put(store, {b"a": b"1"})

sim.run(before())
sim.run(after_crash(sim))           # which begins with: store = await reopen(sim)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from weakref import WeakKeyDictionary

from tailrace.kvlayer.clock import Clock, MemoryBoundStore, PhysicalTime, Timestamp
from tailrace.kvlayer.engine import Engine, MemoryEngine
from tailrace.kvlayer.keys import TABLE_KIND
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation
from tailrace.kvlayer.txn.one_phase import Pending
from tests.harness.sim_disk import SimDisk
from tests.harness.sim_offload import SimOffload
from tests.harness.simulation import Simulation

_bounds: WeakKeyDictionary[Simulation, MemoryBoundStore] = WeakKeyDictionary()
DEFAULTS: dict[str, str] = {}
"""Settings of stores that are given none: a folder's tests may be run under several."""

_engines: WeakKeyDictionary[Simulation, MemoryEngine] = WeakKeyDictionary()


async def open_store(
    sim: Simulation,
    *,
    engine: Engine | None = None,
    settings: Settings | None = None,
    physical: PhysicalTime | None = None,
) -> Store:
    """A store on the simulation's disk. Without an engine, a new one in memory."""
    if engine is None:
        engine = MemoryEngine()
    if isinstance(engine, MemoryEngine):
        _engines[sim] = engine
    bounds = _bounds.setdefault(sim, MemoryBoundStore())
    return await Store.start(
        disk=sim.disk,
        engine=engine,
        clock=Clock(sim.wall, bounds, physical),
        offload=sim.offload,
        settings=settings or Settings(DEFAULTS),
        metrics=Metrics(),
        random=Random(f"{sim.seed}:store:{sim.now}"),
    )


def crash(sim: Simulation) -> None:
    """The machine loses its power now: `reopen` will find what disk and engine have kept.

    Make it the last thing of a run; what tasks of the dead process still do is lost.
    """
    sim.disk = sim.disk.crash()
    _engines[sim] = _engines[sim].crashed()
    _bounds[sim] = MemoryBoundStore(_bounds[sim].load())


async def reopen(
    sim: Simulation, *, settings: Settings | None = None, physical: PhysicalTime | None = None
) -> Store:
    """The store after a crash. Call it in a new `sim.run`."""
    return await open_store(sim, engine=_engines[sim], settings=settings, physical=physical)


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """A copy of a data folder: what disk and engine would have after a crash at that moment."""

    disk: SimDisk
    engine: MemoryEngine
    bound: Timestamp


def copy_folder(sim: Simulation) -> StoreCopy:
    """Copies the data folder, whether a store has it open or not."""
    return StoreCopy(sim.disk.crash(), _engines[sim].crashed(), _bounds[sim].load())


def put_back(sim: Simulation, copy: StoreCopy) -> None:
    """The copy is the data folder from here on: `reopen` opens it. It can be put back again."""
    sim.disk, _engines[sim] = copy.disk.crash(), copy.engine.crashed()
    _bounds[sim] = MemoryBoundStore(copy.bound)


def hold_log(store: Store) -> None:
    """From now on nothing becomes durable, until `release_log`."""
    _log_lane(store).hold()


def release_log(store: Store) -> None:
    _log_lane(store).release()


def _log_lane(store: Store) -> SimOffload:
    lane = store.log._flush_lane
    assert isinstance(lane, SimOffload)
    return lane


def unbuffered() -> Settings:
    """Transactions write intents from their first statement on."""
    return Settings({"kv.transaction.buffer_bytes": "0"})


@asynccontextmanager
async def running_store(
    sim: Simulation, *, settings: Settings | None = None
) -> AsyncIterator[Store]:
    """A store that is checked and closed at the end."""
    store = await open_store(sim, settings=settings)
    yield store
    store.check_invariants()
    await store.close()


def key(name: str, table_id: int = 7) -> bytes:
    """A key in the keyspace of a table."""
    return TABLE_KIND + table_id.to_bytes(4, "big") + name.encode()


async def put(store: Store, rows: Mapping[bytes, bytes | None]) -> Timestamp:
    """Commits values, and deletions for None, in one phase."""
    written = {name: body for name, body in rows.items() if body is not None}
    deleted = [name for name, body in rows.items() if body is None]

    def evaluate(evaluation: Evaluation) -> None:
        evaluation.put(list(written), list(written.values()))
        evaluation.delete(deleted)

    _, ts = await store.one_phase(evaluate)
    return ts


async def submit(store: Store, name: bytes, body: bytes) -> Pending[None]:
    """Applies one value without waiting for the log."""

    def evaluate(evaluation: Evaluation) -> None:
        evaluation.put([name], [body])

    return await store.submit_one_phase(evaluate)
