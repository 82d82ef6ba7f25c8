"""The transaction of each key that bears an intent."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .record import TransactionRecord

PIECES = 256
"""Dictionaries that keys are dealt to. A dictionary that grows moves all of its keys in one step of
the loop: a single one takes 20 ms at 175,000 keys, a piece a tenth of a millisecond at a million.
"""

_LAST = PIECES - 1
assert PIECES & _LAST == 0, "the piece of a key is the last bits of its hash"


class IntentTable:
    """The keys with intents of all transactions. `holders` are the transactions that have intents:
    few, where the keys may be a million."""

    def __init__(self) -> None:
        self.holders: dict[TransactionRecord, None] = {}
        self._pieces: list[dict[bytes, TransactionRecord]] = [{} for _ in range(PIECES)]

    def get(self, key: bytes) -> TransactionRecord | None:
        return self._pieces[hash(key) & _LAST].get(key)

    def __getitem__(self, key: bytes) -> TransactionRecord:
        return self._pieces[hash(key) & _LAST][key]

    def __len__(self) -> int:
        return sum(holder.intents.count for holder in self.holders)

    def items(self) -> Iterator[tuple[bytes, TransactionRecord]]:
        """Each key with its transaction, in no order."""
        for piece in self._pieces:
            yield from piece.items()

    def among(self, keys: Collection[bytes]) -> list[bytes]:
        """Returns those of the keys that bear intents."""
        if not self.holders:
            return []
        if len(self.holders) < len(keys):
            least, greatest = min(keys), max(keys)
            if not any(each.intents.may_lie_between(least, greatest) for each in self.holders):
                return []
        pieces = self._pieces
        return [key for key in keys if key in pieces[hash(key) & _LAST]]

    def add(self, record: TransactionRecord, sequence: int, keys: list[bytes]) -> None:
        """Adds intents of the transaction on keys that bear none. The list is given away."""
        if not keys:
            return
        pieces = self._pieces
        for key in keys:
            holder = pieces[hash(key) & _LAST].setdefault(key, record)
            assert holder is record, (key, record, holder)
        record.intents.append(sequence, keys)
        self.holders[record] = None

    def remove(self, record: TransactionRecord, keys: Collection[bytes]) -> None:
        """Removes the intents on the keys, which the record has dropped already."""
        pieces = self._pieces
        for key in keys:
            holder = pieces[hash(key) & _LAST].pop(key)
            assert holder is record, (key, record, holder)
        if not record.intents.count:
            self.holders.pop(record, None)

    def check_invariants(self) -> None:
        """Table and records agree."""
        known = dict(self.items())
        assert set(known.values()) == set(self.holders), self.holders
        assert known == {key: holder for holder in self.holders for key in holder.intents}, known
        assert len(known) == len(self), (known, self.holders)
        for holder in self.holders:
            assert all(known.get(key) is holder for key in holder.intents.rewritten), holder
