"""An engine that is read as if more had been written to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sortedcontainers import SortedDict

from ..range_tombstones import RangeTombstones
from .protocol import EngineBatch, Reader


class OverlayReader:
    """A reader's state with batches over it, in memory: nothing is written to the engine.

    For looking at a store that stopped before its engine was flushed.
    """

    def __init__(self, below: Reader, batches: Iterable[EngineBatch]) -> None:
        self._below = below
        self._over: SortedDict[bytes, bytes | None] = SortedDict()
        for batch in batches:
            self._over.update(dict.fromkeys(batch.deletes))
            self._over.update(batch.puts)
        self.range_tombstones = RangeTombstones.load(self)

    def get(self, key: bytes) -> bytes | None:
        if key in self._over:
            return self._over[key]
        return self._below.get(key)

    def get_fixed_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def first(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        return next(self.scan(start, end), None)

    def first_each(self, spans: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes] | None]:
        return [self.first(start, end) for start, end in spans]

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        over = list(self._over.irange(start, end, inclusive=(True, False), reverse=not reverse))
        for key, value in self._below.scan(start, end, reverse=reverse):
            while over and (over[-1] > key if reverse else over[-1] < key):
                yield from self._written(over.pop())
            if over and over[-1] == key:
                yield from self._written(over.pop())
            else:
                yield key, value
        while over:
            yield from self._written(over.pop())

    def _written(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        value = self._over[key]
        if value is not None:
            yield key, value
