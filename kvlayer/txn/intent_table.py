"""Whose intents keys bear, of all transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .record import TransactionRecord

PIECES = 256
"""Dictionaries that keys are dealt to. One that grows moves all that it has in one step of the
loop: a single one takes 20 ms at 175,000 keys, one of these a tenth of a millisecond at a million.
"""

_LAST = PIECES - 1
assert PIECES & _LAST == 0, "the piece of a key is the last bits of its hash"


class IntentTable:
    """The transaction of each key that bears an intent. `holders` are those that have any: few,
    where the keys may be a million."""

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
        """Those of the keys that bear intents."""
        if not self.holders:
            return []
        if len(self.holders) < len(keys):
            least, greatest = min(keys), max(keys)
            if not any(each.intents.may_lie_between(least, greatest) for each in self.holders):
                return []
        pieces = self._pieces
        return [key for key in keys if key in pieces[hash(key) & _LAST]]

    def add(self, record: TransactionRecord, sequence: int, keys: list[bytes]) -> None:
        """The transaction wrote intents on the keys, which bore none. The list is given away."""
        if not keys:
            return
        pieces = self._pieces
        for key in keys:
            holder = pieces[hash(key) & _LAST].setdefault(key, record)
            assert holder is record, (key, record, holder)
        record.intents.append(sequence, keys)
        self.holders[record] = None

    def remove(self, record: TransactionRecord, keys: Collection[bytes]) -> None:
        """The keys, which the transaction has dropped, bear its intents no more."""
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
