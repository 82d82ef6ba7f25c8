"""The tables that are held in columns, within a bound of memory, and the feeds that tell of their
changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.clock import Timestamp
from ....kvlayer.errors import BatchTimestampBeforeGC, KVError
from ....kvlayer.events import DeleteRange, Event, ValueBatch
from ....kvlayer.process.fibre import end_slice, give_way, in_slices_where
from ....kvlayer.process.memory import share
from ....kvlayer.settings import declare_bytes
from ....kvlayer.span import Span
from ....kvlayer.timestamp import seconds_between
from ...results.table_reads import ImageRead, Source
from .image import Image, ImageBuilder

CACHE_BYTES = declare_bytes(
    "sql.columnar_cache.size",
    share(8, at_most=512 * 1024 * 1024),
    "bytes of memory in which a node holds hot tables as columns; 0 holds none",
)

HOT_SCANS: Final = 2
"""A table is held from its second full scan on: one that is read once is not worth a feed."""

ROWS_MIN: Final = 10_000
"""Smaller tables are scanned in the time that their query takes anyway."""

SCANS_REMEMBERED: Final = 1000
"""Tables whose scans are counted."""

SCANS_WHEN_TOO_LARGE: Final = -50
"""The count of scans of a table that did not fit: it may have shrunk once it is tried again."""

RECENT_SECONDS: Final = 5.0
"""A transaction that reads further back makes no image: history would have to be fed through it."""


class ColumnarCache:
    """The images of a node's hot tables. The one that was read longest ago goes first."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._tables: dict[int, FollowedTable] = {}  # by table id, the last one read last
        self._scans: dict[int, int] = {}  # how hot other tables are
        self._building: set[int] = set()

    @property
    def byte_count(self) -> int:
        return sum(table.byte_count for table in self._tables.values())

    def holds(self, table: TableDescriptor) -> bool:
        known = self._tables.get(table.id)
        return known is not None and known.image.serves(table)

    async def read(
        self, table: TableDescriptor, transaction: Transaction, spans: Sequence[Span] | None
    ) -> ImageRead | None:
        """As `table_reads.Images.read`. A full read of a hot table makes its image."""
        if transaction.commit_checks:
            return None  # it may have made or changed the table itself
        if self._store.settings.get(CACHE_BYTES) <= 0:
            await self._shrink(0)
            return None
        known = self._tables.get(table.id)
        if known is not None and not known.image.serves(table):
            if known.image.descriptor.version > table.version:
                return None  # a reader that is one version behind: they will be fewer
            await known.close()
            known, self._scans[table.id] = None, HOT_SCANS
        if known is None:
            return None if spans is not None else await self._build(table, transaction)
        if spans is None:
            self._tables[table.id] = self._tables.pop(table.id)
        try:
            found = await known.read(transaction, spans or [table.primary_span])
        except BatchTimestampBeforeGC:
            # The image is that old only if its feed has stood still. The scan tells whether the
            # transaction itself is.
            await known.close()
            return None
        if found is None:
            return None
        await self._shrink(self._store.settings.get(CACHE_BYTES))
        self._store.metrics.add("sql_columnar_cache_hits_total")
        image, changed = found
        return ImageRead(image, Source.CACHE, changed)

    def note_scan(self, table: TableDescriptor, row_count: int) -> None:
        """Counts a full scan. System tables are small, and read by their own users."""
        if row_count < ROWS_MIN or table.id < FIRST_USER_ID or table.id in self._tables:
            return
        count = self._scans.pop(table.id, 0) + 1
        if len(self._scans) >= SCANS_REMEMBERED:
            del self._scans[next(iter(self._scans))]
        self._scans[table.id] = count

    async def close(self) -> None:
        await self._shrink(0)

    # Which tables are held

    async def _build(self, table: TableDescriptor, transaction: Transaction) -> ImageRead | None:
        """Reads the table for the transaction, and holds what it read, if the table is hot."""
        if self._scans.get(table.id, 0) + 1 < HOT_SCANS or table.id in self._building:
            return None
        age = seconds_between(transaction.read_timestamp, self._store.clock.last)
        if transaction.write_count or age > RECENT_SECONDS:
            return None
        self._building.add(table.id)
        try:
            image = await self._scanned(table, transaction)
        finally:
            self._building.discard(table.id)
        if image is None:
            self._scans[table.id] = SCANS_WHEN_TOO_LARGE
            return None
        self._scans.pop(table.id, None)
        with suppress(KVError):  # there may be no feed to be had: the next scan may find one
            followed = FollowedTable(self._store, image, self._forget)
            self._tables[table.id] = followed
            await self._shrink(self._store.settings.get(CACHE_BYTES))
        return ImageRead(image, Source.BUILD, 0)

    async def _scanned(self, table: TableDescriptor, transaction: Transaction) -> Image | None:
        """The table as an image, or None where that would take more memory than there may be."""
        builder = ImageBuilder(table)
        limit = self._store.settings.get(CACHE_BYTES)
        async for rows in transaction.scan_slices(table.primary_span):
            await asyncio.sleep(0)  # rows are read in a step, and decoded in another
            await builder.add(rows)
            if builder.byte_count > limit:
                return None
        return await builder.finish(settled_below(transaction))

    async def _shrink(self, limit: int) -> None:
        """Lets go of tables until the rest fit."""
        while self._tables and (limit <= 0 or self.byte_count > limit):
            await next(iter(self._tables.values())).close()
        self._note_size()

    def _forget(self, table: FollowedTable) -> None:
        table_id = table.image.descriptor.id
        if self._tables.get(table_id) is table:
            del self._tables[table_id]
        self._note_size()

    def _note_size(self) -> None:
        self._store.metrics.put("sql_columnar_cache_tables", len(self._tables))
        self._store.metrics.put("sql_columnar_cache_bytes", self.byte_count)


PENDING_ROWS_MAX = 20_000
"""Changes that wait for a reader. More are folded into the image without one: that costs about as
much as they would cost the next reader, and bounds what waits."""

UNREAD_SHARE_MAX = 0.5
"""An image is let go once so many of its rows (each change counted) have changed since it was read:
from there on following it costs more than scanning the table again would."""

UNREAD_ROWS_MIN = 100_000
"""Fewer changes than these are no reason to let go of an image, however small it is."""


_KEYS_PER_STEP = 32


@dataclass(frozen=True, slots=True)
class _Pending:
    """Changes that wait, none above `upto`."""

    batch: ValueBatch
    upto: Timestamp
    byte_count: int


def settled_below(transaction: Transaction) -> Timestamp:
    """Up to where what the transaction has read without writing stays what it is.

    HAZARD: not at its read timestamp itself. It may go on to write, and commit there; nobody else
    can.
    """
    return Timestamp(transaction.read_timestamp - 1)


class FollowedTable:
    """An image, and the changes above it that its table's range feed has brought.

    The feed starts where the image stands. A change is *pending* until it is folded into the image,
    which is done up to a timestamp at or below the feed's resolved one: then no change is missing
    below it. What lies above, a reader asks its transaction for; so a read neither waits for the
    closed timestamp nor depends on how far the feed has come.
    """

    def __init__(
        self, store: StoreAccess, image: Image, on_end: Callable[[FollowedTable], None]
    ) -> None:
        self.image = image
        self._on_end = on_end
        self._pending: list[_Pending] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._unread_rows = 0
        self._folding = asyncio.Lock()
        self._feed = store.span_feed([image.descriptor.primary_span], image.at)
        self._task = asyncio.create_task(
            self._follow(), name=f"columnar cache of table {image.descriptor.id}"
        )

    @property
    def byte_count(self) -> int:
        return self.image.byte_count + self._pending_bytes

    async def close(self) -> None:
        """Ends the feed. What reads the image goes on."""
        self._feed.close()
        self._on_end(self)
        self._task.cancel()
        if self._task is not asyncio.current_task():
            await asyncio.wait([self._task])

    async def read(
        self, transaction: Transaction, spans: Sequence[Span]
    ) -> tuple[Image, int] | None:
        """The table as the transaction sees it, as far as it lies in `spans`; rows outside of them
        may be older. And how many keys had changed since the image was made.

        None for a transaction that reads below the image: it must scan.
        """
        at = transaction.read_timestamp
        async with self._folding:
            if at < self.image.at:
                return None
            changed = await self._fold(min(at, self._resolved))
            image = self.image
        changes: dict[bytes, bytes | None] = {}
        for span in spans:
            async for found in transaction.changed_slices(span, image.at):
                changes.update(found)
        seen = await image.changed(changes, at)
        self._unread_rows = 0
        if image.descriptor.primary_span in spans and not transaction.write_count:
            # What was read can no more change, but by the reader: see `settled_below`.
            settled = replace(seen, at=settled_below(transaction))
            async with self._folding:
                if self.image.at < settled.at:
                    self.image = settled
        return seen, changed + len(changes)

    @property
    def _resolved(self) -> Timestamp:
        return self._feed.frontier.low_water

    async def _fold(self, upto: Timestamp) -> int:
        """Puts the pending changes at or below `upto` into the image, and returns how many.

        The image and what is pending change in one step, at the end: a reader may be cancelled.
        """
        assert upto <= self._resolved, (upto, self._resolved)
        image = self.image
        if upto <= image.at:
            return 0
        folded = list(self._pending)  # others come while this goes on
        changes = await in_slices_where(
            self._pending_rows > _KEYS_PER_STEP, lambda: _newest(folded, image.at, upto)
        )
        self.image = await image.changed(changes, upto)
        later = [each for each in folded if each.upto > upto]
        self._pending = [*later, *self._pending[len(folded) :]]
        self._pending_rows = sum(len(each.batch) for each in self._pending)
        self._pending_bytes = sum(each.byte_count for each in self._pending)
        return len(changes)

    # The feed

    async def _follow(self) -> None:
        try:
            while True:
                for event in await self._feed.next():
                    if not self._take(event):
                        return
                if self._pending_rows > PENDING_ROWS_MAX:
                    async with self._folding:
                        await self._fold(self._resolved)
        except KVError:
            pass  # the feed's end: the table is scanned again, and followed anew if it is hot
        finally:
            self._feed.close()
            self._on_end(self)

    def _take(self, event: Event) -> bool:
        """Says whether the image is still worth following."""
        match event:
            case ValueBatch():
                self._keep(event)
                self._unread_rows += len(event)
                bound = max(UNREAD_ROWS_MIN, self.image.row_count * UNREAD_SHARE_MAX)
                return self._unread_rows <= bound
            case DeleteRange():
                return False  # the rows are gone, and a new image of what is left is cheap
        return True

    def _keep(self, batch: ValueBatch) -> None:
        byte_count = sum(map(len, batch.keys)) + sum(map(len, filter(None, batch.values)))
        pending = _Pending(batch, max(batch.timestamps), byte_count)
        self._pending.append(pending)
        self._pending_rows += len(batch)
        self._pending_bytes += pending.byte_count


def _newest(
    pending: Iterable[_Pending], above: Timestamp, upto: Timestamp
) -> dict[bytes, bytes | None]:
    """The newest change of each key above the one timestamp and up to the other."""
    newest: dict[bytes, tuple[Timestamp, bytes | None]] = {}
    for each in pending:
        batch = each.batch
        changes = zip(batch.keys, batch.values, batch.timestamps, strict=True)
        for number, (key, body, ts) in enumerate(changes):
            if not number % _KEYS_PER_STEP:
                give_way()
            if above < ts <= upto and (key not in newest or newest[key][0] < ts):
                newest[key] = (ts, body)
    end_slice()
    return {key: body for key, (_, body) in newest.items()}
