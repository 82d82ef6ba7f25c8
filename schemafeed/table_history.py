"""The proven history of one table's schema: its versions up to a frontier, and which were consumed.

    prime(v1, 150)               frontier 150, v1 canonical from 100 on
    extend([v2 at 180], 200)     frontier 200; peek(190) answers the event v1 -> v2
    pop(190)                     consumed; peek(200) answers no event, v2, since 180
    canonical_at(170)            v1: rows come in no order across keys

No I/O, no waiting: a schema feed feeds it what it read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ..catalog.descriptors.descriptor import TableDescriptor, logically_equal
from ..kvlayer.clock import Timestamp
from .feed import SchemaAnswer, TableDropped
from .table_events import TableEvent, table_event

VERSIONS_MAX = 1024
"""Consumed versions that stay for late rows; rows as late as that many schema changes are not."""


class TableHistory:
    """The proven versions of a table, ascending, and how many of them were consumed.

    `_versions[_consumed]` is the canonical version of the consumed part; what stands behind it are
    events to come. The frontier only rises.
    """

    __slots__ = ("_consumed", "_versions", "frontier", "start")

    def __init__(self, primed: TableDescriptor, at: Timestamp) -> None:
        assert primed.modification_time <= at, (primed, at)
        self._versions = [primed]
        self._consumed = 0
        self.start = at
        self.frontier = at

    def extend(self, versions: Sequence[TableDescriptor], upto: Timestamp) -> bool:
        """The versions of `(frontier, upto]`, complete; says whether the frontier rose."""
        for version in versions:
            assert self.frontier < version.modification_time <= upto, (version, self.frontier, upto)
            self._append(version)
        if upto <= self.frontier:
            return False
        self.frontier = upto
        return True

    def vouch(self, at: Timestamp) -> None:
        """Somebody else proved that up to `at` nothing happened but steps between logically equal
        versions: lock changes, comments, foreign keys of other tables.

        Those that were read already are consumed: nobody is told of them. One that was not is found
        by `rejoin`.
        """
        passed = self._events(at)
        assert all(logically_equal(event.before, event.after) for event in passed), passed
        self._consumed += len(passed)
        self.frontier = max(self.frontier, at)

    def rejoin(self, canonical: TableDescriptor) -> None:
        """After `vouch`: the version that was read as of the frontier."""
        last = self._versions[-1]
        assert canonical.modification_time <= self.frontier, (canonical, self.frontier)
        if canonical.version == last.version:
            return
        assert not self.pending, self._versions
        assert logically_equal(last, canonical), (last, canonical)
        self._append(canonical)
        self._consumed += 1

    def peek(self, at: Timestamp) -> SchemaAnswer:
        """The proof up to `at`, which is at or below the frontier. Raises TableDropped."""
        assert at <= self.frontier, (at, self.frontier)
        if at < self._versions[self._consumed].modification_time:
            return self._answer((), self._canonical_index(at))
        events = self._events(at)
        return self._answer(tuple(events), self._consumed + len(events))

    def pop(self, at: Timestamp) -> SchemaAnswer:
        answer = self.peek(at)
        self._consumed += len(answer.events)
        self._prune()
        return answer

    def canonical_at(self, at: Timestamp) -> TableDescriptor:
        """The version that holds at `at`, consumed or not. Raises TableDropped."""
        assert at <= self.frontier, (at, self.frontier)
        return self._answer((), self._canonical_index(at)).canonical

    @property
    def canonical(self) -> TableDescriptor:
        """The last version that is proven."""
        return self._versions[-1]

    @property
    def pending(self) -> bool:
        return self._consumed + 1 < len(self._versions)

    def _append(self, version: TableDescriptor) -> None:
        last = self._versions[-1]
        assert last.version < version.version, (last, version)
        self._versions.append(version)

    def _events(self, at: Timestamp) -> list[TableEvent]:
        events = []
        for index in range(self._consumed, len(self._versions) - 1):
            if self._versions[index + 1].modification_time > at:
                break
            events.append(table_event(self._versions[index], self._versions[index + 1]))
        return events

    def _canonical_index(self, at: Timestamp) -> int:
        index = bisect_right(self._versions, at, key=lambda version: version.modification_time) - 1
        assert index >= 0, ("before everything that is known", at, self._versions[0])
        return index

    def _answer(self, events: tuple[TableEvent, ...], index: int) -> SchemaAnswer:
        canonical = self._versions[index]
        if canonical.dropped:
            raise TableDropped(canonical.name, canonical.id, canonical.modification_time)
        return SchemaAnswer(events, canonical, canonical.modification_time)

    def _prune(self) -> None:
        surplus = self._consumed - VERSIONS_MAX
        if surplus > 0:
            del self._versions[:surplus]
            self._consumed -= surplus
