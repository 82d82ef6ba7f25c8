"""The sink of a replica: entries at their own timestamps, delivered in order per key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ....catalog.descriptors.descriptor import TableDescriptor
from ....kvlayer.clock import Timestamp
from ....kvlayer.history import StorePosition
from ....kvlayer.keys import KEYSPACE_LENGTH
from ....kvlayer.replication.replica import Ingest, origin_of, source_of
from ....kvlayer.span import EVERYTHING
from ...contract.changes import ChangeBatch, Form
from ..mirror.progress_encoding import decode_frontier, encode_frontier
from ..protocol import Sink, SinkContext, SinkError, SinkProgress, SinkStand
from .entry_queue import Entries, EntryQueue, Told
from .location import ReplicaTarget
from .requests import Refused, ReplicaRequests, Stand


class _Note(msgspec.Struct, array_like=True, frozen=True):
    """The feed's progress, as the replica keeps it for us."""

    frontier: bytes
    resolved: int
    scan_complete: bool
    incarnation: str
    index: int


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(_Note)


class BackupMaker(Protocol):
    """Makes the backup that a replica begins with."""

    def check(self, uri: str) -> None:
        """Raises SQLError for what names no folder."""
        ...

    async def back_up(self, keyspace_id: int, name: str, at: Timestamp, uri: str) -> None:
        """Returns when there is a backup as of `at`. Raises SinkError and SinkRefused."""
        ...


async def restore_replica(
    requests: ReplicaRequests,
    backups: BackupMaker,
    uri: str,
    keyspace_id: int,
    name: str,
    at: Timestamp,
    *,
    first: bool = True,
) -> None:
    """Makes the replica from a backup as of `at`, where it has nothing yet. Raises SinkError where
    another task is to do that first."""
    try:
        stand = await requests.look()
    except Refused as refused:
        if refused.sqlstate != "42P01":
            raise
    else:
        if stand.resolved or stand.note:
            return
    if not first:
        raise SinkError("the replica is to be restored by the replication's first task")
    await backups.back_up(keyspace_id, name, at, uri)
    await requests.restore(uri)


def written_note(progress: SinkProgress, position: StorePosition) -> bytes:
    """The feed's progress, as the replica keeps it for whoever goes on with the feed."""
    note = _Note(
        encode_frontier(progress),
        progress.resolved,
        progress.scan_complete,
        position.incarnation,
        position.index,
    )
    return _encode(note)


def read_stand(stand: Stand, position: StorePosition) -> SinkStand | None:
    """The stand of the feed by the replica's answer; None where it has nothing. `position` is the
    source's, for what nobody has left a note of."""
    if not stand.note and not stand.resolved:
        return None
    if not stand.note:  # restored from a backup, or led there, or other tasks had these keys
        resolved = Timestamp(stand.resolved)
        progress = SinkProgress(
            frontier=((EVERYTHING, resolved),), resolved=resolved, scan_complete=True
        )
        return SinkStand(progress=progress, position=position)
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


class ReplicaSink(Sink):
    """Sends a keyspace's entries to a replica of it. A keyspace has one schema for ever.

    The replica is told a flush's progress, and with it what is resolved, behind all that was
    emitted before: along with the last of it, or when it has acknowledged that.
    """

    form = Form.STORED

    def __init__(
        self,
        target: ReplicaTarget,
        context: SinkContext,
        requests: ReplicaRequests,
        backups: BackupMaker | None = None,
    ) -> None:
        self._context = context
        self._target = target
        self._requests = requests
        self._backups = backups
        store_id = context.identity.store_id
        ((self._table_id, self._name),) = context.names.items()
        self._source = source_of(store_id, self._table_id)
        """The main keyspace: a job that is created anew goes on where the one before it stood."""
        self._origin = origin_of(store_id)
        self._epoch = 0
        self._queue: EntryQueue | None = None

    async def stand(self) -> SinkStand | None:
        """Begins an epoch, in which everything is sent from here on, and says how far the replica
        has come."""
        context, task, backup = self._context, self._context.task, self._target.backup
        if backup is not None:
            assert self._backups is not None, "a target with a backup was validated"
            await restore_replica(
                self._requests,
                self._backups,
                backup,
                self._table_id,
                self._name,
                context.start_at,
                first=task is None or task.first,
            )
        stand = await self._requests.open(self._source, task)
        self._epoch = stand.epoch
        return read_stand(stand, context.position())

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        assert self._epoch, "the sink's `stand` has begun the epoch"
        self._queue = EntryQueue(
            self._send,
            requests_max=self._target.concurrency,
            entries_max=self._target.batch_size,
        )

    def emit(self, batch: ChangeBatch) -> None:
        assert self._queue is not None, "the sink is open"
        bodies = [body for body in batch.bodies or () if body is not None]
        assert len(bodies) == len(batch), "a deletion of a raw key is an entry"
        keys = [key[KEYSPACE_LENGTH:] for key in batch.keys]
        self._queue.put(Entries(keys, bodies, [*batch.written_at]))

    async def flush(self, progress: SinkProgress | None) -> None:
        assert self._queue is not None, "the sink is open"
        if progress is None:
            await self._queue.flushed()
            return
        resolved = progress.resolved if progress.scan_complete else None
        told = Told(written_note(progress, self._context.position()), resolved)
        if not await self._queue.flushed(told):
            await self._send(Entries(), told)

    async def close(self) -> None:
        if self._queue is not None:
            await self._queue.close()
        await self._requests.close()

    async def _send(self, entries: Entries, told: Told | None) -> None:
        """Returns when the replica has both, durably."""
        order = Ingest(
            source=self._source,
            epoch=self._epoch,
            origin=self._origin,
            keys=entries.keys,
            bodies=entries.bodies,
            timestamps=entries.timestamps,
            resolved=None if told is None else told.resolved,
            note=None if told is None else told.note,
        )
        await self._requests.send(order)
