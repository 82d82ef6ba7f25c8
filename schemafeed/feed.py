"""The protocol of schema feeds: what is asked, what is answered, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..catalog.descriptors.descriptor import TableDescriptor
from ..kvlayer.clock import Timestamp, format_timestamp
from .table_events import TableEvent


class SchemaFeedError(Exception):
    """Root of what ends a schema feed, and the changefeed over it. Trying again does not help."""


class TableDropped(SchemaFeedError):
    """A watched table was dropped: no row at or above `timestamp` has a schema."""

    def __init__(self, name: str, table_id: int, timestamp: Timestamp) -> None:
        super().__init__(
            f'table "{name}" (id {table_id}) was dropped at {format_timestamp(timestamp)}'
        )
        self.name = name
        self.table_id = table_id
        self.timestamp = timestamp


class TableUnknown(SchemaFeedError):
    """A table that has no descriptor at the time at which the feed is to start."""

    def __init__(self, table_id: int, at: Timestamp) -> None:
        super().__init__(f"there is no table with id {table_id} at {format_timestamp(at)}")
        self.table_id = table_id
        self.timestamp = at


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """A proof of a table's schema up to the timestamp that was asked for.

    `events` are those not yet popped, in order. `canonical` holds from `since` up to the timestamp
    asked for: from the last of the events on or, where there is none, from before the last pop. A
    row below `since` is decoded by what `SchemaFeed.canonical_at` says of its own timestamp.
    """

    events: tuple[TableEvent, ...]
    canonical: TableDescriptor
    since: Timestamp


class SchemaFeed(Protocol):
    """Answers which schema is canonical for a row at a timestamp, table by table.

    Every table has its own frontier: up to there its schema is proven, and nothing can be published
    any more. A table that was dropped raises TableDropped for every timestamp from its drop on.

    HAZARD: what is asked about must lie in the past, as every row and every checkpoint does: below
    a timestamp that the store's clock has drawn. What a lease covers of the future it covers only
    for as long as it is held.
    """

    async def start(self, table_ids: Iterable[int], at: Timestamp) -> None:
        """Watches the tables, primed with their descriptors as of `at`. Raises TableUnknown."""
        ...

    def try_peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        """`peek` where it needs no waiting, else None. For the hot path."""
        ...

    async def peek(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        """The schema events up to `at_or_before`, once they are proven complete."""
        ...

    def try_pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer | None:
        """`pop` where it needs no waiting, else None, and then nothing is consumed."""
        ...

    async def pop(self, table_id: int, at_or_before: Timestamp) -> SchemaAnswer:
        """`peek`, and its events are consumed."""
        ...

    def canonical_at(self, table_id: int, at: Timestamp) -> TableDescriptor:
        """The descriptor canonical at `at`, which lies between the feed's start and its frontier.

        For rows that come after younger ones: rows of different keys come in no order.
        """
        ...

    def frontier(self, table_id: int) -> Timestamp:
        """Up to where the table's schema is proven."""
        ...

    async def close(self) -> None: ...


class DelegateSchemaFeed(SchemaFeed, Protocol):
    """A schema feed that another one runs only while it must."""

    def pause(self, table_id: int) -> None:
        """Stops proving the table's schema; what is proven stays answerable."""
        ...

    def resume(self, table_id: int, at: Timestamp) -> None:
        """Goes on proving, from `at` where that is ahead of what it has proven itself.

        What lies between is the caller's proof: nothing happened there but steps between versions
        that are logically equal. Events at or below `at` are consumed, which must be such steps
        too. A table that is being proven already only has its start moved.
        """
        ...

    def pending(self, table_id: int) -> bool:
        """Whether events are proven that nobody popped."""
        ...

    async def changed(self) -> None:
        """Returns when a frontier moved, or a table was paused or resumed."""
        ...
