"""Raw keyspaces, or parts of them, as targets of a feed."""

from __future__ import annotations

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.keyspace_codec import KeyspaceCodec
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import ClockReading
from ...kvlayer.clock import Timestamp
from ...kvlayer.raw import keyspace_part
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeed, TableUnknown
from .replica_schema import ReplicaSchema
from .target import Versions


class KeyspacePart(msgspec.Struct, frozen=True):
    """The keys of a keyspace in `[start, end)`; no `end` is behind the last of them.

    Entries of a `replica` come from another store, and may be older than the keyspace is here.
    """

    start: bytes = b""
    end: bytes | None = None
    replica: bool = False

    def span(self, keyspace_id: int) -> Span:
        """Raises ValueError where no key lies in it."""
        return keyspace_part(keyspace_id, self.start, self.end)


class KeyspaceTarget:
    """The entries of a raw keyspace, as rows (key, value, expires_at)."""

    def __init__(
        self,
        keyspace_id: int,
        descriptors: DescriptorStore,
        part: KeyspacePart,
        clock: ClockReading,
    ) -> None:
        self.id = keyspace_id
        self.span = part.span(keyspace_id)
        self._descriptors = descriptors
        self._clock = clock
        self._replica = part.replica
        self._codec: KeyspaceCodec | None = None

    def schema_over(self, descriptors: SchemaFeed) -> SchemaFeed:
        # A keyspace is always locked: the feed over descriptors answers at once.
        return ReplicaSchema(descriptors, self._clock) if self._replica else descriptors

    async def descriptor_at(self, at: Timestamp) -> TableDescriptor:
        if self._replica:
            at = max(at, self._clock.last)
        keyspace = await self._descriptors.read_at(self.id, at)
        if not isinstance(keyspace, TableDescriptor) or keyspace.dropped:
            raise TableUnknown(self.id, at)
        return keyspace

    def rows_span(self, descriptor: TableDescriptor) -> Span:
        return self.span

    def select(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        return versions

    def present(self, versions: Versions, descriptor: TableDescriptor) -> Versions:
        if self._codec is None:
            self._codec = KeyspaceCodec(descriptor)
        row = self._codec.row
        given = list(zip(versions.keys, versions.values, versions.timestamps, strict=True))
        rows = [row(key, body, at) for key, body, at in given]
        previous = [
            row(key, body, at)[1]
            for (key, _, at), body in zip(given, versions.previous, strict=False)
        ]
        keys, values = [key for key, _ in rows], [body for _, body in rows]
        return Versions(keys, values, versions.timestamps, previous)

    def __repr__(self) -> str:
        return f"<KeyspaceTarget {self.id} {self.span}>"
