"""Messages from a sink to the worker: batches, schema events, and their descriptors.

A descriptor is sent once for each sink, before the first batch under it, and is a number from then
on. So the same object on one side is the same object on the other, by which sinks know it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .....catalog.descriptors.descriptor import TableDescriptor
from .....kvlayer.clock import Timestamp
from .....kvlayer.worker import received_rows, sent_rows
from .....schemafeed.table_events import EventKind, TableEvent
from ....contract.changes import ChangeBatch, ChangeKind

DESCRIPTORS_KEPT_MAX = 64
"""Descriptors of one sink that have a number: late rows are under the last few of each table."""

SentBatch = tuple[
    int,
    int | None,
    str,
    Sequence[bytes],
    Sequence[Timestamp],
    Sequence[bytes | None] | None,
    Any,
]
"""The number of its descriptor, that of `before`, then the kind's value (an enumeration would be
looked up in each frame), keys, timestamps, bodies, and the rest: None where all of that is as in a
batch of bodies."""

SentEvent = tuple[int, int, EventKind]


class DescriptorNumbers:
    """The numbers of one sink's descriptors, in the process that sends them."""

    def __init__(self, describe: Callable[[int, TableDescriptor | None], None]) -> None:
        """`describe` tells the other side of a number, and with None that it is over."""
        self._describe = describe
        self._known: OrderedDict[int, tuple[int, TableDescriptor]] = OrderedDict()
        """By the identity of a descriptor, which it is kept for."""
        self._next = 0

    def of(self, descriptor: TableDescriptor) -> int:
        """The number of that very object."""
        identity = id(descriptor)
        found = self._known.get(identity)
        if found is not None:
            self._known.move_to_end(identity)
            return found[0]
        self._next += 1
        self._known[identity] = self._next, descriptor
        self._describe(self._next, descriptor)
        if len(self._known) > DESCRIPTORS_KEPT_MAX:
            _, (number, _) = self._known.popitem(last=False)
            self._describe(number, None)
        return self._next

    def sent_batch(self, batch: ChangeBatch) -> SentBatch:
        """The batch as it is sent."""
        assert batch.shown is None, "a mirror's query shows nothing of deletions"
        rest = None
        if batch.bodies is None or batch.versions is not None or batch.for_log:
            columns = None if batch.columns is None else sent_rows([batch.columns])
            rest = batch.rows, columns, batch.deleted, batch.versions, batch.previous, batch.for_log
        return (
            self.of(batch.descriptor),
            None if batch.before is None else self.of(batch.before),
            batch.kind.value,
            batch.keys,
            batch.timestamps,
            batch.bodies,
            rest,
        )

    def sent_event(self, event: TableEvent) -> SentEvent:
        return self.of(event.before), self.of(event.after), event.kinds


class KnownDescriptors:
    """The descriptors of one sink by their numbers, in the process that receives them."""

    def __init__(self) -> None:
        self._known: dict[int, TableDescriptor] = {}

    def describe(self, number: int, descriptor: TableDescriptor | None) -> None:
        if descriptor is None:
            del self._known[number]
        else:
            self._known[number] = descriptor

    def batch(self, sent: SentBatch) -> ChangeBatch:
        descriptor, before, kind, keys, timestamps, bodies, rest = sent
        rows = columns = versions = previous = None
        deleted: Sequence[int] = ()
        for_log = False
        if rest is not None:
            rows, columns, deleted, versions, previous, for_log = rest
        return ChangeBatch(
            descriptor=self._known[descriptor],
            before=None if before is None else self._known[before],
            kind=ChangeKind(kind),
            keys=keys,
            timestamps=timestamps,
            bodies=bodies,
            rows=rows,
            columns=None if columns is None else received_rows(columns)[0],
            deleted=deleted,
            versions=versions,
            previous=previous,
            for_log=for_log,
        )

    def event(self, sent: SentEvent) -> TableEvent:
        before, after, kinds = sent
        return TableEvent(before=self._known[before], after=self._known[after], kinds=kinds)
