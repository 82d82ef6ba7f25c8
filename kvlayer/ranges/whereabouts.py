"""In which ranges a transaction has intents."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..command import WriteIntent
from .division import Parts
from .range import Range


class Whereabouts:
    """The ranges of each running transaction, for operations that name no key.

    A push or an abort is one operation on the transaction, and every feed that counts its intents
    must hear of it. What is known here may be too much (a range whose half with the intents was
    split off), and then a range hears of a transaction that it does not know, which changes
    nothing; it is never too little.

    A store of one range asks nothing and notes nothing. The step of its first split says of every
    transaction that has intents that they are in that range (`begin`).
    """

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: dict[bytes, dict[Range, None]] = {}

    def of(self, transaction_id: bytes) -> Collection[Range]:
        return self._ranges.get(transaction_id, {})

    def note(self, parts: Parts) -> None:
        """A command wrote intents."""
        for found, operations in parts.items():
            for op in operations:
                if type(op) is WriteIntent:
                    self._ranges.setdefault(op.transaction_id, {})[found] = None

    def forget(self, transaction_id: bytes) -> None:
        """The transaction's last intent is resolved."""
        self._ranges.pop(transaction_id, None)

    def begin(self, transaction_ids: Iterable[bytes], only: Range) -> None:
        """The store is about to have more ranges than this one."""
        self._ranges = {transaction_id: {only: None} for transaction_id in transaction_ids}

    def replace(self, old: Collection[Range], new: Collection[Range]) -> None:
        """Moves whoever was in one of the old ranges into each of the new ones."""
        for ranges in self._ranges.values():
            if not ranges.keys().isdisjoint(old):
                for gone in old:
                    ranges.pop(gone, None)
                ranges.update(dict.fromkeys(new))
