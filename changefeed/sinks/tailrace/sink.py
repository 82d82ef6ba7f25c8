"""The sink of a replica: entries at their own timestamps, delivered in order per key."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ....catalog.descriptors.descriptor import EXPIRES_AT, TableDescriptor
from ....kvlayer.clock import Timestamp, duration
from ....kvlayer.history import StorePosition
from ....kvlayer.keys import decode_bytes, index_prefix
from ....kvlayer.raw import DELETED_TTL
from ....kvlayer.settings import Settings
from ....schemafeed.table_events import TableEvent
from ...contract.changes import ChangeBatch
from ...contract.sink_config import FlushConfig, RetryConfig
from ...encode import EncodedBatch, Topics
from ..delivery import Message, MessageSink
from ..mirror.progress_encoding import decode_frontier, encode_frontier
from ..protocol import SinkContext, SinkProgress, SinkStand
from .location import ReplicaTarget
from .requests import ReplicaRequests, Sent, SentEntry, Stand


class _Note(msgspec.Struct, array_like=True, frozen=True):
    """The feed's progress, as the replica keeps it for us."""

    frontier: bytes
    resolved: int
    scan_complete: bool
    incarnation: str
    index: int


_encode = msgspec.msgpack.Encoder().encode
_encode_entry = msgspec.json.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Note)


class EntryEncoder:
    """Implements `encode.Encoder`: a message is an entry, as a replica takes it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        table = batch.descriptor
        prefix = len(index_prefix(table.id, table.primary_index_id))
        names = [column.name for column in table.visible_columns]
        value, ends = names.index("value"), names.index(EXPIRES_AT)
        kept = duration(seconds=self._settings.get(DELETED_TTL))
        stamps = batch.timestamps if batch.versions is None else batch.versions
        keys = [decode_bytes(key, prefix)[0] for key in batch.keys]
        entries = [
            SentEntry(key, None, at, at + kept)
            if row is None
            else SentEntry(key, row[value], at, row[ends])  # type: ignore[arg-type]
            for key, at, row in zip(keys, stamps, batch.iterate_rows(), strict=True)
        ]
        return EncodedBatch(topic="", keys=keys, values=[_encode_entry(each) for each in entries])

    def encode_resolved(self, topic: str | None, resolved: Timestamp) -> bytes:
        raise AssertionError("a replica is told what is resolved with the progress")


class EntrySender:
    """Implements `delivery.MessageSender`: a batch is an ingest in the epoch that was opened."""

    resolved_by_topic = False

    def __init__(self, requests: ReplicaRequests, context: SinkContext) -> None:
        store_id, (table_id,) = context.identity.store_id, context.names
        self.source = f"{store_id}/{table_id}"
        """The main keyspace: a job that is created anew goes on where the one before it stood."""
        self.epoch = 0
        self._origin = origin_of(store_id)
        self._requests = requests

    async def begin(self) -> Stand:
        """Begins an epoch, in which everything is sent from here on."""
        stand = await self._requests.open(self.source)
        self.epoch = stand.epoch
        return stand

    async def open(self) -> None:
        assert self.epoch, "the sink's `stand` has begun the epoch"

    async def send(self, messages: Sequence[Message]) -> None:
        entries = [msgspec.Raw(message.value or b"") for message in messages]
        await self._requests.send(Sent(self.source, self.epoch, self._origin, entries))

    async def tell(self, note: bytes, resolved: Timestamp | None) -> None:
        """Returns when the replica has both, durably."""
        sent = Sent(self.source, self.epoch, self._origin, resolved=resolved, note=note)
        await self._requests.send(sent)

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        raise AssertionError("a replica is told what is resolved with the progress")

    async def close(self) -> None:
        await self._requests.close()


class ReplicaSink:
    """Sends a keyspace's entries to a replica of it.

    Delivery deals them by key over `concurrency` lanes. The replica is told a flush's progress, and
    with it what is resolved, when it has acknowledged all that was emitted before.
    """

    def __init__(
        self, target: ReplicaTarget, context: SinkContext, requests: ReplicaRequests
    ) -> None:
        self._context = context
        self._sender = EntrySender(requests, context)
        self._messages = MessageSink(
            self._sender,
            context,
            EntryEncoder(context.settings),
            Topics(),
            flush=FlushConfig(messages=target.batch_size),
            retry=RetryConfig(max=0),  # `requests` tries again by itself
            requests=target.concurrency,
        )

    async def stand(self) -> SinkStand | None:
        """Begins an epoch, and says how far the replica has come."""
        stand = await self._sender.begin()
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
        await self._messages.open(tables)

    def emit(self, batch: ChangeBatch) -> None:
        self._messages.emit(batch)

    def change_schema(self, event: TableEvent) -> None:
        """A keyspace has one schema for ever."""

    async def flush(self, progress: SinkProgress | None) -> None:
        position = self._context.position()
        await self._messages.flush(progress)
        if progress is None:
            return
        note = _Note(
            encode_frontier(progress),
            progress.resolved,
            progress.scan_complete,
            position.incarnation,
            position.index,
        )
        await self._sender.tell(_encode(note), progress.resolved if note.scan_complete else None)

    async def emit_resolved(self, resolved: Timestamp) -> None:
        """The replica was told with the flush."""

    async def close(self) -> None:
        await self._messages.close()


def origin_of(store_id: str) -> int:
    """The number of a store, which its versions bear in others."""
    return UUID(store_id).int >> 96
