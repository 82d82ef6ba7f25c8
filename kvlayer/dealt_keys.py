"""Dictionaries by key that may come to hold a million keys, with no step that is long for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

WHOLE_MAX = 4096
"""Up to so many keys are one dictionary; more are dealt to `PIECES`. A dictionary that grows moves
all of its keys in one step of the loop: 175,000 take 20 ms, a piece a tenth of a millisecond at a
million."""

PIECES = 256
_LAST = PIECES - 1
assert PIECES & _LAST == 0, "the piece of a key is the last bits of its hash"


class DealtKeys(Generic[T]):
    """Keys with a value each.

    Values are best bytes or numbers: Python's collector passes over a dictionary without objects
    that may refer to others. Three million keys would be a tenth of a second to it.
    """

    __slots__ = ("_last", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[dict[bytes, T]] = [{}]
        self._last = 0

    def get(self, key: bytes) -> T | None:
        return self._pieces[hash(key) & self._last].get(key)

    def __getitem__(self, key: bytes) -> T:
        return self._pieces[hash(key) & self._last][key]

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    def items(self) -> Iterator[tuple[bytes, T]]:
        """Each key with its value: in order of their first writing while they are one dictionary,
        else in no order."""
        for piece in self._pieces:
            yield from piece.items()

    def among(self, keys: Collection[bytes]) -> list[bytes]:
        """Returns those of the keys that are here."""
        pieces, last = self._pieces, self._last
        if not last and pieces[0].keys().isdisjoint(keys):
            return []
        return [key for key in keys if key in pieces[hash(key) & last]]

    def put(self, keys: Collection[bytes], value: T) -> list[bytes]:
        """Gives the keys a value. Returns those that had none, or another."""
        pieces, last = self._pieces, self._last
        if not last and pieces[0].keys().isdisjoint(keys):
            new = dict.fromkeys(keys, value)
            pieces[0].update(new)
            changed = list(new)
        else:
            changed = []
            for key in keys:
                piece = pieces[hash(key) & last]
                if piece.get(key) != value:
                    piece[key] = value
                    changed.append(key)
        if not last and len(pieces[0]) > WHOLE_MAX:
            self._deal()
        return changed

    def remove(self, keys: Collection[bytes], value: T) -> int:
        """Removes those of the keys that have the value, and returns their number."""
        pieces, last, removed = self._pieces, self._last, 0
        for key in keys:
            piece = pieces[hash(key) & last]
            if piece.get(key) == value:
                del piece[key]
                removed += 1
        if last and not any(pieces):
            self._pieces, self._last = [{}], 0
        return removed

    def pop(self, key: bytes) -> T | None:
        """Removes the key, and returns its value; None where it is not here."""
        return self._pieces[hash(key) & self._last].pop(key, None)

    def _deal(self) -> None:
        whole = self._pieces[0]
        self._pieces, self._last = [{} for _ in range(PIECES)], _LAST
        for key, value in whole.items():
            self._pieces[hash(key) & _LAST][key] = value
