"""What DML does to keys: puts, deletions, and keys that must not be there.

    INSERT    put (k, row), k absent
    UPSERT    put (k, row)
    UPDATE    put (k, row); where the key moves also delete (old k), new k absent
    DELETE    delete (k)

The same change is carried out in the evaluating step of a one-phase commit, or through a
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...catalog.errors import SQLError
from ...catalog.row_codec import RowCodec
from ...catalog.show_create import duplicate_key
from ...kvlayer.txn import Evaluation, Transaction

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


@dataclass(slots=True)
class Mutation:
    """Writes of one statement. No key is written twice; deletions happen before puts."""

    codec: RowCodec
    keys: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    deletes: list[bytes] = field(default_factory=list)
    absent: list[bytes] = field(default_factory=list)

    def check_distinct(self) -> None:
        """Raises 23505 where the statement writes two rows of one key."""
        if len(self.keys) > 1 and len(set(self.keys)) != len(self.keys):
            seen: set[bytes] = set()
            for key in self.keys:
                if key in seen:
                    raise self.duplicate(key)
                seen.add(key)

    def keep_last(self) -> None:
        """Of several rows with one key the last stays, as if they had been written in turn."""
        if len(self.keys) > 1:
            last = dict(zip(self.keys, self.bodies, strict=True))
            self.keys, self.bodies = list(last), list(last.values())

    def apply(self, evaluation: Evaluation) -> None:
        """In one phase. Raises 23505, having written nothing."""
        if self.deletes:
            evaluation.delete(self.deletes)
        if self.absent:
            found = evaluation.first_existing(self.absent)
            if found is not None:
                raise self.duplicate(self.absent[found])
        if self.keys:
            evaluation.put(self.keys, self.bodies)

    async def apply_in(self, transaction: Transaction) -> None:
        """Through a transaction. Raises 23505; the transaction is then for rolling back."""
        if self.deletes:
            await transaction.delete(self.deletes)
        await lock_first(transaction, self.absent)
        await self._check_absent(transaction)
        if self.keys:
            await transaction.put(self.keys, self.bodies)

    async def _check_absent(self, transaction: Transaction) -> None:
        if len(self.absent) > POINTS_MAX:
            found = await transaction.first_existing(self.absent)
            if found is not None:
                raise self.duplicate(self.absent[found])
            return
        for key in self.absent:
            if await transaction.get(key) is not None:
                raise self.duplicate(key)

    def duplicate(self, key: bytes) -> SQLError:
        return duplicate_key(self.codec.descriptor, self.codec.decode_key(key))


def moved(
    codec: RowCodec, old: Sequence[bytes], keys: list[bytes], bodies: list[bytes]
) -> Mutation:
    """The mutation of an UPDATE: `keys[i]` is where the row of `old[i]` is from now on."""
    before = set(old)
    after = set(keys)
    mutation = Mutation(
        codec,
        keys=keys,
        bodies=bodies,
        deletes=[key for key in old if key not in after],
        absent=[key for key in keys if key not in before],
    )
    mutation.check_distinct()
    return mutation
