"""Mirrors that are held here or in the feed worker, each where it is placed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from .....catalog.descriptors.descriptor import TableDescriptor
from .....catalog.values.errors import SQLError
from .....kvlayer.history import StorePosition
from .....kvlayer.process.offload import Offload
from .....kvlayer.worker import Peer, WorkerGone
from ...protocol import FeedIdentity, Holds, Sink, SinkContext, SinkError
from ..kind import DuckDBKind
from ..orphans import Lives
from ..reading.log_snapshot import SnapshotLog
from ..reading.mirror_snapshot import SnapshotTable
from ..reading.reader import MirrorReader, Permit
from ..reading.snapshot import InLane, MirrorSnapshot
from .mirror_worker import worker_errors
from .placement import Placement
from .worker_sink import WorkerSink

T = TypeVar("T")


class PlacedKind(DuckDBKind):
    """The kind of sink that mirrors tables into DuckDB files, which this process or its worker
    holds."""

    def __init__(self, placement: Placement, lives: Lives, lane: Offload) -> None:
        """`lane` is for what belongs to a snapshot's lane and touches no file."""
        super().__init__(placement.files, lives)
        self._placement = placement
        self._worker = placement.worker
        self._lane = lane

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        path = self.path_of(uri)
        if not self._placement.apart(path):
            await super().validate(uri, tables, store_id=store_id)
            return
        with self._worker.using(path):
            try:
                await self._worker.call("validate", uri, list(tables), store_id)
            except SinkError as error:
                raise SQLError("58030", str(error)) from error

    def create(self, uri: str, context: SinkContext) -> Sink:
        target = self._files.locations.target(uri)
        if self._placement.apart(target.path):
            return WorkerSink(uri, target, context, self._worker)
        return super().create(uri, context)

    async def release(self, uri: str, identity: FeedIdentity, holds: Holds) -> None:
        self._worker.unreadable.discard(identity.job_id)
        await super().release(uri, identity, holds)

    async def seen(self, path: Path, identity: FeedIdentity) -> StorePosition | None:
        if not self._placement.apart(path):
            return await super().seen(path, identity)
        with self._worker.using(path):
            found: StorePosition | None = await self._worker.call("seen", str(path), identity)
        return found

    async def free(self, path: Path, identity: FeedIdentity) -> None:
        if not self._placement.apart(path):
            await super().free(path, identity)
            return
        with self._worker.using(path):
            await self._worker.call("free", str(path), identity)

    @asynccontextmanager
    async def snapshot(self, uri: str, job_id: int) -> AsyncIterator[tuple[MirrorSnapshot, InLane]]:
        path = self.path_of(uri)
        if not self._placement.apart(path):
            async with super().snapshot(uri, job_id) as found:
                yield found
            return
        with self._worker.using(path):
            number, peer = self._worker.number(), await self._worker.peer()
            try:
                with worker_errors():
                    resolved, tables, logs = await peer.call("begin_snapshot", number, uri, job_id)
                shown = MirrorSnapshot(
                    resolved,
                    [SnapshotTable(row, job_id, upto, None) for row, upto in tables],
                    [SnapshotLog(row, upto, None) for row, upto in logs],
                )
                yield shown, InWorker(peer, number, self._lane)
            finally:
                with suppress(WorkerGone):
                    await peer.call("end_snapshot", number)


class InWorker:
    """Runs methods of a snapshot's tables and logs in the worker, and all else on a thread here."""

    def __init__(self, peer: Peer, number: int, lane: Offload) -> None:
        self._peer = peer
        self._number = number
        self._lane = lane

    async def __call__(self, call: Callable[[], T]) -> T:
        method, arguments, keywords = call, (), {}
        if isinstance(call, partial):
            method, arguments, keywords = call.func, call.args, call.keywords
        owner = getattr(method, "__self__", None)
        if not isinstance(owner, SnapshotTable | SnapshotLog):
            return await self._lane.run(call)
        of_log = isinstance(owner, SnapshotLog)
        asked = of_log, owner.row.table_id, (method.__name__, arguments, keywords)
        with worker_errors():
            result: T = await self._peer.call("in_snapshot", self._number, *asked)
            return result


class PlacedReader(MirrorReader):
    """Reads the mirrors of a node, each where it is placed."""

    def __init__(self, placement: Placement) -> None:
        super().__init__(placement.files)
        self._placement = placement

    async def read(
        self,
        location: str,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        permit: Permit | None = None,
        bytes_max: int | None = None,
    ) -> pa.Table:
        """See `MirrorReader.read`. A worker that dies meanwhile is 58030."""
        path = self._files.locations.read_target(location)
        if not path.is_file() or not self._placement.apart(path):
            return await super().read(location, sql, parameters, permit=permit, bytes_max=bytes_max)
        worker = self._placement.worker
        number = worker.number()
        asked = location, sql, list(parameters), permit is not None, bytes_max
        with worker.using(path), worker.reading(number, permit) as rows:
            try:
                schema = await worker.call("read", number, *asked)
            except SinkError as error:
                raise SQLError("58030", str(error)) from error
            return pa.Table.from_batches(rows, schema=schema)
