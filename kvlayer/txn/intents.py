"""The intents of one transaction that are not resolved: their keys. Values are in the engine.

Keys come in *runs*, in order of their first writing, a run for those that one command wrote first.
What is written again stays where it is, and is noted besides, for savepoints:

    sequence  1  put k, l      runs 1 [k l]
              2  SAVEPOINT s
              3  put l, m      runs 1 [k l], 3 [m]    rewritten l 3
              ROLLBACK TO s    runs 1 [k l]           rewritten l 1

The end of the transaction takes keys off the first run, and a savepoint takes keys off the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from ..span import Span


class Intents:
    """See above. `rewritten` are keys that were written again while a savepoint stood, and the
    sequence of that."""

    __slots__ = ("_greatest", "_in_order", "_least", "_runs", "count", "rewritten")

    def __init__(self) -> None:
        self.count = 0
        self.rewritten: dict[bytes, int] = {}
        self._runs: deque[tuple[int, list[bytes]]] = deque()
        # No intent lies outside of these, and those that are resolved did not.
        self._least = self._greatest = b""
        self._in_order = True

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[bytes]:
        for _, keys in self._runs:
            yield from keys

    def append(self, sequence: int, keys: list[bytes]) -> None:
        """Those keys are written for the first time. Nobody changes the list from now on."""
        ordered = sorted(keys)
        least, greatest = ordered[0], ordered[-1]
        self._in_order = self._in_order and self._greatest < least and ordered == keys
        self._least = min(self._least, least) if self._greatest else least
        self._greatest = max(self._greatest, greatest)
        self._runs.append((sequence, keys))
        self.count += len(keys)

    def first(self, count: int) -> list[bytes]:
        """As many of the first keys."""
        found: list[bytes] = []
        for _, keys in self._runs:
            found += keys
            if len(found) >= count:
                break
        return found[:count]

    def last(self, count: int, *, after: int) -> list[bytes]:
        """As many of the last keys, of those whose first writing was after a sequence."""
        found: deque[bytes] = deque()
        for sequence, keys in reversed(self._runs):
            if sequence <= after or len(found) >= count:
                break
            found.extendleft(reversed(keys))
        return list(found)[-count:]

    def drop_first(self, keys: Collection[bytes]) -> None:
        """The first keys, which are those, are resolved."""
        left = len(keys)
        while left:
            sequence, run = self._runs.popleft()
            if len(run) > left:
                self._runs.appendleft((sequence, run[left:]))
            left -= min(left, len(run))
        self._drop(keys)
        if self._runs and self._in_order:
            self._least = self._runs[0][1][0]

    def drop_last(self, keys: Collection[bytes]) -> None:
        """The last keys, which are those, are resolved."""
        left = len(keys)
        while left:
            sequence, run = self._runs.pop()
            if len(run) > left:
                self._runs.append((sequence, run[:-left]))
            left -= min(left, len(run))
        self._drop(keys)

    def _drop(self, keys: Collection[bytes]) -> None:
        self.count -= len(keys)
        if self.rewritten:
            for key in keys:
                self.rewritten.pop(key, None)

    def may_lie_between(self, least: bytes, greatest: bytes) -> bool:
        """Whether an intent may lie there, bounds included."""
        return self._least <= greatest and least <= self._greatest

    def held_in(self, span: Span) -> Span | None:
        """The part of a span in which unresolved intents may lie: a scan beyond it would step over
        those that are resolved, one by one."""
        if not self._least < span.end or not span.start <= self._greatest:
            return None  # before the first of them is asked for, behind those that are gone
        start = max(self._least, span.start)
        end = min(self._greatest + b"\x00", span.end)
        return Span(start, end) if start < end else None
