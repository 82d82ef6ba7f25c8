"""The unresolved-intent queue: which transactions still hold a range's resolved timestamp back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sortedcontainers import SortedSet

from ..clock import ZERO, Timestamp


@dataclass(slots=True)
class UnresolvedTransaction:
    """A transaction with `intent_count` unresolved intents in the range, none below `timestamp`."""

    timestamp: Timestamp
    intent_count: int


class UnresolvedIntents:
    """Transactions by id, and in order of (timestamp, id), with a count of intents each.

    It keeps no keys, so it costs O(transactions), not O(intents). The order serves the oldest
    transaction; the map serves one whose timestamp moves.

        WriteIntent(x, 100, [a, b])    {x: 100, 2}            oldest 100
        WriteIntent(y, 110, [c])       {x: 100, 2; y: 110, 1} oldest 100
        UpdateIntent(x, 120)           {y: 110, 1; x: 120, 2} oldest 110
        CommitIntent(y, 110, [c])      {x: 120, 2}            oldest 120

    Counts may be negative until `scanned` is called: while the lock table is scanned at the
    processor's start index, later entries resolve intents that the scan has not reached. From then
    on every decrement has its increment before it, and a count that reaches zero is the end of the
    transaction here. A decrement for an unknown transaction then changes nothing: the transaction
    was dropped as aborted, and its intents are being cleaned up.
    """

    def __init__(self) -> None:
        self._transactions: dict[bytes, UnresolvedTransaction] = {}
        self._order: SortedSet[tuple[Timestamp, bytes]] = SortedSet()
        self._negative_allowed = True

    def __len__(self) -> int:
        return len(self._transactions)

    @property
    def oldest(self) -> Timestamp | None:
        """The oldest timestamp at which an intent may stand."""
        return self._order[0][0] if self._order else None

    def add(self, transaction_id: bytes, timestamp: Timestamp, count: int) -> None:
        """The transaction has `count` more intents (fewer, if negative), all at `timestamp`."""
        known = self._transactions.get(transaction_id)
        if known is None:
            if count > 0 or self._negative_allowed:
                self._insert(transaction_id, timestamp, count)
            return
        intent_count = known.intent_count + count
        if intent_count == 0 or (intent_count < 0 and not self._negative_allowed):
            # Below zero: more is cleaned up of an aborted transaction than came after its end.
            self.drop(transaction_id)
            return
        known.intent_count = intent_count
        self._forward(transaction_id, known, timestamp)

    def forward(self, transaction_id: bytes, timestamp: Timestamp) -> None:
        """The transaction's intents stand at or above `timestamp`. Unknown ones stay unknown."""
        known = self._transactions.get(transaction_id)
        if known is not None:
            self._forward(transaction_id, known, timestamp)

    def drop(self, transaction_id: bytes) -> None:
        """Forgets a transaction whose intents are all gone, or will never commit."""
        known = self._transactions.pop(transaction_id, None)
        if known is not None:
            self._order.remove((known.timestamp, transaction_id))

    def scanned(self) -> None:
        """The lock table is merged: from here on no count is negative."""
        assert self._negative_allowed
        self._negative_allowed = False
        negative = [
            (transaction_id.hex(), known.intent_count)
            for transaction_id, known in self._transactions.items()
            if known.intent_count < 0
        ]
        assert not negative, negative

    def before(self, timestamp: int, limit: int) -> list[bytes]:
        """Up to `limit` transactions older than `timestamp`, oldest first."""
        old: list[bytes] = []
        for at, transaction_id in self._order:
            if at >= timestamp or len(old) == limit:
                break
            old.append(transaction_id)
        return old

    def transactions(self) -> Iterable[tuple[bytes, UnresolvedTransaction]]:
        """Every transaction with what is known of it, in no order."""
        return self._transactions.items()

    def check_invariants(self) -> None:
        """Order and map agree, and no count is zero, or negative once that is over."""
        expected = sorted((known.timestamp, key) for key, known in self._transactions.items())
        assert list(self._order) == expected, (list(self._order), expected)
        for transaction_id, known in self._transactions.items():
            assert known.intent_count != 0, transaction_id.hex()
            assert known.intent_count > 0 or self._negative_allowed, transaction_id.hex()

    def _insert(self, transaction_id: bytes, timestamp: Timestamp, count: int) -> None:
        self._transactions[transaction_id] = UnresolvedTransaction(timestamp, count)
        self._order.add((timestamp, transaction_id))

    def _forward(
        self, transaction_id: bytes, known: UnresolvedTransaction, timestamp: Timestamp
    ) -> None:
        if timestamp > known.timestamp:
            self._order.remove((known.timestamp, transaction_id))
            known.timestamp = timestamp
            self._order.add((timestamp, transaction_id))

    def __repr__(self) -> str:
        held = " ".join(
            f"{transaction_id[:4].hex()}@{at}x{self._transactions[transaction_id].intent_count}"
            for at, transaction_id in self._order
        )
        return f"<UnresolvedIntents {held or 'empty'}>"


ABORTED_INTENT = ZERO
"""The timestamp to `add` with when intents were removed: it says nothing of where others stand."""
