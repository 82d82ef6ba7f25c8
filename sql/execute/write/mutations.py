"""Mutations, the effect of DML on keys: puts, deletions, and keys that must be absent.

    INSERT    put (k, row), k absent
    UPSERT    put (k, row)
    UPDATE    put (k, row); where the key moves also delete (old k), new k absent
    DELETE    delete (k)

and, in a table with indexes, the entries that the old rows have and the new ones do not are
deleted, and those of the new rows put; an entry of a unique index must be absent, unless it is an
old row's own. The same change is carried out in the evaluating step of a one-phase commit, or
through a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.rights.key_errors import duplicate_key, duplicate_values
from ....catalog.rows.index_codec import IndexCodec, index_codec_for
from ....catalog.rows.row_codec import RowCodec
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Evaluation, Row, Transaction
from ....kvlayer.process.fibre import give_way, in_slices_where
from .steps import (
    BYTES_PER_STEP,
    LISTED_PER_STEP,
    in_steps,
    listed,
    long_bodies,
    put_each,
    read_each,
)

_decode = msgspec.msgpack.Decoder(list).decode
_encode = msgspec.msgpack.Encoder().encode

LOCKED_FIRST_MAX = 256
"""Keys that a statement locks before it reads them: more are a load, and would cost it a third."""


async def lock_first(transaction: Transaction, keys: Sequence[bytes]) -> None:
    """Locks keys that are about to be read and then written.

    Two transactions that both read a row before either writes it cannot both be right. In turn
    they can, and a row that the first one inserted is a duplicate for the second, not a conflict.
    """
    if len(keys) <= LOCKED_FIRST_MAX:
        await transaction.lock(keys)


POINTS_MAX = 16
"""New keys of one statement that are looked for one by one. More are looked for together, which
also counts as a read of what lies between them."""

KEYS_PER_STEP = 256
"""Old rows that are read in one step of the loop."""

ABSENT_PER_STEP = 2000
"""New keys that are looked for together: where all are new that costs one seek."""


def _set_of(keys: Sequence[bytes]) -> set[bytes]:
    return set(listed(keys, lambda some: some))


def _without(keys: Sequence[bytes], others: set[bytes]) -> list[bytes]:
    """Returns the keys that are not among the others, in order."""
    return list(listed(keys, lambda some: [key for key in some if key not in others]))


def has_references(table: TableDescriptor) -> bool:
    """Whether writing rows of the table takes looking at others."""
    return bool(table.foreign_keys or table.referenced_by)


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row's key and body before and after a statement; None where there was or is none."""

    old: Row | None
    new: Row | None


@dataclass(slots=True)
class Mutation:
    """Writes of one statement. No key is written twice; deletions happen before puts.

    `carried` are ids of columns that no statement knows: a row that is replaced keeps its values
    of them. `origins` says under which key a row was that moves to another.
    """

    codec: RowCodec
    keys: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    absent: list[bytes] = field(default_factory=list)
    carried: tuple[int, ...] = ()
    origins: dict[bytes, bytes] = field(default_factory=dict)

    def check_distinct(self) -> None:
        """Raises 23505 where the statement writes two rows of one key."""
        if len(self.keys) > 1 and len(_set_of(self.keys)) != len(self.keys):
            seen: set[bytes] = set()
            for key in self.keys:
                if key in seen:
                    raise self.duplicate(key)
                seen.add(key)

    def insert_only(self) -> None:
        """From here on a key that is there, or comes twice, is an error. Raises 23505."""
        self.check_distinct()
        self.absent = self.keys

    def keep_last(self) -> None:
        """Keeps the last of several rows with one key, as if they had been written in turn."""
        if len(self.keys) > 1:
            last = dict(zip(self.keys, self.bodies, strict=True))
            self.keys, self.bodies = list(last), list(last.values())

    def move_from(self, old: Sequence[bytes]) -> None:
        """From here on it is that of an UPDATE: `keys[i]` is where the row of `old[i]` is then."""
        self.deletes = _without(old, _set_of(self.keys))
        self.absent = _without(self.keys, _set_of(old))
        pairs = list(zip(self.keys, old, strict=True))
        self.origins = dict(listed(pairs, lambda some: some))
        self.check_distinct()

    @property
    def _reads_old(self) -> bool:
        """Whether it matters what the rows were before."""
        table = self.codec.descriptor
        return bool(self.carried or table.maintained_indexes or has_references(table))

    @property
    def _new_alone(self) -> bool:
        """Whether the mutation is a few new rows and nothing else."""
        return self.absent is self.keys and 0 < len(self.keys) <= POINTS_MAX

    def _old_keys(self) -> list[bytes]:
        return [*self.deletes, *_without(self.keys, _set_of(self.absent))]

    def apply(self, evaluation: Evaluation) -> None:
        """In one phase. Raises 23505, having written nothing."""
        assert not has_references(self.codec.descriptor), "foreign keys take a transaction"
        old: dict[bytes, bytes] = {}
        if self._reads_old:
            keys = self._old_keys()
            old = _present(keys, evaluation.get_each(keys))
        if self.deletes:
            evaluation.delete(self.deletes)
        if self.absent:
            found = evaluation.first_existing(self.absent)
            if found is not None:
                raise self.duplicate(self.absent[found])
        bodies = self._carried_over(old)
        entries = self._entries(old, bodies)
        for key, (codec, body) in entries.unique.items():
            if evaluation.get(key) is not None:
                raise duplicate_values(self.codec.descriptor, codec, body)
        if entries.deletes:
            evaluation.delete(entries.deletes)
        if self.keys:
            evaluation.put([*self.keys, *entries.puts], [*bodies, *entries.puts.values()])

    async def apply_in(self, transaction: Transaction) -> list[RowChange]:
        """Through a transaction. Raises 23505; the transaction is then for rolling back.

        Returns what foreign keys have to look at (`foreign_keys.write_in`): nothing in a table
        without any.
        """
        old: dict[bytes, bytes] = {}
        if self._reads_old:
            many = len(self.keys) + len(self.deletes) > LISTED_PER_STEP
            keys = await in_slices_where(many, self._old_keys)
            old = _present(keys, await read_each(transaction, keys, KEYS_PER_STEP))
        elif self._new_alone and await transaction.insert(self.keys, self.bodies):
            return []
        if self.deletes:
            await transaction.delete(self.deletes)
        if self.absent:
            await lock_first(transaction, self.absent)
            await self._check_absent(transaction)
        many = long_bodies([*old.values(), *self.bodies], KEYS_PER_STEP)
        bodies = await in_slices_where(many, lambda: self._carried_over(old))
        keys, written = self.keys, bodies
        if self.codec.descriptor.maintained_indexes:
            entries = await in_slices_where(many, lambda: self._entries(old, bodies))
            for key, (codec, body) in entries.unique.items():
                if await transaction.get(key) is not None:
                    raise duplicate_values(self.codec.descriptor, codec, body)
            if entries.deletes:
                await transaction.delete(entries.deletes)
            keys = [*keys, *entries.puts]
            written = [*bodies, *entries.puts.values()]
        if keys:
            await put_each(transaction, keys, written)
        return self._changes(old, bodies) if has_references(self.codec.descriptor) else []

    def _changes(self, old: Mapping[bytes, bytes], bodies: Sequence[bytes]) -> list[RowChange]:
        """Each row as it was and as it is."""
        left, absent = dict(old), set(self.absent)
        changes: list[RowChange] = []
        for key, body in zip(self.keys, bodies, strict=True):
            origin = self.origins.get(key, b"" if key in absent else key)
            before = left.pop(origin, None)
            changes.append(RowChange(None if before is None else (origin, before), (key, body)))
        return changes + [RowChange(row, None) for row in left.items()]

    async def _check_absent(self, transaction: Transaction) -> None:
        if len(self.absent) > POINTS_MAX:
            keys = sorted(self.absent)
            for start in range(0, len(keys), ABSENT_PER_STEP):
                if start:
                    await asyncio.sleep(0)
                some = keys[start : start + ABSENT_PER_STEP]
                found = await transaction.first_existing(some)
                if found is not None:
                    raise self.duplicate(some[found])
            return
        for key in self.absent:
            if await transaction.get(key) is not None:
                raise self.duplicate(key)

    def _carried_over(self, old: Mapping[bytes, bytes]) -> list[bytes]:
        """The new bodies, with the old rows' values of carried columns."""
        if not self.carried or not old:
            return self.bodies
        return [
            body
            if (before := old.get(self.origins.get(key, key))) is None
            else _with_values_of(body, before, self.carried)
            for key, body in in_steps(list(zip(self.keys, self.bodies, strict=True)))
        ]

    def _entries(self, old: Mapping[bytes, bytes], bodies: Sequence[bytes]) -> _Entries:
        """The changes of every index's entries. Raises SQLError 23505 for two rows of one entry."""
        changes = _Entries()
        table = self.codec.descriptor
        for index in table.maintained_indexes:
            codec = index_codec_for(table, index)
            removed = set()
            for body in old.values():
                give_way(1 + len(body) // BYTES_PER_STEP)
                removed.add(codec.entry(body)[0])
            added: dict[bytes, bytes] = {}
            if index.written:
                for body in bodies:
                    give_way(1 + len(body) // BYTES_PER_STEP)
                    key, entry = codec.entry(body)
                    if key in added:
                        raise duplicate_values(table, codec, body)
                    added[key] = entry
                    if index.unique and key not in removed:
                        changes.unique[key] = (codec, body)
            changes.deletes += [key for key in removed if key not in added]
            changes.puts.update(added)
        return changes

    def duplicate(self, key: bytes) -> SQLError:
        return duplicate_key(self.codec.descriptor, self.codec.decode_key(key))


def _present(keys: Sequence[bytes], bodies: Sequence[bytes | None]) -> dict[bytes, bytes]:
    return {key: body for key, body in zip(keys, bodies, strict=True) if body is not None}


@dataclass(slots=True)
class _Entries:
    """Entries of indexes to delete and to put; those in `unique` must not be there yet."""

    deletes: list[bytes] = field(default_factory=list)
    puts: dict[bytes, bytes] = field(default_factory=dict)
    unique: dict[bytes, tuple[IndexCodec, bytes]] = field(default_factory=dict)


def _with_values_of(body: bytes, old: bytes, ids: Sequence[int]) -> bytes:
    row, before = _decode(body), _decode(old)
    had = dict(zip(before[::2], before[1::2], strict=True))
    for place in range(0, len(row), 2):
        if row[place] in ids and row[place] in had:
            row[place + 1] = had[row[place]]
    return _encode(row)
