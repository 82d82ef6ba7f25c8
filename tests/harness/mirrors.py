"""A DuckDB mirror on real files and threads, for tests: open, emit, flush, read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import Datum
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.sinks.duckdb import DuckDBFiles, DuckDBSink
from tailrace.changefeed.sinks.duckdb.hosting import WORKERS, MirrorWorker, PlacedKind, PlacedReader
from tailrace.changefeed.sinks.duckdb.hosting.placement import Placement
from tailrace.changefeed.sinks.duckdb.hosting.worker_sink import WorkerSink
from tailrace.changefeed.sinks.locations import MirrorLocations
from tailrace.changefeed.sinks.protocol import FeedIdentity, SinkContext, SinkProgress
from tailrace.kvlayer.clock import (
    Clock,
    MemoryBoundStore,
    SystemWallClock,
    Timestamp,
    WallClock,
)
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import Offload, ThreadOffload
from tailrace.kvlayer.settings import Settings
from tests.harness.loop_worker import LoopWorker

MirrorSink = DuckDBSink | WorkerSink

T = TypeVar("T")

Row = tuple[Datum, ...]


def rows_batch(
    descriptor: TableDescriptor,
    changes: Sequence[tuple[Sequence[Datum], int, Row | None]],
    *,
    columnar: bool = False,
    kind: ChangeKind = ChangeKind.LIVE,
) -> ChangeBatch:
    """A batch of (primary key, timestamp, row or None) in order."""
    codec = codec_for(descriptor)
    keys = [codec.encode_key(key) for key, _, _ in changes]
    timestamps = [Timestamp(ts) for _, ts, _ in changes]
    rows = [row for _, _, row in changes]
    if not columnar:
        return ChangeBatch(
            descriptor=descriptor, kind=kind, keys=keys, timestamps=timestamps, rows=rows
        )
    bodies = [codec.encode_row(row)[1] for row in rows if row is not None]
    return ChangeBatch(
        descriptor=descriptor,
        kind=kind,
        keys=keys,
        timestamps=timestamps,
        columns=codec.decode_columns(bodies),
        deleted=[place for place, row in enumerate(rows) if row is None],
    )


def progress_of(
    descriptor: TableDescriptor, resolved: int, *, scan_complete: bool = True
) -> SinkProgress:
    """All of a table at `resolved`."""
    at = Timestamp(resolved)
    return SinkProgress(
        frontier=((descriptor.primary_span, at),), resolved=at, scan_complete=scan_complete
    )


async def begin(sink: MirrorSink, tables: Sequence[TableDescriptor]) -> SinkProgress | None:
    """Opens a sink as an attempt does; the progress that it holds. One that fails is closed."""
    try:
        stand = await sink.stand()
        await sink.open(tables)
    except BaseException:
        await sink.close()
        raise
    return None if stand is None else stand.progress


class Mirrors:
    """A node's DuckDB side: files, kind and reader over one mirror root. `apart` has the files in a
    worker."""

    apart = False

    def __init__(
        self,
        root: Path,
        offload: Offload,
        *,
        store_id: str = "store-1",
        wall: WallClock | None = None,
    ) -> None:
        self.root = root
        self.offload = offload
        self.store_id = store_id
        self.clock = Clock(wall or SystemWallClock(), MemoryBoundStore())
        self.clock.now()  # as a store does when it opens
        self._own = DuckDBFiles(MirrorLocations([root]), offload)
        self.position = StorePosition(incarnation="first", index=1)
        self.ended: set[int] = set()
        """Jobs that are over."""
        self.settings = Settings({WORKERS.name: "on" if self.apart else "off"})
        self.metrics = Metrics()
        self.loop_worker = LoopWorker(offload, self.clock.wall)
        self.worker = MirrorWorker(self.loop_worker.start, self._lives, self.metrics, [root])
        placement = Placement(self._own, self.worker, self.settings)
        self.kind = PlacedKind(placement, self._lives, offload.lane("mirrors"))
        self.reader = PlacedReader(placement)

    @property
    def files(self) -> DuckDBFiles:
        """Those of the process that holds them."""
        host = self.loop_worker.host
        return self._own if host is None else host.files

    async def _lives(self, job_id: int) -> bool:
        return job_id not in self.ended

    async def holds(self, position: StorePosition) -> bool:
        return position.incarnation == self.position.incarnation

    def identity(self, job_id: int = 7, epoch: int = 1) -> FeedIdentity:
        return FeedIdentity(store_id=self.store_id, job_id=job_id, epoch=epoch)

    def sink(
        self, uri: str = "duckdb:///mirror.duckdb", *, job_id: int = 7, epoch: int = 1
    ) -> MirrorSink:
        context = SinkContext(
            identity=self.identity(job_id, epoch),
            position=lambda: self.position,
            clock=self.clock,
            offload=self.offload,
            settings=self.settings,
            metrics=self.metrics,
            options=ChangefeedOptions(),
        )
        sink = self.kind.create(uri, context)
        assert isinstance(sink, WorkerSink if self.apart else DuckDBSink)
        return sink

    @asynccontextmanager
    async def open(
        self,
        *tables: TableDescriptor,
        uri: str = "duckdb:///mirror.duckdb",
        job_id: int = 7,
        epoch: int = 1,
    ) -> AsyncIterator[MirrorSink]:
        """A sink, open for the time of the block."""
        sink = self.sink(uri, job_id=job_id, epoch=epoch)
        try:
            await begin(sink, tables)
            yield sink
        finally:
            await sink.close()

    async def read(self, sql: str, location: str = "mirror.duckdb") -> list[Row]:
        table: pa.Table = await self.reader.read(location, sql)
        return [tuple(row.values()) for row in table.to_pylist()]


def run(root: Path, scenario: Callable[[Mirrors], Awaitable[T]], *, store_id: str = "store-1") -> T:
    """Runs a scenario on real threads, and closes them."""

    async def whole() -> T:
        offload = ThreadOffload("test")
        mirrors = Mirrors(root, offload, store_id=store_id)
        try:
            return await scenario(mirrors)
        finally:
            await mirrors.worker.close()
            offload.close()

    return asyncio.run(whole())
