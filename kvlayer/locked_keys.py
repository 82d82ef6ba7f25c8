"""The keys that one transaction has locked in one mode, in order of their locking."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .span import Span

PORTION_KEYS = 1000
"""Keys that are freed in one step of the loop: each takes 1 to 4 µs."""


@dataclass(slots=True, eq=False)
class _Portion:
    """Keys, with the sequences at which they were locked, and their bounds when they were."""

    sequences: dict[bytes, int]
    least: bytes
    greatest: bytes


class LockedKeys:
    """Keys in portions of `PORTION_KEYS`, or as many as were locked at once. No key was locked at a
    sequence below that of the key before it.

        lock a, b at 1, c at 3    a 1, b 1, c 3
        ROLLBACK TO 2             a 1, b 1
        unlock a                  b 1
    """

    __slots__ = ("_portions",)

    def __init__(self) -> None:
        self._portions: deque[_Portion] = deque()

    def __bool__(self) -> bool:
        return bool(self._portions)

    def __len__(self) -> int:
        return sum(len(portion.sequences) for portion in self._portions)

    def __iter__(self) -> Iterator[bytes]:
        for portion in self._portions:
            yield from portion.sequences

    def add(self, keys: Sequence[bytes], sequence: int) -> None:
        """Adds keys that are not here."""
        if not keys:
            return
        least, greatest = min(keys), max(keys)
        portions = self._portions
        if portions and len(portions[-1].sequences) + len(keys) <= PORTION_KEYS:
            last = portions[-1]
            last.sequences.update(dict.fromkeys(keys, sequence))
            last.least, last.greatest = min(last.least, least), max(last.greatest, greatest)
        else:
            portions.append(_Portion(dict.fromkeys(keys, sequence), least, greatest))

    def remove(self, key: bytes) -> None:
        """Removes one key, which is here."""
        portion = next(each for each in reversed(self._portions) if key in each.sequences)
        del portion.sequences[key]
        if not portion.sequences:
            self._portions.remove(portion)

    def take_first(self) -> list[bytes]:
        """Removes and returns a portion of the keys; none where there are none."""
        return list(self._portions.popleft().sequences) if self._portions else []

    def take_last(self, count: int, *, after: int) -> list[bytes]:
        """Removes and returns the last `count` keys of those that were locked after sequence
        `after`, or all of them."""
        taken: list[bytes] = []
        while self._portions and len(taken) < count:
            sequences = self._portions[-1].sequences
            key, at = sequences.popitem()
            if at <= after:
                sequences[key] = at
                break
            taken.append(key)
            if not sequences:
                self._portions.pop()
        return taken

    def spans(self) -> Iterator[Span]:
        """Yields spans that hold all of the keys, one a portion."""
        for portion in self._portions:
            yield Span(portion.least, portion.greatest + b"\x00")

    def first_in(self, span: Span) -> bytes | None:
        """Returns a key of the span, or None."""
        for portion in self._portions:
            if portion.least < span.end and span.start <= portion.greatest:
                found = next(filter(span.contains, portion.sequences), None)
                if found is not None:
                    return found
        return None
