"""Descriptors in the store: reading them at a timestamp, and publishing the next version.

`publish` is the only writer of `system.descriptor` after bootstrap, and so the one place where the
invariants are kept: the version numbers, the two-version invariant, the lock's rules, the names.
What was dropped is removed when nobody can need it any more (`garbage_collector`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from functools import lru_cache
from typing import Protocol

from ...kvlayer.access import Evaluation, StoreAccess
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.keys import encode_int
from ...kvlayer.span import Span
from ...kvlayer.txn import Transaction
from ..descriptors.descriptor import (
    DatabaseDescriptor,
    Descriptor,
    SchemaDescriptor,
    TableDescriptor,
)
from ..descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from ..descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ..descriptors.publish_rules import check_successor
from ..descriptors.system_tables import DESCRIPTOR, DESCRIPTOR_ID_SEQUENCE, ID_SEQUENCE, NAMESPACE
from ..rows.row_codec import codec_for
from ..values.errors import SQLError
from .catalog_changes import CatalogChanges
from .lease_rows import leases_of
from .live_leases import check_two_versions

DECODED_MAX = 256
"""Versions of descriptors that are kept as they were decoded last: a table of a few columns takes
as long to decode as fifty of its rows."""

NAMES_MAX = 1024
"""Names whose keys and ids are kept as they were encoded last: each new statement asks for some."""

_descriptors = codec_for(DESCRIPTOR)
_namespace = codec_for(NAMESPACE)
_sequence = codec_for(ID_SEQUENCE)


class DescriptorReader(Protocol):
    """A transaction, or a snapshot at a timestamp."""

    async def get(self, key: bytes) -> bytes | None: ...

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None: ...

    async def scan(self, span: Span) -> list[tuple[bytes, bytes]]: ...

    def scan_slices(self, span: Span) -> AsyncGenerator[list[tuple[bytes, bytes]], None]: ...


class DescriptorStore:
    """Reads and publishes descriptors.

    A descriptor's modification time is its version's commit timestamp. Where a transaction reads
    what it has itself published, it is where the transaction would commit as it stands.
    """

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    # Reading

    async def read(self, reader: DescriptorReader, descriptor_id: int) -> Descriptor | None:
        """The descriptor, dropped ones included; None for an id that never was."""
        key = descriptor_key(descriptor_id)
        found = await reader.get_with_timestamp(key)
        return None if found is None else decode_stored(key, *found)

    async def read_at(self, descriptor_id: int, at: Timestamp) -> Descriptor | None:
        """The version that is canonical at `at`."""
        return await self.read(self._store.snapshot(at), descriptor_id)

    async def all_at(self, at: Timestamp, *, dropped: bool = False) -> list[Descriptor]:
        """Every descriptor as of `at`; those that are dropped only if they are asked for."""
        reader = self._store.snapshot(at)
        found: list[Descriptor] = []
        for key, _ in await reader.scan(DESCRIPTOR.primary_span):
            stored = await reader.get_with_timestamp(key)
            assert stored is not None, "one snapshot answers alike"
            descriptor = decode_stored(key, *stored)
            if dropped or not descriptor.dropped:
                found.append(descriptor)
        return found

    async def versions(
        self, descriptor_ids: Iterable[int], after: Timestamp, upto: Timestamp
    ) -> list[Descriptor]:
        """The versions published in `(after, upto]`, in the order of their modification times."""
        wanted = {descriptor_key(descriptor_id) for descriptor_id in descriptor_ids}
        found: list[Descriptor] = []
        async for changes in self._store.versions(DESCRIPTOR.primary_span, after, upto):
            for key, timestamp, body in changes:
                if key in wanted and body is not None:  # who is removed was dropped before
                    found.append(decode_stored(key, body, timestamp))
        found.sort(key=lambda descriptor: descriptor.modification_time)
        return found

    async def lookup(
        self, reader: DescriptorReader, parent_id: int, parent_schema_id: int, name: str
    ) -> int | None:
        """The id behind a name, or None."""
        key = _name_key(parent_id, parent_schema_id, name)
        body = await reader.get(key)
        return None if body is None else _named_id(key, body)

    async def resolve_schema(
        self, reader: DescriptorReader, database: str, schema: str
    ) -> tuple[int, int]:
        """The ids of a database and a schema in it. Raises SQLError 3D000 or 3F000."""
        database_id = await self.lookup(reader, 0, 0, database)
        if database_id is None:
            raise SQLError("3D000", f'database "{database}" does not exist')
        schema_id = await self.lookup(reader, database_id, 0, schema)
        if schema_id is None:
            raise SQLError("3F000", f'schema "{schema}" does not exist in database "{database}"')
        return database_id, schema_id

    async def resolve(
        self, reader: DescriptorReader, database: str, schema: str, name: str
    ) -> TableDescriptor | None:
        """The table of that name. Raises SQLError 3D000 or 3F000 for what it should be in."""
        database_id, schema_id = await self.resolve_schema(reader, database, schema)
        table_id = await self.lookup(reader, database_id, schema_id, name)
        if table_id is None:
            return None
        table = await self.read(reader, table_id)
        return table if isinstance(table, TableDescriptor) else None

    async def children(
        self, reader: DescriptorReader, parent_id: int, parent_schema_id: int
    ) -> list[tuple[str, int]]:
        """Names and ids of what stands directly under a parent, by name."""
        prefix = NAMESPACE.primary_span.start + encode_int(parent_id) + encode_int(parent_schema_id)
        rows = await reader.scan(Span.prefix(prefix))
        decoded = [_namespace.decode_row(key, body) for key, body in rows]
        return [(str(name), _int(child_id)) for _, _, name, child_id in decoded]

    # Publishing

    async def allocate_id(self) -> int:
        """An id for a new descriptor, which no other will ever have: it is lost with a transaction
        that is rolled back. One that is open would keep all others from creating anything."""
        key = _sequence.encode_key((DESCRIPTOR_ID_SEQUENCE,))

        def evaluate(evaluation: Evaluation) -> int:
            body = evaluation.get(key)
            assert body is not None, "the store was not bootstrapped"
            allocated = _int(_sequence.decode_row(key, body)[1])
            _, following = _sequence.encode_row((DESCRIPTOR_ID_SEQUENCE, allocated + 1))
            evaluation.put([key], [following])
            return allocated

        allocated, _ = await self._store.one_phase(evaluate)
        return allocated

    def next_version(self, transaction: Transaction, descriptor: Descriptor) -> int:
        """The version number that a change to `descriptor`, as the transaction reads it, bears."""
        return CatalogChanges.of(transaction).next_version(descriptor)

    async def publish(self, transaction: Transaction, descriptor: Descriptor) -> None:
        """Writes the next version of a descriptor, or the first.

        Raises StaleDescriptor (made from another version than the newest), DescriptorLeased (the
        two-version invariant), and SQLError: 57000 for a change of a locked table, 25001 for a
        lock change beside another change, 42P07 and its like for a name that is taken. The rule
        that a lock change is alone is checked once more when the transaction commits.
        """
        changes = CatalogChanges.of(transaction)
        current = await self.read(transaction, descriptor.id)
        before = changes.before(descriptor.id, current)
        check_successor(before, descriptor)
        changes.check_publish(before, descriptor)
        if before is not None:
            await check_two_versions(transaction, before.id, before.name, before.version)
        await self._write_name(transaction, current, descriptor)
        key, body = _descriptors.encode_row((descriptor.id, encode_descriptor(descriptor)))
        await transaction.put([key], [body])
        changes.record(before, descriptor)

    async def remove(self, descriptor_id: int) -> bool:
        """Deletes the row of a dropped descriptor, whose id is never used again.

        False where somebody holds a lease on it still. Who reads the past finds its versions for
        as long as those of any descriptor.
        """
        key = descriptor_key(descriptor_id)

        def evaluate(evaluation: Evaluation) -> bool:
            body = evaluation.get(key)
            if body is None or evaluation.scan(leases_of(descriptor_id), limit=1):
                return False
            assert decode_stored(key, body, ZERO).dropped, descriptor_id
            evaluation.delete((key,))
            return True

        removed, _ = await self._store.one_phase(evaluate)
        return removed

    async def _write_name(
        self, transaction: Transaction, current: Descriptor | None, after: Descriptor
    ) -> None:
        old = None if current is None or current.dropped else _name_row(current)
        new = None if after.dropped else _name_row(after)
        if old == new:
            return
        if new is not None:
            if await transaction.get(new[0]) is not None:
                raise name_taken(after)
            await transaction.put([new[0]], [new[1]])
        if old is not None and (new is None or old[0] != new[0]):
            await transaction.delete([old[0]])


def descriptor_key(descriptor_id: int) -> bytes:
    """The key of a descriptor, under which its versions are."""
    return _descriptors.encode_key((descriptor_id,))


@lru_cache(maxsize=DECODED_MAX)
def decode_stored(key: bytes, body: bytes, timestamp: Timestamp) -> Descriptor:
    """The descriptor in a row of `system.descriptor`, which was committed at `timestamp`."""
    data = _descriptors.decode_row(key, body)[1]
    assert isinstance(data, bytes), key
    return decode_descriptor(data, timestamp)


def name_taken(descriptor: Descriptor) -> SQLError:
    match descriptor:
        case TableDescriptor():
            return SQLError("42P07", f'relation "{descriptor.name}" already exists')
        case SchemaDescriptor():
            return SQLError("42P06", f'schema "{descriptor.name}" already exists')
        case TypeDescriptor():
            return SQLError("42710", f'type "{descriptor.name}" already exists')
        case SequenceDescriptor():
            return SQLError("42P07", f'relation "{descriptor.name}" already exists')
        case DatabaseDescriptor():
            return SQLError("42P04", f'database "{descriptor.name}" already exists')


@lru_cache(NAMES_MAX)
def _name_key(parent_id: int, parent_schema_id: int, name: str) -> bytes:
    return _namespace.encode_key((parent_id, parent_schema_id, name))


@lru_cache(NAMES_MAX)
def _named_id(key: bytes, body: bytes) -> int:
    return _int(_namespace.decode_row(key, body)[3])


def _name_row(descriptor: Descriptor) -> tuple[bytes, bytes]:
    return _namespace.encode_row(
        (descriptor.parent_id, descriptor.parent_schema_id, descriptor.name, descriptor.id)
    )


def _int(value: object) -> int:
    assert isinstance(value, int), value
    return value
