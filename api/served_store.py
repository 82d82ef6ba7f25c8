"""The store that a process serves: where its bytes are, and how it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory

from ..catalog.rights.bootstrap import bootstrap
from ..catalog.store.cluster_settings import load_settings
from ..catalog.store.descriptor_store import DescriptorStore
from ..catalog.store.garbage_collector import GarbageCollector
from ..kvlayer.access import StoreAccess
from ..kvlayer.clock import ZERO, BoundStore, Clock, MemoryBoundStore, SystemWallClock
from ..kvlayer.engine import Engine, MemoryEngine
from ..kvlayer.engine.rocksdb import RocksEngine
from ..kvlayer.files.data_folder import DataFolder
from ..kvlayer.files.disk import Disk, MemoryDisk
from ..kvlayer.metrics import Metrics
from ..kvlayer.process.offload import Offload
from ..kvlayer.raw import Leadership, OracleTime, OracleWatch, Placements, keyspace_of
from ..kvlayer.replication.leadership import Role
from ..kvlayer.settings import Settings
from ..kvlayer.store import Store
from .joined_store import OracleStore
from .refusal import NodeRefused

IN_MEMORY = ":memory:"
MIRROR_FOLDER = "mirrors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The places where a store keeps its bytes."""

    disk: Disk
    engine: Engine
    bounds: BoundStore
    mirrors: Path
    folder: Path | None = None
    checkpoint: Callable[[Path], None] | None = None
    """Makes a folder the engine's state, where that lies on a disk: see `RocksEngine`."""


def open_storage(
    path: str | PathLike[str], closing: AsyncExitStack, *, compaction: bool = True
) -> Storage:
    if str(path) == IN_MEMORY:
        mirrors = Path(closing.enter_context(TemporaryDirectory(prefix="tailrace-")))
        return Storage(
            disk=MemoryDisk(), engine=MemoryEngine(), bounds=MemoryBoundStore(), mirrors=mirrors
        )
    folder = DataFolder.open(Path(path))
    closing.callback(folder.close)
    engine = RocksEngine.open(folder.engine_path, compaction=compaction)
    return Storage(
        disk=folder.disk,
        engine=engine,
        bounds=folder.clock_bounds,
        mirrors=folder.path / MIRROR_FOLDER,
        folder=folder.path,
        checkpoint=engine.checkpoint,
    )


async def start_store(
    storage: Storage, offload: Offload, closing: AsyncExitStack, oracle: OracleStore | None = None
) -> Store:
    """The store in this process, from the log up. Its time is that of the `oracle`, if it has one.

    Raises NodeRefused where the oracle does not answer to a new store, which knows no time at all.
    """
    wall, metrics = SystemWallClock(), Metrics()
    time: OracleTime | None = None
    if oracle is not None:
        time = OracleTime(oracle.address, wall)
        await _ask(oracle, time, metrics, closing)
        if not time.last and storage.bounds.load() == ZERO:
            raise NodeRefused(
                f"the oracle at {oracle.address} does not answer, and a new store has its first "
                "time from it: start the oracle with --rpc-port, and then this store: "
                f"{time.trouble}"
            )
    store = await Store.start(
        disk=storage.disk,
        engine=storage.engine,
        clock=Clock(wall, storage.bounds, time),
        offload=offload.lane("log"),
        settings=Settings(),
        metrics=metrics,
        random=SystemRandom(),
    )
    closing.push_async_callback(store.close)
    await bootstrap(store)
    await load_settings(store)
    garbage = GarbageCollector(store, DescriptorStore(store))
    garbage.start()
    closing.push_async_callback(garbage.close)
    return store


async def _ask(
    oracle: OracleStore, time: OracleTime, metrics: Metrics, closing: AsyncExitStack
) -> None:
    """Asks the oracle until the store closes. Returns when it was asked once."""
    closing.push_async_callback(oracle.close)
    watch = OracleWatch(time, oracle.now, metrics)
    closing.push_async_callback(watch.close)
    await watch.start()


async def start_leadership(
    store: Store, oracle: OracleStore | None, closing: AsyncExitStack
) -> Leadership:
    """The store's part in the leadership of its keyspaces. Roles that a crash has left half changed
    are settled in the background. The placements are the oracle's; its own, where it has none."""

    async def placing() -> StoreAccess:
        return store if oracle is None else await oracle.reach()

    def unsettled() -> list[int]:
        between = (Role.DRAINING, Role.TAKING_OVER)
        return [keyspace_of(span) for span, state in store.replicas() if state.role in between]

    leadership = Leadership(store, Placements(placing))
    task = asyncio.create_task(leadership.settle_all(unsettled), name="leadership")

    async def stop() -> None:
        task.cancel()
        await asyncio.wait([task])

    closing.push_async_callback(stop)
    return leadership
