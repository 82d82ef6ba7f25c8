"""Positions of readers that come back: what is kept for them, and how far they may read.

A position is a protected timestamp with an owner's name, so it says by itself of which store and
table it is. A reader at timestamp `a` asks for the next `b`: everything at or below `b` is there
for good, and one schema holds over `(a, b]`, but for changes that begin it:

    resolved   a ................ T-1 | T ............. r        the table is altered at T
    answers    next(a) = T-1     next(T-1) = r, under the new schema
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.store.descriptor_store import DescriptorStore
from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess, committed
from ...kvlayer.clock import Timestamp, format_timestamp
from ...kvlayer.protected_timestamp import ProtectedTimestamp, ProtectedTimestamps
from ...kvlayer.span import Span

OWNER_PREFIX = "reader of table "

MAX_AGE_SECONDS = 24 * 3600.0
"""A reader that has not come back for a day has lost its position: garbage must not pile up."""

RESOLVE_SECONDS = 5.0
"""How long `next` waits for a resolved timestamp above the reader's; then it answers with none."""


class TableAltered(Exception):
    """The interval asked for has a schema change within it."""

    def __init__(self, table: TableDescriptor) -> None:
        at = format_timestamp(table.modification_time)
        what = "dropped" if table.dropped else "altered"
        super().__init__(f'table "{table.name}" was {what} at {at}, within the interval')


class PositionUnknown(Exception):
    """The position is another store's, or was released or given up."""

    def __init__(self, position_id: bytes) -> None:
        super().__init__(
            f"no position {position_id.hex()} in this store: it is another store's, or its reader"
            " has not come back for too long"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBatch:
    """Up to where a reader may read next, and under which descriptor.

    `upto` is the reader's own timestamp when nothing new is resolved yet. `changed` says whether
    the table has a version in between, or is altered right behind: a reader that wants none else
    may wait if not. Behind an alteration it must go on, for no later answer goes further.
    """

    upto: Timestamp
    descriptor: TableDescriptor
    changed: bool


class Positions:
    """Makes, moves and ends positions, and says how far each may go."""

    def __init__(
        self,
        store: StoreAccess,
        descriptors: DescriptorStore,
        protections: ProtectedTimestamps,
        *,
        max_age_seconds: float = MAX_AGE_SECONDS,
    ) -> None:
        self._store = store
        self._max_age_seconds = max_age_seconds
        self._descriptors = descriptors
        self._protections = protections

    async def create(self, table: TableDescriptor, at: Timestamp) -> bytes:
        """A position at `at`, by its id. Raises ProtectionRefused when that is collected."""
        await self._give_up_expired()
        async with committed(self._store) as transaction:
            return await self._protections.protect(
                transaction,
                owner=f"{OWNER_PREFIX}{table.id}",
                spans=[table.span],
                timestamp=at,
                max_age_seconds=self._max_age_seconds,
            )

    async def find(self, position_id: bytes) -> tuple[int, Timestamp]:
        """The id of its table, and where it stands. Raises PositionUnknown."""
        record = await self._record(position_id)
        return int(record.owner.removeprefix(OWNER_PREFIX)), record.timestamp

    async def advance(self, position_id: bytes, upto: Timestamp) -> None:
        """The reader is done with everything at or below `upto`. Raises PositionUnknown."""
        await self._record(position_id)
        try:
            async with committed(self._store) as transaction:
                await self._protections.advance(transaction, position_id, upto)
        except KeyError:
            raise PositionUnknown(position_id) from None

    async def release(self, position_id: bytes) -> None:
        """The reader will not come back. Releasing twice is once."""
        async with committed(self._store) as transaction:
            await self._protections.release(transaction, position_id)

    async def next(self, table_id: int, after: Timestamp) -> NextBatch:
        """Up to where a reader of the table at `after` may read next.

        Waits, within reason, for a resolved timestamp above `after`. Raises SQLError 42P01 when the
        table was dropped by then, and BatchTimestampBeforeGC.
        """
        descriptor = await self.descriptor_at(table_id, Timestamp(after + 1))
        resolved = await self._resolved(descriptor.primary_span, after)
        if resolved <= after:
            return NextBatch(upto=after, descriptor=descriptor, changed=False)
        change = await self._change_within(descriptor, resolved)
        upto = resolved if change is None else Timestamp(change.modification_time - 1)
        changed = change is not None or await self._any_version(
            descriptor.primary_span, after, upto
        )
        return NextBatch(upto=upto, descriptor=descriptor, changed=changed)

    async def check_interval(self, descriptor: TableDescriptor, upto: Timestamp) -> None:
        """Raises TableAltered when the table's schema changes above `descriptor`, by `upto`."""
        change = await self._change_within(descriptor, upto)
        if change is not None:
            raise TableAltered(change)

    async def descriptor_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        """The version that is canonical at `at`, or the newest where that lies ahead.

        Raises SQLError 42P01.
        """
        now = await self._store.now()
        found = await self._descriptors.read_at(table_id, min(at, now))
        if not isinstance(found, TableDescriptor) or found.dropped:
            raise SQLError("42P01", f"table {table_id} does not exist at {format_timestamp(at)}")
        return found

    async def _change_within(
        self, descriptor: TableDescriptor, upto: Timestamp
    ) -> TableDescriptor | None:
        """The first version above `descriptor`, by `upto`, under which rows read otherwise."""
        above = descriptor.modification_time
        for version in await self._descriptors.versions([descriptor.id], above, upto):
            assert isinstance(version, TableDescriptor), version
            if version.dropped or not reads_alike(descriptor, version):
                return version
        return None

    async def _any_version(self, span: Span, after: Timestamp, upto: Timestamp) -> bool:
        async with aclosing(self._store.versions(span, after, upto)) as slices:
            async for _ in slices:
                return True
        return False

    async def _resolved(self, span: Span, after: Timestamp) -> Timestamp:
        """A resolved timestamp of the span above `after`; `after` if none comes in time."""
        start = max(after, Timestamp(await self._store.now() - 1))
        feed = self._store.span_feed([span], start)
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                while feed.frontier.low_water <= start:
                    await feed.next()
            return feed.frontier.low_water
        except TimeoutError:
            return after
        finally:
            feed.close()

    async def _record(self, position_id: bytes) -> ProtectedTimestamp:
        transaction = self._store.begin(read_only=True)
        try:
            record = await self._protections.read(transaction, position_id)
        finally:
            await transaction.rollback()
        if record is None or not record.owner.startswith(OWNER_PREFIX):
            raise PositionUnknown(position_id)
        if record.expired(await self._store.now()):
            raise PositionUnknown(position_id)
        return record

    async def _give_up_expired(self) -> None:
        """Removes the positions of readers that have not come back: they protect nothing now."""
        now = await self._store.now()
        for record in await self._protections.read_all(self._store.snapshot(now)):
            if record.owner.startswith(OWNER_PREFIX) and record.expired(now):
                await self.release(record.id)


def reads_alike(first: TableDescriptor, second: TableDescriptor) -> bool:
    """Whether rows have the same columns under both, and lie in the same index."""
    return _reading(first) == _reading(second)


def _reading(table: TableDescriptor) -> tuple[object, ...]:
    columns = [
        (column.id, column.name, column.type, column.nullable, column.missing)
        for column in table.visible_columns
    ]
    return table.primary_index_id, table.primary_key, columns
