"""The transaction of each key that bears an intent."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..dealt_keys import DealtKeys
from .record import TransactionRecord


class IntentTable:
    """The keys with intents of all transactions. `holders` are the transactions that have intents:
    few, where the keys may be a million."""

    def __init__(self) -> None:
        self.holders: dict[TransactionRecord, None] = {}
        self._records: dict[bytes, TransactionRecord] = {}  # the same, by id
        self._ids: DealtKeys[bytes] = DealtKeys()

    def get(self, key: bytes) -> TransactionRecord | None:
        holder_id = self._ids.get(key)
        return None if holder_id is None else self._records[holder_id]

    def __getitem__(self, key: bytes) -> TransactionRecord:
        return self._records[self._ids[key]]

    def __len__(self) -> int:
        return sum(holder.intents.count for holder in self.holders)

    def items(self) -> Iterator[tuple[bytes, TransactionRecord]]:
        """Each key with its transaction, in no order."""
        for key, holder_id in self._ids.items():
            yield key, self._records[holder_id]

    def among(self, keys: Collection[bytes]) -> list[bytes]:
        """Returns those of the keys that bear intents."""
        if not self.holders:
            return []
        if len(self.holders) < len(keys):
            least, greatest = min(keys), max(keys)
            if not any(each.intents.may_lie_between(least, greatest) for each in self.holders):
                return []
        return self._ids.among(keys)

    def add(self, record: TransactionRecord, sequence: int, keys: list[bytes]) -> None:
        """Adds intents of the transaction on keys that bear none. The list is given away."""
        if not keys:
            return
        assert not self._ids.among(keys), record
        self._ids.put(keys, record.id)
        record.intents.append(sequence, keys)
        self.holders[record] = None
        self._records[record.id] = record

    def remove(self, record: TransactionRecord, keys: Collection[bytes]) -> None:
        """Removes the intents on the keys, which the record has dropped already."""
        removed = self._ids.remove(keys, record.id)
        assert removed == len(keys), (record, removed, len(keys))
        if not record.intents.count:
            self.holders.pop(record, None)
            self._records.pop(record.id, None)

    def check_invariants(self) -> None:
        """Table and records agree."""
        known = dict(self.items())
        assert set(known.values()) == set(self.holders), self.holders
        assert known == {key: holder for holder in self.holders for key in holder.intents}, known
        assert len(known) == len(self), (known, self.holders)
        for holder in self.holders:
            rewritten = holder.intents.rewritten.items()
            assert all(known.get(key) is holder for key, _ in rewritten), holder
