"""A node: everything that a store needs to serve statements and feeds, put together."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory

import pyarrow as pa

from ..catalog.bootstrap import bootstrap
from ..catalog.catalog import Catalog
from ..catalog.cluster_settings import load_settings
from ..catalog.descriptor_store import DescriptorStore
from ..catalog.garbage_collector import GarbageCollector
from ..catalog.jobs import JobRegistry, Resumer
from ..catalog.leases import LeaseManager, LivenessSession
from ..catalog.names import TableName
from ..catalog.system_tables import DEFAULT_DATABASE, DESCRIPTOR, NAMESPACE
from ..catalog.users import ROOT
from ..changefeed import JOB_KIND, Changefeeds, ChangefeedServices, LiveFeed
from ..changefeed.sinks import default_kinds
from ..changefeed.sinks.duckdb import DuckDBFiles, DuckDBKind, MirrorReader
from ..changefeed.sinks.locations import SCHEME, MirrorLocations
from ..kvlayer.clock import BoundStore, Clock, MemoryBoundStore, SystemWallClock, Timestamp
from ..kvlayer.data_folder import DataFolder, DataFolderError
from ..kvlayer.disk import Disk, MemoryDisk
from ..kvlayer.engine import Engine, MemoryEngine
from ..kvlayer.engine.rocksdb import RocksEngine
from ..kvlayer.log import LogCorrupt
from ..kvlayer.metrics import Metrics
from ..kvlayer.offload import Offload, ThreadOffload
from ..kvlayer.protected_timestamp import ProtectedTimestamps
from ..kvlayer.settings import Settings
from ..kvlayer.store import Store
from ..sql import Analytics, LoadMode, LoadReport, Services, Session, load
from ..sql.executor.load import ROWS_PER_TRANSACTION, Batches
from .feeds import ChangefeedResumer, FeedServices
from .loop_delay import LoopDelay

IN_MEMORY = ":memory:"
MIRROR_FOLDER = "mirrors"
MIRROR_SCHEME = f"{SCHEME}:"
PROTECTED_WITH_ALL = (DESCRIPTOR.primary_span, NAMESPACE.primary_span)
"""What a feed needs to read its tables as of any time: kept as long as anything is."""

NODE_ID = 1
"""One process serves a store, and is its node 1."""


class NodeRefused(Exception):
    """The node cannot start as it was asked to; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """How a node runs. `mirror_roots` are the folders where mirrors may lie.

    Without any, mirrors lie in the folder `mirrors` of the data folder.
    """

    mirror_roots: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Storage:
    """Where a store keeps its bytes."""

    disk: Disk
    engine: Engine
    bounds: BoundStore
    mirrors: Path


class Node:
    """A store with its catalog, jobs, feeds and sessions. Made by `open`, ended by `close`."""

    def __init__(
        self,
        services: Services,
        jobs: JobRegistry,
        feeds: Changefeeds,
        files: DuckDBFiles,
        *,
        served: Store | None,
    ) -> None:
        self.store = services.store
        self.served = served
        """The store, where it is this process that serves it."""
        self.services = services
        self.jobs = jobs
        self.feeds = feeds
        self.mirrors = MirrorReader(files)
        self.loop_delay = LoopDelay(services.store.clock.wall)
        self._files = files
        self._closing = AsyncExitStack()

    @classmethod
    async def open(cls, path: str | PathLike[str], options: NodeOptions | None = None) -> Node:
        """Opens the store in the folder `path`, or a new one in memory for ":memory:".

        Raises NodeRefused when another process serves the folder, another format version wrote it,
        its files are damaged, or a mirror root is not a folder.
        """
        pa.array([0])  # imports pandas, where there is one: a third of a second, and not later
        async with AsyncExitStack() as closing:
            try:
                storage = _open_storage(path, closing)
                roots = _mirror_roots(storage, options or NodeOptions())
                offload = ThreadOffload()
                closing.callback(offload.close)
                node = await _assemble(storage, roots, offload, closing)
                node.loop_delay.start()
                closing.callback(node.loop_delay.close)
            except (DataFolderError, LogCorrupt) as error:
                raise NodeRefused(str(error)) from error
            node._closing = closing.pop_all()
        return node

    @property
    def notice(self) -> str | None:
        """What recovery had to do, in a sentence, where it is worth telling."""
        return None if self.served is None else self.served.log.notice

    def session(self, *, database: str | None = None, user: str = ROOT) -> Session:
        """A new session, in `defaultdb` unless told otherwise. Close it."""
        return Session(self.services, database=database or DEFAULT_DATABASE, user=user)

    async def load(
        self,
        table: str,
        data: Batches,
        *,
        mode: LoadMode = LoadMode.ERROR,
        database: str = DEFAULT_DATABASE,
        rows_per_transaction: int = ROWS_PER_TRANSACTION,
    ) -> LoadReport:
        """Bulk-loads `data` into the table of that name, which may be qualified by dots."""
        name = TableName.resolve(table.split("."), current_database=database)
        return await load(
            self.services, name, data, mode=mode, rows_per_transaction=rows_per_transaction
        )

    def feed(self, job_id: int) -> LiveFeed:
        """A changefeed as this node knows it; one that has not begun yet is waited for."""
        return self.feeds.watch(job_id)

    async def wait_for_mirror(self, location: str, until: Timestamp | None) -> Timestamp:
        """Waits until all feeds into a mirror hold everything at or below `until` (now if None)."""
        path = self._files.locations.read_target(location)
        at = await self.store.now() if until is None else until
        for job in await self.jobs.list():
            if job.kind == JOB_KIND and not job.state.final:
                sink = self.feeds.status(job.id, job.payload, None).sink_uri
                if sink.startswith(MIRROR_SCHEME) and self._path_of(sink) == path:
                    await self.feed(job.id).wait_until(at)
        return at

    def _path_of(self, sink: str) -> Path:
        return self._files.locations.target(sink).path

    async def close(self) -> None:
        """Ends feeds, leases and the store. Closing twice is closing once."""
        await self._closing.aclose()


async def _assemble(
    storage: _Storage, roots: tuple[Path, ...], offload: Offload, closing: AsyncExitStack
) -> Node:
    """Puts a node together from the log up. What it starts, `closing` ends in reverse."""
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
    descriptors = DescriptorStore(store)
    session = LivenessSession(store, NODE_ID)
    await session.start()
    closing.push_async_callback(session.close)
    leases = LeaseManager(store, descriptors, session)
    await leases.start()
    closing.push_async_callback(leases.close)
    garbage = GarbageCollector(store, descriptors)
    garbage.start()
    closing.push_async_callback(garbage.close)
    files = DuckDBFiles(MirrorLocations(roots), offload)
    kinds = default_kinds()
    kinds.register(SCHEME, DuckDBKind(files))
    resumers: dict[str, Resumer] = {}
    registry = JobRegistry(store, session, resumers)
    feeds = Changefeeds(
        ChangefeedServices(
            store=store,
            descriptors=descriptors,
            leases=leases,
            kinds=kinds,
            offload=offload,
            protections=ProtectedTimestamps(store, always=PROTECTED_WITH_ALL),
        ),
        registry,
    )
    resumers[JOB_KIND] = ChangefeedResumer(feeds)
    await registry.start()
    closing.callback(feeds.close)
    closing.push_async_callback(registry.close)
    analytics = Analytics(offload)
    closing.callback(analytics.close)
    adapter = FeedServices(feeds, registry)
    services = Services(
        store=store,
        catalog=Catalog(descriptors),
        leases=leases,
        analytics=analytics,
        jobs=adapter,
        changefeeds=adapter,
    )
    return Node(services, registry, feeds, files, served=store)


def _open_storage(path: str | PathLike[str], closing: AsyncExitStack) -> _Storage:
    if str(path) == IN_MEMORY:
        mirrors = Path(closing.enter_context(TemporaryDirectory(prefix="tailrace-")))
        return _Storage(
            disk=MemoryDisk(), engine=MemoryEngine(), bounds=MemoryBoundStore(), mirrors=mirrors
        )
    folder = DataFolder.open(Path(path))
    closing.callback(folder.close)
    return _Storage(
        disk=folder.disk,
        engine=RocksEngine.open(folder.engine_path),
        bounds=folder.clock_bounds,
        mirrors=folder.path / MIRROR_FOLDER,
    )


def _mirror_roots(storage: _Storage, options: NodeOptions) -> tuple[Path, ...]:
    for root in options.mirror_roots:
        if not root.is_dir():
            raise NodeRefused(f"mirror root {root} is not a folder: make it, or name another")
    if options.mirror_roots:
        return options.mirror_roots
    storage.mirrors.mkdir(exist_ok=True)
    return (storage.mirrors,)
