"""The tables that are held in columns, within a bound of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.clock import Timestamp, duration
from ....kvlayer.errors import BatchTimestampBeforeGC
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
"""A table is held from its second full scan on: one that is read once is not worth the memory."""

ROWS_MIN: Final = 10_000
"""Smaller tables are scanned in the time that their query takes anyway."""

SCANS_REMEMBERED: Final = 1000
"""Tables whose scans are counted."""

SCANS_WHEN_TOO_LARGE: Final = -50
"""The count of scans of a table that did not fit: it may have shrunk once it is tried again."""

RECENT_SECONDS: Final = 5.0
"""A transaction that reads further back makes no image. An image that is older is brought up to
here before some of its keys are read: nobody writes so far back, so nobody is waited for."""

CHANGES_MIN: Final = 10_000
CHANGED_SHARE: Final = 4
"""Versions of which an image is brought up, or as many as the share of its rows if that is more:
beyond it a scan costs less."""


class _TooManyChanges(Exception):
    """An image is better made anew than brought up."""


class ColumnarCache:
    """The images of a node's hot tables. The one that was read longest ago goes first.

    An image is as of the last transaction that read all of its table. Whoever reads asks its own
    transaction for what was written since, as far as it lies in the keys that it reads.
    """

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._images: dict[int, Image] = {}  # by table id, the last one read last
        self._scans: dict[int, int] = {}  # how hot other tables are
        self._building: set[int] = set()

    @property
    def byte_count(self) -> int:
        return sum(image.byte_count for image in self._images.values())

    def holds(self, table: TableDescriptor) -> bool:
        image = self._images.get(table.id)
        return image is not None and image.serves(table)

    async def read(
        self, table: TableDescriptor, transaction: Transaction, spans: Sequence[Span] | None
    ) -> ImageRead | None:
        """As `table_reads.Images.read`. A full read of a hot table makes its image."""
        if transaction.commit_checks:
            return None  # it may have made or changed the table itself
        if self._store.settings.get(CACHE_BYTES) <= 0:
            self._shrink()
            return None
        image = self._images.get(table.id)
        if image is not None and not image.serves(table):
            if image.descriptor.version > table.version:
                return None  # a reader that is one version behind: they will be fewer
            self._make_anew(table)
            image = None
        if image is not None:
            try:
                return await self._brought_up(image, transaction, spans)
            except (_TooManyChanges, BatchTimestampBeforeGC):
                self._make_anew(table)
        return None if spans is not None else await self._build(table, transaction)

    async def _brought_up(
        self, image: Image, transaction: Transaction, spans: Sequence[Span] | None
    ) -> ImageRead | None:
        """The table as the transaction sees it, as far as it lies in `spans`; rows outside of them
        may be older. None for a transaction that reads below the image: it must scan."""
        at, table = transaction.read_timestamp, image.descriptor
        if at < image.at:
            return None
        if spans is None:
            self._images[table.id] = self._images.pop(table.id)
        else:
            image = await self._recent(image, Timestamp(at - duration(seconds=RECENT_SECONDS)))
        changes = await _changes(image, transaction, spans or [table.primary_span])
        seen = await image.changed(changes, at)
        if spans is None and not transaction.write_count:
            # What was read can no more change, but by the reader: see `settled_below`.
            self._keep(replace(seen, at=settled_below(transaction)))
        self._store.metrics.add("sql_columnar_cache_hits_total")
        return ImageRead(seen.table, Source.CACHE, len(changes))

    async def _recent(self, image: Image, upto: Timestamp) -> Image:
        """The image, brought up to `upto` where it is older: readers of a few keys do not walk what
        was written since somebody read them all."""
        if image.at >= upto:
            return image
        transaction = self._store.begin(read_timestamp=upto, read_only=True)
        try:
            await transaction.started()
            changes = await _changes(image, transaction, [image.descriptor.primary_span])
        finally:
            await transaction.rollback()
        recent = await image.changed(changes, settled_below(transaction))
        self._keep(recent)
        return recent

    def note_scan(self, table: TableDescriptor, row_count: int) -> None:
        """Counts a full scan. System tables are small, and read by their own users."""
        if row_count < ROWS_MIN or table.id < FIRST_USER_ID or table.id in self._images:
            return
        count = self._scans.pop(table.id, 0) + 1
        if len(self._scans) >= SCANS_REMEMBERED:
            del self._scans[next(iter(self._scans))]
        self._scans[table.id] = count

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
        self._images[table.id] = image
        self._shrink()
        return ImageRead(image.table, Source.BUILD, 0)

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

    def _keep(self, image: Image) -> None:
        """Puts an image in the place of an older one of its table, if one is held."""
        held = self._images.get(image.descriptor.id)
        if held is not None and held.serves(image.descriptor) and held.at < image.at:
            self._images[image.descriptor.id] = image
            self._shrink()

    def _make_anew(self, table: TableDescriptor) -> None:
        """Lets go of a table's image; the next full read makes another."""
        self._images.pop(table.id, None)
        self._scans[table.id] = HOT_SCANS

    def _shrink(self) -> None:
        """Lets go of tables until the rest fit."""
        limit = self._store.settings.get(CACHE_BYTES)
        while self._images and (limit <= 0 or self.byte_count > limit):
            del self._images[next(iter(self._images))]
        self._store.metrics.put("sql_columnar_cache_tables", len(self._images))
        self._store.metrics.put("sql_columnar_cache_bytes", self.byte_count)


def settled_below(transaction: Transaction) -> Timestamp:
    """Up to where what the transaction has read without writing stays what it is.

    HAZARD: not at its read timestamp itself. It may go on to write, and commit there; nobody else
    can.
    """
    return Timestamp(transaction.read_timestamp - 1)


async def _changes(
    image: Image, transaction: Transaction, spans: Iterable[Span]
) -> dict[bytes, bytes | None]:
    """Returns the rows of spans that were written since an image was made, None for deleted ones.
    Raises _TooManyChanges, and BatchTimestampBeforeGC where the image is too old."""
    most = max(CHANGES_MIN, image.row_count // CHANGED_SHARE)
    changes: dict[bytes, bytes | None] = {}
    found_count = 0
    for span in spans:
        async with aclosing(transaction.changed_slices(span, image.at)) as slices:
            async for found in slices:
                changes.update(found)
                found_count += len(found)
                if found_count > most:
                    raise _TooManyChanges
    return changes
