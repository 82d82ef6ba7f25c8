"""The sink of a replica: entries at their own timestamps, dealt over several requests by key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID
from zlib import crc32

import msgspec

from ....catalog.descriptors.descriptor import EXPIRES_AT, TableDescriptor
from ....kvlayer.clock import Timestamp, duration
from ....kvlayer.history import StorePosition
from ....kvlayer.keys import decode_bytes, index_prefix
from ....kvlayer.raw import DELETED_TTL
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ..mirror.progress_encoding import decode_frontier, encode_frontier
from ..protocol import SinkContext, SinkProgress, SinkStand
from .location import ReplicaTarget
from .sender import Sender, Sent, SentEntry, Stand

REQUEST_BYTES_MAX = 1024 * 1024
"""Of the keys and values in one request, where it has more than one entry."""


class _Note(msgspec.Struct, array_like=True, frozen=True):
    """The feed's progress, as the replica keeps it for us."""

    frontier: bytes
    resolved: int
    scan_complete: bool
    incarnation: str
    index: int


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Note)


class ReplicaSink:
    """Sends a keyspace's entries to a replica of it.

    The entries of a flush are dealt by key over `concurrency` lanes; each sends one request after
    the other. So no key is ever in two requests at once, and its versions arrive in order. The
    flush's progress is told when all of them are acknowledged, and with it what is resolved.
    """

    def __init__(self, target: ReplicaTarget, context: SinkContext, sender: Sender) -> None:
        self._target = target
        self._context = context
        self._sender = sender
        self._wall = context.clock.wall
        self._source = f"{context.identity.store_id}/{context.identity.job_id}"
        self._origin = origin_of(context.identity.store_id)
        self._opened: Stand | None = None
        self._unflushed: list[ChangeBatch] = []

    async def stand(self) -> SinkStand | None:
        """Begins an epoch, and says how far the replica has come."""
        assert self._opened is None, "asked twice"
        self._opened = stand = await self._sender.open(self._source)
        if not stand.note:
            return None
        note = _decoder.decode(stand.note)
        resolved = Timestamp(note.resolved)
        return SinkStand(
            progress=SinkProgress(
                frontier=decode_frontier(note.frontier, resolved),
                resolved=resolved,
                scan_complete=note.scan_complete,
            ),
            position=StorePosition(incarnation=note.incarnation, index=note.index),
        )

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        """`stand` has opened the replica."""
        assert self._opened is not None
        assert all(table.keyspace is not None for table in tables), tables

    def emit(self, batch: ChangeBatch) -> None:
        batch.stages.received = self._wall.monotonic_ns()
        self._unflushed.append(batch)

    def change_schema(self, event: TableEvent) -> None:
        """A keyspace has one schema for ever."""

    async def flush(self, progress: SinkProgress | None) -> None:
        batches, self._unflushed = self._unflushed, []
        lanes: list[list[SentEntry]] = [[] for _ in range(self._target.concurrency)]
        for batch in batches:
            for entry in self._entries(batch):
                lanes[crc32(entry.key) % len(lanes)].append(entry)
            await asyncio.sleep(0)
        await self._send_all([lane for lane in lanes if lane])
        if progress is not None:
            await self._tell(progress)
        now = self._wall.monotonic_ns()
        for batch in batches:
            batch.stages.sunk = now

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """The replica was told with the flush."""

    async def close(self) -> None:
        self._unflushed.clear()
        await self._sender.close()

    async def _send_all(self, lanes: Sequence[Sequence[SentEntry]]) -> None:
        """Returns when every lane is acknowledged; the first that fails ends the others."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for lane in lanes:
                    tasks.create_task(self._send(lane))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _send(self, entries: Sequence[SentEntry]) -> None:
        first = size = 0
        for place, entry in enumerate(entries):
            length = len(entry.key) + len(entry.value or b"")
            full = place - first == self._target.batch_size or size + length > REQUEST_BYTES_MAX
            if full and place > first:
                await self._sender.send(self._sent(entries[first:place]))
                first, size = place, 0
            size += length
        await self._sender.send(self._sent(entries[first:]))

    async def _tell(self, progress: SinkProgress) -> None:
        position = self._context.position()
        sent = self._sent(())
        sent.resolved = progress.resolved if progress.scan_complete else None
        sent.note = _encode(
            _Note(
                encode_frontier(progress),
                progress.resolved,
                progress.scan_complete,
                position.incarnation,
                position.index,
            )
        )
        await self._sender.send(sent)

    def _sent(self, entries: Sequence[SentEntry]) -> Sent:
        assert self._opened is not None
        return Sent(self._source, self._opened.epoch, self._origin, list(entries))

    def _entries(self, batch: ChangeBatch) -> list[SentEntry]:
        table = batch.descriptor
        prefix = len(index_prefix(table.id, table.primary_index_id))
        names = [column.name for column in table.visible_columns]
        value, ends = names.index("value"), names.index(EXPIRES_AT)
        kept = duration(seconds=self._context.settings.get(DELETED_TTL))
        stamps = batch.timestamps if batch.versions is None else batch.versions
        entries: list[SentEntry] = []
        for key, at, row in zip(batch.keys, stamps, batch.iterate_rows(), strict=True):
            name, _ = decode_bytes(key, prefix)
            if row is None:
                entries.append(SentEntry(name, None, at, at + kept))
            else:
                entries.append(SentEntry(name, row[value], at, row[ends]))  # type: ignore[arg-type]
        return entries


def origin_of(store_id: str) -> int:
    """The number of a store, which its versions bear in others."""
    return UUID(store_id).int >> 96
