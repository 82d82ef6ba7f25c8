"""The worker's side: the sinks, reads and snapshots that a server has in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from .....catalog.descriptors.descriptor import TableDescriptor
from .....kvlayer.access import ClockReading
from .....kvlayer.clock import ZERO, Timestamp, WallClock
from .....kvlayer.history import StorePosition
from .....kvlayer.metrics import Metrics
from .....kvlayer.process.offload import Offload
from .....kvlayer.settings import Settings
from .....kvlayer.worker import VERSION, Channel, Handler, Peer, sent_pieces
from ....contract.options import ChangefeedOptions
from ...locations import MirrorLocations
from ...protocol import FeedIdentity, SinkContext, SinkProgress, SinkStand
from ..files import DuckDBFiles
from ..kind import DuckDBKind
from ..log_ownership import LogRow
from ..ownership import MirrorRow
from ..reading.reader import MirrorReader
from ..reading.snapshot import InLane, MirrorSnapshot
from ..sink import DuckDBSink
from .messages import KnownDescriptors, SentBatch, SentEvent

SnapshotRows = tuple[
    Timestamp, Sequence[tuple[MirrorRow, Timestamp]], Sequence[tuple[LogRow, Timestamp]]
]
"""A snapshot as it is sent: resolved; its tables and its logs, with how far each had come."""

SnapshotCall = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a snapshot's table or log, with its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentContext:
    """The part of a mirror's `SinkContext` that is sent to the worker."""

    identity: FeedIdentity
    options: ChangefeedOptions
    kept: frozenset[int]
    begins: Mapping[int, Timestamp]
    freshens: bool
    """Whether the server can be asked for an idle feed's progress."""


@dataclass(slots=True)
class _HostedSink:
    sink: DuckDBSink
    position: list[StorePosition]
    """The store's position as of the last flush that was begun."""
    descriptors: KnownDescriptors = field(default_factory=KnownDescriptors)
    failure: Exception | None = None
    """The error of what was told and could not be taken: the next flush raises it."""


class _Reading:
    """The clock of a process without a store: its wall's."""

    def __init__(self, wall: WallClock) -> None:
        self.wall = wall
        self.last = ZERO


class MirrorHost:
    """Serves a server over a channel. What the server calls is named in `_handlers`."""

    def __init__(self, channel: Channel, offload: Offload, wall: WallClock) -> None:
        self._offload = offload
        self._clock: ClockReading = _Reading(wall)
        self._sinks: dict[int, _HostedSink] = {}
        self._snapshots: dict[int, tuple[AsyncExitStack, MirrorSnapshot, InLane]] = {}
        self.files: DuckDBFiles
        self._kind: DuckDBKind
        self._reader: MirrorReader
        self.peer = Peer(channel, self._handlers())

    def _handlers(self) -> Mapping[str, Handler]:
        return {
            "hello": self._hello,
            "create": self._create,
            "describe": self._describe,
            "emit": self._emit,
            "change_schema": self._change_schema,
            "stand": self._stand,
            "open": self._open,
            "flush": self._flush,
            "close": self._close,
            "validate": self._validate,
            "seen": self._seen,
            "free": self._free,
            "read": self._read,
            "begin_snapshot": self._begin_snapshot,
            "in_snapshot": self._in_snapshot,
            "end_snapshot": self._end_snapshot,
        }

    def _hello(self, version: str, *roots: str) -> str:
        """The first call: where mirrors may lie. Returns this side's version."""
        if version == VERSION:
            self.files = DuckDBFiles(MirrorLocations([*map(Path, roots)]), self._offload)
            self._kind = DuckDBKind(self.files, partial(self.peer.call, "lives"))
            self._reader = MirrorReader(self.files)
        return VERSION

    # Sinks

    def _create(self, number: int, uri: str, sent: SentContext) -> None:
        position: list[StorePosition] = []
        context = SinkContext(
            identity=sent.identity,
            position=lambda: position[0],
            clock=self._clock,
            offload=self._offload,
            settings=Settings(),
            metrics=Metrics(),
            options=sent.options,
            kept=sent.kept,
            begins=sent.begins,
            freshen=partial(self.peer.call, "freshen", number) if sent.freshens else None,
        )
        sink = self._kind.create(uri, context)
        assert isinstance(sink, DuckDBSink), sink
        self._sinks[number] = _HostedSink(sink, position)

    def _describe(self, number: int, named: int, descriptor: TableDescriptor | None) -> None:
        self._sinks[number].descriptors.describe(named, descriptor)

    def _stand(self, number: int) -> Awaitable[SinkStand | None]:
        return self._sinks[number].sink.stand()

    def _open(self, number: int, tables: Sequence[TableDescriptor]) -> Awaitable[None]:
        return self._sinks[number].sink.open(tables)

    def _emit(self, number: int, sent: SentBatch) -> None:
        def emit(hosted: _HostedSink) -> None:
            hosted.sink.emit(hosted.descriptors.batch(sent).decoded())

        self._told(number, emit)

    def _change_schema(self, number: int, sent: SentEvent) -> None:
        def change_schema(hosted: _HostedSink) -> None:
            hosted.sink.change_schema(hosted.descriptors.event(sent))

        self._told(number, change_schema)

    def _told(self, number: int, take: Callable[[_HostedSink], None]) -> None:
        """Nobody waits for an answer: what fails is an error of the flush, as all that follows."""
        hosted = self._sinks[number]
        if hosted.failure is None:
            try:
                take(hosted)
            except Exception as error:
                hosted.failure = error

    def _flush(
        self, number: int, progress: SinkProgress | None, position: StorePosition
    ) -> Awaitable[int]:
        """Takes in this very step what came before it, and nothing of what comes behind. Returns
        when it was durable, in monotonic nanoseconds, which all processes count alike."""
        hosted = self._sinks[number]
        if hosted.failure is not None:
            raise hosted.failure
        hosted.position[:] = [position]
        taken = hosted.sink.take(progress)
        return _nothing() if taken is None else hosted.sink.write(taken)

    async def _close(self, number: int) -> None:
        hosted = self._sinks.pop(number, None)
        if hosted is not None:
            await hosted.sink.close()

    # The rest of a kind

    def _validate(
        self, uri: str, tables: Sequence[TableDescriptor], store_id: str
    ) -> Awaitable[None]:
        return self._kind.validate(uri, tables, store_id=store_id)

    def _seen(self, path: str, identity: FeedIdentity) -> Awaitable[StorePosition | None]:
        return self._kind.seen(Path(path), identity)

    def _free(self, path: str, identity: FeedIdentity) -> Awaitable[None]:
        return self._kind.free(Path(path), identity)

    async def _read(
        self,
        number: int,
        location: str,
        sql: str,
        parameters: Sequence[object],
        permits: bool,
        bytes_max: int | None,
    ) -> pa.Schema:
        """Has the server take the rows of a query, some at a time. Returns their schema."""
        permit = partial(self.peer.call, "permit", number) if permits else None
        found = await self._reader.read(
            location, sql, parameters, permit=permit, bytes_max=bytes_max
        )
        for piece in sent_pieces(found):
            await self.peer.call("rows", number, piece)
        return found.schema

    async def _begin_snapshot(self, number: int, uri: str, job_id: int) -> SnapshotRows:
        async with AsyncExitStack() as stack:
            snapshot, in_lane = await stack.enter_async_context(self._kind.snapshot(uri, job_id))
            self._snapshots[number] = stack.pop_all(), snapshot, in_lane
        tables = [(table.row, table.resolved) for table in snapshot.tables]
        logs = [(log.row, log.resolved) for log in snapshot.logs]
        return snapshot.resolved, tables, logs

    async def _in_snapshot(
        self, number: int, of_log: bool, table_id: int, call: SnapshotCall
    ) -> Any:
        """A method of a snapshot's table or log, in its lane."""
        stack, snapshot, in_lane = self._snapshots[number]
        parts = snapshot.logs if of_log else snapshot.tables
        owner = next(each for each in parts if each.row.table_id == table_id)
        name, arguments, keywords = call
        try:
            return await in_lane(partial(getattr(owner, name), *arguments, **keywords))
        except duckdb.Error as error:
            del self._snapshots[number]
            await stack.__aexit__(type(error), error, error.__traceback__)
            raise

    async def _end_snapshot(self, number: int) -> None:
        found = self._snapshots.pop(number, None)
        if found is not None:
            await found[0].aclose()


async def _nothing() -> int:
    return 0
