"""Protected timestamps: what garbage collection must leave alone, and for whom.

A *record* says that everything a reader at its timestamp sees in its spans is still needed. Records
are rows of a keyspace of their own, so that one is created in the very transaction that creates
what needs it. Garbage collection reads them in the step that raises its threshold:

    records          x: [a, f) at 120        y: [d, z) at 150, expired
    low_water [a,z)  120                     the threshold stays below 120
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Protocol

import msgspec

from .clock import MAX_TIMESTAMP, Timestamp, format_timestamp, seconds_between
from .engine import Reader
from .errors import KVError
from .keys import PROTECTION_KIND
from .mvcc import body_of, intents_in, scan_at
from .span import Span

KEYSPACE = PROTECTION_KIND + b"\x00\x00\x00\x00"
RECORDS = Span.prefix(KEYSPACE)


class ProtectionRefused(KVError):
    """The timestamp is at or below the garbage-collection threshold: what it wants may be gone."""

    def __init__(self, ts: Timestamp, threshold: Timestamp) -> None:
        super().__init__(
            f"timestamp {format_timestamp(ts)} cannot be protected: it is at or below the garbage "
            f"collection threshold {format_timestamp(threshold)}"
        )
        self.timestamp = ts
        self.threshold = threshold


class ProtectedTimestamp(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """A record. It protects for `max_age_seconds` since it was created or last moved; for ever if
    that is zero."""

    id: bytes
    owner: str
    spans: list[tuple[bytes, bytes]]
    timestamp: Timestamp
    created_at: Timestamp
    max_age_seconds: float = 0.0

    def expired(self, now: Timestamp) -> bool:
        age = seconds_between(self.created_at, now)
        return 0 < self.max_age_seconds < age

    def covers(self, span: Span) -> bool:
        """Whether it protects any key of the span."""
        return any(start < span.end and span.start < end for start, end in self.spans)


class Getter(Protocol):
    """A transaction or a snapshot, as far as reading one record needs it."""

    async def get(self, key: bytes) -> bytes | None: ...


class Writer(Getter, Protocol):
    """A transaction, as far as a record needs one."""

    async def put(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None: ...
    async def delete(self, keys: Sequence[bytes]) -> None: ...


class Scanner(Protocol):
    """A snapshot, as far as reading the records needs one."""

    async def scan(self, span: Span) -> Sequence[tuple[bytes, bytes]]: ...


class ProtectedStore(Protocol):
    """The store, as far as records need it."""

    async def now(self) -> Timestamp: ...
    @property
    def random(self) -> Random: ...
    async def gc_threshold_over(self, spans: Sequence[Span]) -> Timestamp: ...


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ProtectedTimestamp)


class ProtectedTimestamps:
    """Creates, moves and releases records, each inside a transaction of the caller's.

    A record at or below the threshold is refused in the step that would create it. The two cannot
    miss each other: a record is there for `low_water` from the step that writes its intent, and
    the threshold is looked at after that step. So either the step that raises the threshold came
    later and saw the record, or it came before and we see the threshold.

    `always` are spans that every record covers besides its own: what is needed to decode them.
    """

    def __init__(self, store: ProtectedStore, *, always: Sequence[Span] = ()) -> None:
        self._store = store
        self._always = tuple(always)

    async def protect(
        self,
        transaction: Writer,
        *,
        owner: str,
        spans: Sequence[Span],
        timestamp: Timestamp,
        max_age_seconds: float = 0.0,
    ) -> bytes:
        """Creates a record and returns its id. Raises ProtectionRefused: then roll back."""
        record = ProtectedTimestamp(
            id=self._store.random.randbytes(16),
            owner=owner,
            spans=[(span.start, span.end) for span in (*spans, *self._always)],
            timestamp=timestamp,
            created_at=await self._store.now(),
            max_age_seconds=max_age_seconds,
        )
        await self._write(transaction, record)
        return record.id

    async def advance(self, transaction: Writer, record_id: bytes, timestamp: Timestamp) -> bool:
        """Moves a record up; says whether it moved. Raises KeyError when it was released."""
        record = await self._existing(transaction, record_id)
        if timestamp <= record.timestamp:
            return False
        await self._move(transaction, record, timestamp)
        return True

    async def renew(self, transaction: Writer, record_id: bytes, timestamp: Timestamp) -> None:
        """Begins a record's age anew, and moves it up where `timestamp` is above it.

        Raises ProtectionRefused where it had expired and garbage collection has overtaken it: then
        roll back; KeyError when it was released.
        """
        record = await self._existing(transaction, record_id)
        await self._move(transaction, record, max(timestamp, record.timestamp))

    async def read(self, reader: Getter, record_id: bytes) -> ProtectedTimestamp | None:
        """The record, or None when it was released; it may be expired."""
        body = await reader.get(KEYSPACE + record_id)
        return None if body is None else _decoder.decode(body)

    async def read_all(self, reader: Scanner) -> list[ProtectedTimestamp]:
        """Every record as the reader sees them, expired ones included."""
        return [_decoder.decode(body) for _, body in await reader.scan(RECORDS)]

    async def release(self, transaction: Writer, record_id: bytes) -> None:
        """Removes a record. Releasing twice is once."""
        await transaction.delete([KEYSPACE + record_id])

    async def _existing(self, transaction: Writer, record_id: bytes) -> ProtectedTimestamp:
        body = await transaction.get(KEYSPACE + record_id)
        if body is None:
            raise KeyError(record_id.hex())
        return _decoder.decode(body)

    async def _move(
        self, transaction: Writer, record: ProtectedTimestamp, timestamp: Timestamp
    ) -> None:
        now = await self._store.now()
        moved = msgspec.structs.replace(record, timestamp=timestamp, created_at=now)
        await self._write(transaction, moved)

    async def _write(self, transaction: Writer, record: ProtectedTimestamp) -> None:
        await transaction.put([KEYSPACE + record.id], [_encoder.encode(record)])
        threshold = await self._store.gc_threshold_over([Span(*span) for span in record.spans])
        if record.timestamp <= threshold:
            raise ProtectionRefused(record.timestamp, threshold)


def records(reader: Reader) -> list[ProtectedTimestamp]:
    """Every committed record, expired ones included."""
    return [_decoder.decode(body) for _, body in scan_at(reader, RECORDS, MAX_TIMESTAMP)]


def low_water(reader: Reader, span: Span, now: Timestamp) -> Timestamp | None:
    """The least timestamp protected in any part of the span, or None.

    The threshold must stay below it. Call it in the step that raises the threshold. Records whose
    transactions are under way count too, and one that is being moved or released still protects
    where it stood.
    """
    protected = [
        record.timestamp
        for record in _written(reader)
        if record.covers(span) and not record.expired(now)
    ]
    return min(protected, default=None)


def _written(reader: Reader) -> Iterator[ProtectedTimestamp]:
    for _, body in scan_at(reader, RECORDS, MAX_TIMESTAMP):
        yield _decoder.decode(body)
    for _, intent in intents_in(reader, RECORDS):
        written = body_of(intent.value)
        if written is not None:
            yield _decoder.decode(written)
