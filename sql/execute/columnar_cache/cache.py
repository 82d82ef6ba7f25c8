"""Which tables are held in columns, within a bound of memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.system_tables import FIRST_USER_ID
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.errors import BatchTimestampBeforeGC, KVError
from ....kvlayer.settings import declare_int
from ....kvlayer.span import Span
from ....kvlayer.timestamp import seconds_between
from ...results.table_reads import ImageRead, Source
from .followed_table import FollowedTable, settled_below
from .image import Image, ImageBuilder

CACHE_BYTES = declare_int(
    "sql.columnar_cache.size",
    512 * 1024 * 1024,
    "bytes of memory in which a node holds hot tables as columns; 0 holds none",
)

HOT_SCANS: Final = 2
"""A table is held from its second full scan on: one that is read once is not worth a feed."""

ROWS_MIN: Final = 10_000
"""Smaller tables are scanned in the time that their query takes anyway."""

SCANS_REMEMBERED: Final = 1000
"""Tables whose scans are counted."""

SCANS_WHEN_TOO_LARGE: Final = -50
"""Where counting begins again for a table that did not fit: it may have shrunk by then."""

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
        found = await self._read_known(known, table, transaction, spans)
        self._store.metrics.add("sql_columnar_cache_hits_total", 1 if found is not None else 0)
        return found

    async def _read_known(
        self,
        known: FollowedTable,
        table: TableDescriptor,
        transaction: Transaction,
        spans: Sequence[Span] | None,
    ) -> ImageRead | None:
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
        await self._hold(image)
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

    async def _hold(self, image: Image) -> None:
        try:
            followed = FollowedTable(self._store, image, self._forget)
        except KVError:
            return  # there is no feed to be had: the next scan may find one
        self._tables[image.descriptor.id] = followed
        await self._shrink(self._store.settings.get(CACHE_BYTES))

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
