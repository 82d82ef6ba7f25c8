"""The writes of a transaction that are nobody's but its own until it commits.

A transaction keeps what it writes here while that is little, and holds the keys by locks; it
commits all of it as versions, in one entry of the log. What outgrows the buffer becomes intents
(`writing.spill_step`). Values include their version headers.

    sequence  1  put k = a       k: 1 a
              2  SAVEPOINT s
              3  put k = b       k: 3 b     s would restore k: 1 a
              4  put l = c       l: 4 c     s would remove l
              ROLLBACK TO s      k: 1 a

Source: CockroachDB's `txnWriteBuffer` (`kv.transaction.write_buffering`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sortedcontainers import SortedSet

from ..settings import declare_bytes
from ..span import Span

BUFFER_BYTES = declare_bytes(
    "kv.transaction.buffer_bytes",
    1024 * 1024,
    "bytes of keys and values that an explicit transaction holds before it writes intents",
)
"""All of it is committed in one step of the loop, which is to take ten milliseconds at most."""

ROW_BYTES = 160
"""The cost of a key beside its bytes, in memory and in work."""

Written = tuple[int, bytes]
"""The sequence of the write, and the value."""


@dataclass(slots=True)
class _Restorable:
    """The keys that a standing savepoint restores, as they were; None for those not yet written."""

    sequence: int
    earlier: dict[bytes, Written | None]


class WriteBuffer:
    """Keys in order of their first writing, with their last values. `byte_count` also counts the
    values that savepoints may restore."""

    __slots__ = ("_restorable", "_sorted", "byte_count", "written")

    def __init__(self) -> None:
        self.written: dict[bytes, Written] = {}
        self.byte_count = 0
        self._restorable: list[_Restorable] = []  # a standing savepoint each, oldest first
        self._sorted: SortedSet[bytes] | None = None  # from the first scan on

    def __bool__(self) -> bool:
        return bool(self.written)

    def put(self, keys: Sequence[bytes], values: Sequence[bytes], sequence: int) -> None:
        written = self.written
        if self._restorable:
            earlier = self._restorable[-1].earlier
            for key in keys:
                if key not in earlier:
                    before = earlier[key] = written.get(key)
                    if before is not None:
                        self.byte_count += _size(key, before)
        if not written.keys().isdisjoint(keys):
            for key in keys:
                if key in written:
                    self.byte_count -= _size(key, written[key])
        written.update(zip(keys, [(sequence, value) for value in values], strict=True))
        self.byte_count += cost(keys, values)
        if self._sorted is not None:
            self._sorted.update(keys)

    def within(self, span: Span, *, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        """Keys of the span and their values, in order or against it."""
        if not self.written:
            return []
        if self._sorted is None:
            self._sorted = SortedSet(self.written)
        found = self._sorted.irange(span.start, span.end, (True, False), reverse)
        return [(key, self.written[key][1]) for key in found]

    # Savepoints

    def mark(self, sequence: int) -> None:
        """A savepoint was made."""
        self._restorable.append(_Restorable(sequence, {}))

    def release(self, sequence: int) -> None:
        """Forgets that savepoint and those made since."""
        while self._restorable and self._restorable[-1].sequence >= sequence:
            released = self._restorable.pop().earlier
            if self._restorable:
                kept = self._restorable[-1].earlier
                for key, before in released.items():
                    if key not in kept:
                        kept[key] = before
                    elif before is not None:
                        self.byte_count -= _size(key, before)
            else:
                self.byte_count -= _total(released)

    def roll_back_to(self, sequence: int) -> None:
        """Restores everything as it was when that savepoint was made. It stands."""
        while self._restorable and self._restorable[-1].sequence >= sequence:
            undone = self._restorable.pop().earlier
            for key, before in undone.items():
                self.byte_count -= _size(key, self.written[key])
                if before is None:
                    del self.written[key]
                else:  # it keeps its place; its size is counted already
                    self.written[key] = before
            self._sorted = None
        self.mark(sequence)

    # Spilling

    def history(self, key: bytes) -> tuple[Written, ...]:
        """Earlier values of the key that savepoints may restore, oldest first, each once."""
        found: dict[int, bytes] = {}
        for restorable in self._restorable:
            before = restorable.earlier.get(key)
            if before is not None:
                found[before[0]] = before[1]
        return tuple(found.items())

    def forget(self, keys: Iterable[bytes]) -> None:
        """The keys are intents from now on, with what savepoints may restore."""
        for key in keys:
            self.byte_count -= _size(key, self.written.pop(key))
            for restorable in self._restorable:
                before = restorable.earlier.pop(key, None)
                if before is not None:
                    self.byte_count -= _size(key, before)
        self._sorted = None

    def clear(self) -> None:
        """The transaction has ended."""
        self.__init__()  # type: ignore[misc]

    def check_invariants(self) -> None:
        sizes = sum(_size(key, written) for key, written in self.written.items())
        kept = sum(_total(restorable.earlier) for restorable in self._restorable)
        assert self.byte_count == sizes + kept, (self.byte_count, sizes, kept)


def cost(keys: Collection[bytes], values: Collection[bytes]) -> int:
    """Bytes that rows take of a buffer."""
    return sum(map(len, keys)) + sum(map(len, values)) + ROW_BYTES * len(keys)


def _size(key: bytes, written: Written) -> int:
    return len(key) + len(written[1]) + ROW_BYTES


def _total(earlier: dict[bytes, Written | None]) -> int:
    return sum(_size(key, before) for key, before in earlier.items() if before is not None)
