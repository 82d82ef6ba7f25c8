"""A table's history: what a log of its changes has to hold, as the store tells it.

    changes       every version in `(after, upto]` of a key that was a row when it was committed,
                  under the descriptor that was in force then, with the row that it replaced
    shown rows    the rows as of one timestamp: of a scan, or of a schema change

Everything is read between two timestamps that the store can still read, in pieces of about a
thousand rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...kvlayer.access import StoreAccess, Version
from ...kvlayer.clock import Timestamp
from ...kvlayer.keys import index_prefix, table_span
from ...kvlayer.process.background import give_way
from ...kvlayer.span import Span
from ...schemafeed.table_events import EventKind, TableEvent, table_event
from ..contract.boundary_kind import BoundaryKind
from ..contract.changes import ChangeBatch, ChangeKind, StageTimes
from ..pipeline.boundary import BoundaryPlan
from ..pipeline.decode import PreviousRows, decode
from ..pipeline.rows_before import RowsBefore
from ..targets import TableTarget, Versions

PIECE_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Truncation:
    """The table was emptied at once."""

    at: Timestamp


class TableHistory:
    """The history of one table from `after` (exclusive) to `upto`. Raises BatchTimestampBeforeGC
    wherever history is collected while it is read."""

    def __init__(
        self,
        store: StoreAccess,
        table_id: int,
        versions: Sequence[TableDescriptor],
        plan: BoundaryPlan,
    ) -> None:
        """`versions` are the table's descriptors that are in force from `after` on, by time."""
        self._store = store
        self._target = TableTarget(table_id, DescriptorStore(store))
        self._versions = versions
        self._starts = [version.modification_time for version in versions]
        boundaries = [
            plan(table_event(before, after))
            for before, after in pairwise(versions)
            if not after.dropped
        ]
        self.backfills: dict[Timestamp, TableEvent] = {
            each.at: each.event for each in boundaries if each.kind is BoundaryKind.BACKFILL
        }
        """The schema changes behind which rows are shown again, by their timestamps."""
        self._truncations = [
            each.at for each in boundaries if EventKind.TRUNCATE in each.event.kinds
        ]

    @classmethod
    async def of(
        cls,
        store: StoreAccess,
        descriptors: DescriptorStore,
        table_id: int,
        after: Timestamp,
        upto: Timestamp,
        plan: BoundaryPlan,
    ) -> TableHistory:
        """Raises BatchTimestampBeforeGC."""
        first = await descriptors.read_at(table_id, after)
        later = await descriptors.versions([table_id], after, upto)
        found = [each for each in (first, *later) if isinstance(each, TableDescriptor)]
        return cls(store, table_id, found, plan)

    def at(self, at: Timestamp) -> TableDescriptor | None:
        """The descriptor in force at `at`."""
        place = bisect_right(self._starts, at)
        return self._versions[place - 1] if place else None

    def near(self, at: Timestamp) -> TableDescriptor:
        """The descriptor in force at `at`, or the first where `at` is before all."""
        return self.at(at) or self._versions[0]

    async def changes(
        self, after: Timestamp, upto: Timestamp
    ) -> AsyncGenerator[ChangeBatch | Truncation, None]:
        """Yields all changes in `(after, upto]`, in order of time."""
        truncations = [at for at in self._truncations if after < at <= upto]
        async with aclosing(self._store.versions(self._span, after, upto)) as slices:
            async for found in slices:
                for descriptor, part in self._by_schema(found):
                    while truncations and truncations[0] <= part[0][1]:
                        yield Truncation(truncations.pop(0))
                    batch = await self._changed(descriptor, part)
                    if batch is not None:
                        yield batch
                    await give_way()
        for at in truncations:
            yield Truncation(at)

    @property
    def _span(self) -> Span:
        """The span of the rows, other indexes left out where the table has kept its own."""
        indexes = {version.primary_index_id for version in self._versions}
        if len(indexes) == 1:
            return self._versions[0].primary_span
        return table_span(self._target.id)

    def _by_schema(
        self, found: Sequence[Version]
    ) -> Iterator[tuple[TableDescriptor, Sequence[Version]]]:
        """Versions in order of time, those under each descriptor, `PIECE_ROWS` at most."""
        start = 0
        while start < len(found):
            descriptor, stop = self.at(found[start][1]), start
            while (
                stop < len(found)
                and stop - start < PIECE_ROWS
                and self.at(found[stop][1]) is descriptor
            ):
                stop += 1
            if descriptor is not None:
                yield descriptor, found[start:stop]
            start = stop

    async def _changed(
        self, descriptor: TableDescriptor, part: Sequence[Version]
    ) -> ChangeBatch | None:
        given = Versions(
            [key for key, _, _ in part], [body for _, _, body in part], [at for _, at, _ in part]
        )
        rows = self._target.select(given, descriptor)
        if not rows.keys:
            return None
        before = await self._before(rows)
        for key, body in zip(rows.keys, rows.values, strict=True):
            rows.previous.append(before[key])
            before[key] = body
        return decode(rows, descriptor, stages=StageTimes())

    async def _before(self, rows: Versions) -> dict[bytes, bytes | None]:
        """The values of the keys before their first versions here. Of others that were written at
        the least timestamp, a piece before this one may have had the versions."""
        least = rows.timestamps[0]
        first = {key for key, at in zip(rows.keys, rows.timestamps, strict=True) if at == least}
        later = list(dict.fromkeys(key for key in rows.keys if key not in first))
        before = await self._bodies(list(first), Timestamp(least - 1))
        return before | await self._bodies(later, least) if later else before

    async def _bodies(self, keys: Sequence[bytes], at: Timestamp) -> dict[bytes, bytes | None]:
        reader = self._store.begin(read_timestamp=at)
        try:
            return dict(zip(keys, await reader.get_each(keys), strict=True))
        finally:
            await reader.rollback()

    async def shown_rows(
        self, at: Timestamp, kind: ChangeKind, after: bytes | None, upto: bytes | None
    ) -> AsyncGenerator[ChangeBatch, None]:
        """The rows as of `at` in order of their keys: those in `(after, upto]`, keys being given
        without the index. With the rows before where they are those of a schema change."""
        descriptor = self.at(at)
        if descriptor is None or descriptor.dropped:
            return
        span, prefix = descriptor.primary_span, _prefix(descriptor)
        start = span.start if after is None else prefix + after + b"\x00"
        end = span.end if upto is None else prefix + upto + b"\x00"
        if start >= end:
            return
        async with aclosing(self._store.snapshot(at).scan_slices(Span(start, end))) as slices:
            async for rows in slices:
                for first in range(0, len(rows), PIECE_ROWS):
                    part = rows[first : first + PIECE_ROWS]
                    yield await self._shown(descriptor, part, at, kind)
                    await give_way()

    async def rows_of(
        self, keys: Sequence[bytes], at: Timestamp, kind: ChangeKind
    ) -> ChangeBatch | None:
        """Returns the rows of `keys` as of `at`; None where no key has one."""
        descriptor = self.at(at)
        if descriptor is None or descriptor.dropped:
            return None
        bodies = await self._bodies([_prefix(descriptor) + key for key in keys], at)
        there = [(key, body) for key, body in bodies.items() if body is not None]
        return await self._shown(descriptor, there, at, kind) if there else None

    async def _shown(
        self,
        descriptor: TableDescriptor,
        rows: Sequence[tuple[bytes, bytes]],
        at: Timestamp,
        kind: ChangeKind,
    ) -> ChangeBatch:
        keys = [key for key, _ in rows]
        previous: PreviousRows | None = None
        event = self.backfills.get(at)
        if event is not None and kind is ChangeKind.BACKFILL:
            before = RowsBefore(self._store.snapshot(Timestamp(at - 1)), event)
            previous = before.of(await before.read(keys), keys)
        return decode(
            Versions(keys, [body for _, body in rows], [at] * len(rows)),
            descriptor,
            stages=StageTimes(),
            kind=kind,
            previous=previous,
        )

    async def change(self, keys: Sequence[bytes], at: Timestamp) -> ChangeBatch | None:
        """Returns the changes of one transaction to these keys, given without the index."""
        descriptor = self.at(at)
        if descriptor is None:
            return None
        keys = [_prefix(descriptor) + key for key in keys]
        bodies = await self._bodies(keys, at)
        return await self._changed(descriptor, [(key, at, bodies[key]) for key in keys])


def _prefix(descriptor: TableDescriptor) -> bytes:
    return index_prefix(descriptor.id, descriptor.primary_index_id)
