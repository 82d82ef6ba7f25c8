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
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..dealt_keys import DealtKeys
from ..span import Span


@dataclass(slots=True, eq=False)
class _Run:
    """`least` and `greatest` are the bounds of the keys that the run began with."""

    sequence: int
    keys: tuple[bytes, ...]
    least: bytes
    greatest: bytes


class Intents:
    """The runs of one transaction. A run's sequence is never below that of the run before it: else
    a savepoint would find its keys hidden behind older ones.

    `rewritten` has the keys that were written again while a savepoint stood, each with the sequence
    of its last writing.
    """

    __slots__ = (
        "_greatest",
        "_least",
        "_runs",
        "_with_greatest",
        "_with_least",
        "count",
        "rewritten",
    )

    def __init__(self) -> None:
        self.count = 0
        self.rewritten: DealtKeys[int] = DealtKeys()
        self._runs: deque[_Run] = deque()
        # No unresolved intent lies outside of these bounds.
        self._least = self._greatest = b""
        # The runs of which each has the least key of those from it on: the first of them gives the
        # bound, also when runs before it are gone. None where the last run has gone since.
        self._with_least: deque[_Run] | None = deque()
        self._with_greatest: deque[_Run] = deque()

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[bytes]:
        for run in self._runs:
            yield from run.keys

    def append(self, sequence: int, keys: Sequence[bytes]) -> None:
        """Adds a run of keys that are written for the first time."""
        assert not self._runs or self._runs[-1].sequence <= sequence, (self._runs[-1], sequence)
        run = _Run(sequence, tuple(keys), min(keys), max(keys))
        self._runs.append(run)
        self.count += len(keys)
        self._bound_by(run)

    def first(self, count: int) -> list[bytes]:
        """The first `count` keys, or all that there are."""
        found: list[bytes] = []
        for run in self._runs:
            found += run.keys
            if len(found) >= count:
                break
        return found[:count]

    def last(self, count: int, *, after: int) -> list[bytes]:
        """The last `count` keys of those whose first writing was after sequence `after`, or all of
        them."""
        found: deque[bytes] = deque()
        for run in reversed(self._runs):
            if run.sequence <= after or len(found) >= count:
                break
            found.extendleft(reversed(run.keys))
        return list(found)[-count:]

    def drop_first(self, keys: Collection[bytes]) -> None:
        """Removes the keys, which are the first ones: their intents are resolved."""
        left = len(keys)
        while left:
            run = self._runs[0]
            if len(run.keys) > left:
                run.keys = run.keys[left:]
                break
            self._runs.popleft()
            left -= len(run.keys)
            for bounding in filter(None, (self._with_least, self._with_greatest)):
                if bounding[0] is run:
                    bounding.popleft()
        self._drop(keys)
        self._set_bounds()

    def drop_last(self, keys: Collection[bytes]) -> None:
        """Removes the keys, which are the last ones: their intents are undone."""
        left = len(keys)
        while left:
            run = self._runs[-1]
            if len(run.keys) > left:
                run.keys = run.keys[:-left]
                break
            self._runs.pop()
            left -= len(run.keys)
            self._with_least = None
        self._drop(keys)

    def _drop(self, keys: Collection[bytes]) -> None:
        self.count -= len(keys)
        for key in self.rewritten.among(keys):
            self.rewritten.pop(key)

    def _bound_by(self, run: _Run) -> None:
        """Takes notice of the last run."""
        if self._with_least is None:
            self._with_least, self._with_greatest = deque(), deque()
            for each in self._runs:
                self._bound_by(each)
            return
        leasts, greatests = self._with_least, self._with_greatest
        while leasts and run.least <= leasts[-1].least:
            leasts.pop()
        while greatests and run.greatest >= greatests[-1].greatest:
            greatests.pop()
        leasts.append(run)
        greatests.append(run)
        self._set_bounds()

    def _set_bounds(self) -> None:
        if self._with_least:
            self._least, self._greatest = self._with_least[0].least, self._with_greatest[0].greatest

    def may_lie_between(self, least: bytes, greatest: bytes) -> bool:
        """Whether an intent may lie between two keys or on one of them."""
        return self._least <= greatest and least <= self._greatest

    def held_in(self, span: Span) -> Span | None:
        """The part of a span in which unresolved intents may lie: a scan beyond it would step over
        those that are resolved, one by one."""
        if not self._least < span.end or not span.start <= self._greatest:
            return None
        start = max(self._least, span.start)
        end = min(self._greatest + b"\x00", span.end)
        return Span(start, end) if start < end else None
