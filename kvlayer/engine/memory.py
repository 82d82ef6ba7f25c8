"""The in-memory engine: for tests, simulation and `:memory:` stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from sortedcontainers import SortedDict

from ..range_tombstones import NO_TOMBSTONES, RangeTombstones
from .protocol import APPLIED_KEY, EngineBatch, encode_applied


class _SortedReader:
    """Reads of a sorted map."""

    def __init__(
        self, entries: SortedDict[bytes, bytes], tombstones: RangeTombstones = NO_TOMBSTONES
    ) -> None:
        self._entries = entries
        self.range_tombstones = tombstones

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def get_fixed_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._entries.get(key) for key in keys]

    def first(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        for key in self._entries.irange(start, end, inclusive=(True, False)):
            return key, self._entries[key]
        return None

    def first_each(self, spans: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes] | None]:
        return [self.first(start, end) for start, end in spans]

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        entries = self._entries
        for key in entries.irange(start, end, inclusive=(True, False), reverse=reverse):
            yield key, entries[key]


class MemorySnapshot(_SortedReader):
    """The engine's own map, of which the engine takes a copy before it writes again. So a snapshot
    that is closed by then costs nothing, and any other the size of the map."""

    def __init__(
        self,
        entries: SortedDict[bytes, bytes],
        tombstones: RangeTombstones,
        sharers: set[MemorySnapshot],
    ) -> None:
        super().__init__(entries, tombstones)
        self._sharers = sharers
        sharers.add(self)

    def close(self) -> None:
        self._sharers.discard(self)
        self._entries = SortedDict()


class MemoryEngine(_SortedReader):
    """Keeps everything in one sorted map.

    `crashed()` returns what a crash would leave: the state of the last flush.
    """

    def __init__(self) -> None:
        super().__init__(SortedDict())
        self._applied_index = 0
        self._flushed: tuple[dict[bytes, bytes], int] = ({}, 0)
        self._sharers: set[MemorySnapshot] = set()
        """The snapshots that read the map as it is now."""

    @property
    def applied_index(self) -> int:
        return self._applied_index

    @property
    def flushed_index(self) -> int:
        return self._flushed[1]

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        assert applied_index > self._applied_index, (applied_index, self._applied_index)
        if self._sharers:
            self._entries, self._sharers = self._entries.copy(), set()
        for key in batch.deletes:
            self._entries.pop(key, None)
        self._entries.update(batch.puts)
        self._entries[APPLIED_KEY] = encode_applied(applied_index)
        if batch.range_tombstones:
            self.range_tombstones = RangeTombstones.load(self)
        self._applied_index = applied_index

    def snapshot(self) -> MemorySnapshot:
        return MemorySnapshot(self._entries, self.range_tombstones, self._sharers)

    def flush(self) -> None:
        # Called beside the loop, which goes on writing. `dict.copy` is one step of the interpreter;
        # the index is taken before it, since replaying what the copy already holds changes nothing.
        applied_index = self._applied_index
        entries: dict[bytes, bytes] = dict.copy(self._entries)  # type: ignore[arg-type]  # stubs
        self._flushed = (entries, applied_index)

    def crashed(self) -> Self:
        """A new engine holding what the last flush made durable."""
        survivor = type(self)()
        entries, survivor._applied_index = self._flushed
        if survivor._applied_index:
            entries = {**entries, APPLIED_KEY: encode_applied(survivor._applied_index)}
        survivor._entries = SortedDict(entries)
        survivor.range_tombstones = RangeTombstones.load(survivor)
        survivor._flushed = (dict(entries), survivor._applied_index)
        return survivor

    def close(self) -> None:
        self.flush()
