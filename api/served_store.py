"""The store that a process serves: where its bytes are, and how it begins."""

from __future__ import annotations

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
from ..kvlayer.clock import BoundStore, Clock, MemoryBoundStore, SystemWallClock
from ..kvlayer.data_folder import DataFolder
from ..kvlayer.disk import Disk, MemoryDisk
from ..kvlayer.engine import Engine, MemoryEngine
from ..kvlayer.engine.rocksdb import RocksEngine
from ..kvlayer.metrics import Metrics
from ..kvlayer.offload import Offload
from ..kvlayer.settings import Settings
from ..kvlayer.store import Store

IN_MEMORY = ":memory:"
MIRROR_FOLDER = "mirrors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where a store keeps its bytes."""

    disk: Disk
    engine: Engine
    bounds: BoundStore
    mirrors: Path
    folder: Path | None = None
    checkpoint: Callable[[Path], None] | None = None
    """Makes a folder the engine's state, where that lies on a disk: see `RocksEngine`."""


def open_storage(path: str | PathLike[str], closing: AsyncExitStack) -> Storage:
    if str(path) == IN_MEMORY:
        mirrors = Path(closing.enter_context(TemporaryDirectory(prefix="tailrace-")))
        return Storage(
            disk=MemoryDisk(), engine=MemoryEngine(), bounds=MemoryBoundStore(), mirrors=mirrors
        )
    folder = DataFolder.open(Path(path))
    closing.callback(folder.close)
    engine = RocksEngine.open(folder.engine_path)
    return Storage(
        disk=folder.disk,
        engine=engine,
        bounds=folder.clock_bounds,
        mirrors=folder.path / MIRROR_FOLDER,
        folder=folder.path,
        checkpoint=engine.checkpoint,
    )


async def start_store(storage: Storage, offload: Offload, closing: AsyncExitStack) -> Store:
    """The store in this process, from the log up."""
    store = await Store.start(
        disk=storage.disk,
        engine=storage.engine,
        clock=Clock(SystemWallClock(), storage.bounds),
        offload=offload.lane("log"),
        settings=Settings(),
        metrics=Metrics(),
        random=SystemRandom(),
    )
    closing.push_async_callback(store.close)
    await bootstrap(store)
    await load_settings(store)
    garbage = GarbageCollector(store, DescriptorStore(store))
    garbage.start()
    closing.push_async_callback(garbage.close)
    return store
