"""Ingest: entries of a main keyspace, as its replica in another store takes them.

IngestedEntry(b"k", b"2", timestamp=120, expires_at=180)      put, with a time to live
IngestedEntry(b"k", None, timestamp=140, expires_at=900)      deleted; the deletion ends at 900
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..access import StoreAccess
from ..clock import Timestamp
from ..keys import all_encoded_bytes
from ..replication.replica import Ingest, Open, ReplicaState
from ..span import Span
from .entry import check_entries, encode_deletion, encode_entry
from .keyspace import check_key, keyspace_part, keyspace_span, raw_keys

KeyInterval = tuple[bytes, bytes | None]
"""The keys of `[start, end)`; None is behind the last."""


class IngestedEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of a key: put, or deleted where there is no value. Both times are those of the
    store where it was written first, as whole numbers; a deletion says when it ends."""

    key: bytes
    value: bytes | None
    timestamp: Timestamp
    expires_at: Timestamp | None = None

    def body(self) -> bytes:
        """Raises ValueError for a deletion that would never end."""
        if self.value is not None:
            return encode_entry(self.value, self.expires_at)
        if self.expires_at is None:
            raise ValueError(f"the deletion of key {self.key.hex()} does not say when it ends")
        return encode_deletion(self.expires_at)


class ReplicaKeyspace:
    """A keyspace whose entries come from another store. Raises ReplicaRefused, KeyTooLarge."""

    def __init__(self, store: StoreAccess, keyspace_id: int) -> None:
        self._id = keyspace_id
        self._span = keyspace_span(keyspace_id)
        self._store = store

    async def open(
        self, source: str, task: KeyInterval | None = None, whole: KeyInterval | None = None
    ) -> ReplicaState:
        """Begins the source's next epoch, and says from where it goes on. A `task` is keys of the
        `whole` that the source sends. Raises ValueError for an interval without keys."""
        spans = [None if each is None else self._part(each) for each in (task, whole)]
        state = await self._store.replica(self._span, Open(source, *spans))
        assert state is not None, self._span
        return state

    async def ingest(
        self,
        entries: Sequence[IngestedEntry],
        *,
        source: str,
        epoch: int,
        origin: int,
        resolved: Timestamp | None = None,
        note: bytes | None = None,
    ) -> ReplicaState:
        """Takes what is not here yet; it is durable when the call returns. Raises ValueError for
        what is no entry."""
        written = [entry.key for entry in entries]
        check_key(max(written, key=len, default=b""))
        order = Ingest(
            source=source,
            epoch=epoch,
            origin=origin,
            keys=raw_keys(self._id, written),
            bodies=[entry.body() for entry in entries],
            timestamps=[entry.timestamp for entry in entries],
            resolved=resolved,
            note=note,
        )
        state = await self._store.replica(self._span, order)
        assert state is not None, order
        return state

    async def take(self, order: Ingest) -> ReplicaState:
        """As `ingest`, of keys and entries as they are stored; the keys are without what all keys
        of the keyspace begin with. Raises ValueError also for what is none of these."""
        if not len(order.keys) == len(order.bodies) == len(order.timestamps):
            raise ValueError("there is not one entry, and one timestamp, for each key")
        if not all_encoded_bytes(order.keys):
            raise ValueError("a key is not encoded as keys of a raw keyspace are")
        check_entries(order.bodies)
        prefix = self._span.start
        order = msgspec.structs.replace(order, keys=[prefix + key for key in order.keys])
        state = await self._store.replica(self._span, order)
        assert state is not None, order
        return state

    def _part(self, interval: KeyInterval) -> Span:
        start, end = interval
        check_key(start)
        check_key(end or b"")
        return keyspace_part(self._id, start, end)

    def __repr__(self) -> str:
        return f"<ReplicaKeyspace {self._id}>"
