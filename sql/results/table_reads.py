"""The readings of a query's tables: who holds them in columns, who makes virtual ones, and what is
told of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.access import Transaction
from ...kvlayer.clock import WallClock
from ...kvlayer.span import Span


class Source(Enum):
    """The sources of a table's rows. The value is what EXPLAIN prints."""

    CACHE = "columnar cache"  # an image, and what has changed since
    BUILD = "full scan, kept as columns"  # a scan that makes an image
    SCAN = "full scan"
    SPANS = "key range scan"
    INDEX = "index scan"
    INDEX_JOIN = "index scan, then rows by primary key"
    VIRTUAL = "made for the query"


@dataclass(frozen=True, slots=True)
class ImageRead:
    """A table in columns as one transaction sees it: `table` returns the visible columns at some
    places, in broad types. `changed` counts what the image had to be told first."""

    table: Callable[[Sequence[int]], pa.Table]
    source: Source
    changed: int


class Images(Protocol):
    """The tables that are held in columns."""

    def holds(self, table: TableDescriptor) -> bool: ...

    async def read(
        self, table: TableDescriptor, transaction: Transaction, spans: Sequence[Span] | None
    ) -> ImageRead | None:
        """The rows in `spans`, and perhaps others that may be older; all rows for None.

        None where the table is to be scanned.
        """
        ...

    def note_scan(self, table: TableDescriptor, row_count: int) -> None:
        """A table was scanned whole."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """One table of a query, read."""

    table: str
    source: Source
    rows: int
    milliseconds: float
    changed: int = 0


@dataclass(slots=True)
class Trace:
    """Measurements of a running statement for EXPLAIN ANALYZE."""

    wall: WallClock
    reads: list[TableRead] = field(default_factory=list)
    duckdb_milliseconds: float | None = None

    def begin(self) -> int:
        return self.wall.monotonic_ns()

    def since(self, began: int) -> float:
        """Milliseconds since `began`."""
        return (self.wall.monotonic_ns() - began) / 1e6


class VirtualRows(Protocol):
    """Virtual tables, as `introspection` makes them."""

    async def read(self, descriptor: TableDescriptor, reader: Transaction) -> pa.Table:
        """All rows and columns of a virtual table. What is in the store, `reader` reads."""
        ...
