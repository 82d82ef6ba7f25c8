"""Backups of raw keyspaces, and what is restored from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.descriptor_encoding import (
    DescriptorUnreadable,
    decode_descriptor,
    encode_descriptor,
)
from ...catalog.descriptors.keyspace import Keyspace
from ...catalog.rights.quotas import Quota, declare_bounds
from ...kvlayer.access import StoreAccess, committed
from ...kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from ...kvlayer.process.background import give_way
from ...kvlayer.process.offload import OffloadLane
from ...kvlayer.protected_timestamp import ProtectedTimestamps
from ...kvlayer.raw import IngestedEntry, ReplicaKeyspace, decode_entry, keyspace_span, user_key
from ...kvlayer.replication.replica import Begin, End, origin_of, source_of
from ...kvlayer.span import Span
from .folder import (
    BackupRefused,
    PartWriter,
    begin_backup,
    finish_backup,
    open_backup,
    read_manifest,
    read_part,
)
from .manifest import BackupFile, Manifest

_FIELDS: Sequence[pa.Field[Any]] = (
    pa.field("key", pa.binary(), nullable=False),
    pa.field("value", pa.binary(), nullable=False),
    pa.field("expires_at", pa.int64()),
    pa.field("timestamp", pa.int64(), nullable=False),
)
SCHEMA = pa.schema(_FIELDS)

ROW_GROUP_BYTES = 4 * 1024 * 1024
"""The bytes that a backup holds in memory before it writes them."""

PROTECTION_OWNER = "backup"
PROTECTION_SECONDS = 24 * 3600.0
"""The record of a backup that was cut off ends by itself."""

Entry = tuple[bytes, bytes, int | None, int]


@dataclass(frozen=True, slots=True)
class OpenedBackup:
    """A backup that was found whole."""

    path: Path
    manifest: Manifest

    @property
    def source(self) -> str:
        """The name of the keyspace that was backed up, as the source of a replica."""
        return source_of(self.manifest.store_id, self.manifest.target_id)

    @property
    def keyspace(self) -> Keyspace:
        """Raises BackupRefused where it is a backup of anything else."""
        try:
            found = decode_descriptor(self.manifest.descriptor, self.manifest.upto)
        except DescriptorUnreadable as error:
            raise BackupRefused(f"{self.path} is no backup of a keyspace: {error}") from error
        if not isinstance(found, TableDescriptor) or found.keyspace is None:
            raise BackupRefused(f"{self.path} is no backup of a keyspace")
        return found.keyspace


_UNDER_WAY = declare_bounds(
    "backups and restorations of keyspaces under way", "changefeed.keyspace_backups", 2, 8
)

BACKUP_QUOTA = Quota(
    what="backups and restorations of keyspaces under way",
    of_user=_UNDER_WAY[0],
    of_store=_UNDER_WAY[1],
    remedy="Wait for one to end",
)


class KeyspaceBackups:
    """Writes and restores backups of a store's keyspaces. `divide` cuts a span at range borders."""

    def __init__(
        self,
        store: StoreAccess,
        protections: ProtectedTimestamps,
        divide: Callable[[Span], Sequence[Span]],
        lane: OffloadLane,
    ) -> None:
        self._store = store
        self._protections = protections
        self._divide = divide
        self._lane = lane
        self.under_way: Counter[str] = Counter()
        """The backups that this node writes or restores, counted by their users."""

    async def write(
        self, descriptor: TableDescriptor, name: str, at: Timestamp, path: Path
    ) -> Manifest:
        """Backs the keyspace up as of `at`, which is kept meanwhile. Raises BackupRefused,
        ProtectionRefused where that is collected already, and KVError."""
        await self._lane.run(partial(begin_backup, path))
        span = keyspace_span(descriptor.id)
        async with self._protected(span, at):
            spans = self._divide(span)
            files = [
                await self._write_part(path, number, part, at)
                for number, part in enumerate(spans, start=1)
            ]
        manifest = Manifest(
            store_id=self._store.id,
            target_id=descriptor.id,
            name=name,
            descriptor=encode_descriptor(descriptor),
            after=ZERO,
            upto=at,
            files=tuple(files),
        )
        await self._lane.run(partial(finish_backup, path, manifest))
        self._store.metrics.add("backup_rows_total", manifest.rows)
        return manifest

    async def read(self, path: Path) -> OpenedBackup:
        """Checks every file. Raises BackupRefused."""
        return OpenedBackup(path, await self._lane.run(partial(open_backup, path)))

    async def holds(self, path: Path, keyspace_id: int, at: Timestamp) -> bool:
        """Whether the folder has a backup of a keyspace of this store as of `at`."""
        try:
            found = await self._lane.run(partial(read_manifest, path))
        except BackupRefused:
            return False
        return (found.store_id, found.target_id, found.upto) == (self._store.id, keyspace_id, at)

    async def restore(self, backup: OpenedBackup, keyspace_id: int, *, promotes: bool) -> None:
        """Puts a backup's entries into a new replica, at their own timestamps, which has resolved
        the backup's then. It `promotes` the replica, or leaves it to the keyspace that was backed
        up. Restoring again after a crash goes on. Raises ReplicaRefused and other KVErrors."""
        manifest = backup.manifest
        source = backup.source
        await self._store.replica(keyspace_span(keyspace_id), Begin())
        replica = ReplicaKeyspace(self._store, keyspace_id)
        epoch = (await replica.open(source)).epoch
        origin = origin_of(manifest.store_id)
        ingest = partial(replica.ingest, source=source, epoch=epoch, origin=origin)
        for file in manifest.files:
            rows = await self._lane.run(partial(read_part, backup.path, file, SCHEMA))
            while (part := await self._lane.run(partial(next, rows, None))) is not None:
                entries = [_entry(*row.values()) for row in part.to_pylist()]
                if not all(_possible(entry, manifest.upto) for entry in entries):
                    raise BackupRefused(f"{backup.path / file.name} holds no entries of then")
                await give_way()
                await ingest(entries)
        await ingest([], resolved=manifest.upto)
        if promotes:
            await self._store.replica(keyspace_span(keyspace_id), End())
        self._store.metrics.add("restore_rows_total", manifest.rows)

    async def _write_part(self, path: Path, number: int, span: Span, at: Timestamp) -> BackupFile:
        writer = await self._lane.run(partial(PartWriter, path, number, SCHEMA))
        try:
            async with aclosing(self._entries(span, at)) as groups:
                async for entries in groups:
                    arrays = map(pa.array, zip(*entries, strict=True), SCHEMA.types)
                    rows = pa.RecordBatch.from_arrays(list(arrays), schema=SCHEMA)
                    await self._lane.run(partial(writer.write, rows))
            return await self._lane.run(partial(writer.finish, span.start, span.end))
        finally:
            await self._lane.run(writer.close)

    async def _entries(self, span: Span, at: Timestamp) -> AsyncGenerator[list[Entry], None]:
        """Yields the entries of the span that a reader at `at` sees, in groups of a bounded
        size."""
        snapshot, found, size = self._store.snapshot(at), list[Entry](), 0
        async with aclosing(snapshot.scan_slices(span)) as slices:
            async for rows in slices:
                for key, body in rows:
                    entry = decode_entry(body)
                    value, version = entry.value_at(at), await snapshot.get_with_timestamp(key)
                    if value is not None and version is not None:
                        found.append((user_key(key), value, entry.expires_at, version[1]))
                        size += len(key) + len(value)
                await give_way()
                if size >= ROW_GROUP_BYTES:
                    yield found
                    found, size = [], 0
        if found:
            yield found

    @asynccontextmanager
    async def _protected(self, span: Span, at: Timestamp) -> AsyncGenerator[None, None]:
        async with committed(self._store) as transaction:
            record_id = await self._protections.protect(
                transaction,
                owner=PROTECTION_OWNER,
                spans=[span],
                timestamp=at,
                max_age_seconds=PROTECTION_SECONDS,
            )
        try:
            yield
        finally:
            async with committed(self._store) as transaction:
                await self._protections.release(transaction, record_id)


def _entry(key: bytes, value: bytes, expires_at: int | None, timestamp: int) -> IngestedEntry:
    ends = None if expires_at is None else Timestamp(expires_at)
    return IngestedEntry(key, value, Timestamp(timestamp), ends)


def _possible(entry: IngestedEntry, upto: Timestamp) -> bool:
    ends = entry.expires_at
    return 0 < entry.timestamp <= upto and (ends is None or 0 < ends <= MAX_TIMESTAMP)
