"""Boundaries: what a schema event of a table means to a feed of that table.

At an event at T, the table's rows at or above T go on under the new schema. What else happens is
the *kind* of the boundary:

    NONE       nothing: the new schema tells all about old rows
    BACKFILL   the table's rows as of T are shown again, under the new schema, stamped T; the feed's
               resolved timestamp stays at T - 1 until they all have been
    END        the feed ends with everything below T

A boundary that *settles* is crossed only when every row below T has come: a change of the primary
key has no place for a row under the old one, and neither has a table that was emptied.

What a sink that follows schemas can do by itself needs no rows: a column that is added with a
constant default, dropped or renamed. A sink of messages has consumers instead, to whom old rows
mean something else from then on; they are shown them again, as CockroachDB does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...kvlayer.clock import Timestamp, format_timestamp
from ...schemafeed.feed import SchemaFeedError
from ...schemafeed.table_events import (
    LOCK_CHANGES,
    EventKind,
    TableEvent,
    added_columns,
    changed_columns,
    describe,
    rewrites,
)
from ..contract.boundary_kind import BoundaryKind
from ..contract.options import ChangefeedOptions, SchemaChangeEvents, SchemaChangePolicy
from ..contract.queries import FeedQuery


class SchemaChangeEnd(SchemaFeedError):
    """A feed ended at a schema change, because it was to, or because it or its query cannot follow
    it."""

    def __init__(self, what: str, timestamp: Timestamp, *, of_query: bool) -> None:
        super().__init__(f"schema change occurred at {format_timestamp(timestamp)}: {what}")
        self.timestamp = timestamp
        self.of_query = of_query


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A schema event, and what becomes of it. `end` is why the feed ends there, if it does."""

    event: TableEvent
    kind: BoundaryKind
    settles: bool
    end: SchemaChangeEnd | None = None

    @property
    def at(self) -> Timestamp:
        return self.event.timestamp

    @property
    def table_id(self) -> int:
        return self.event.table_id

    @property
    def hidden(self) -> bool:
        """Whether rows are the same on both sides: only then may it be crossed while the table's
        rows as of an earlier boundary are still being shown."""
        return self.kind is BoundaryKind.NONE and not self.event.kinds & ~HIDDEN_CHANGES


BoundaryPlan = Callable[[TableEvent], Boundary]

REWRITES = EventKind.ADD_COLUMN_BACKFILL | EventKind.RETYPE_COLUMN
DEFAULT_EVENTS = REWRITES | EventKind.DROP_COLUMN | EventKind.PRIMARY_KEY_CHANGE
COLUMN_CHANGES = DEFAULT_EVENTS | EventKind.ADD_COLUMN
SETTLING = EventKind.PRIMARY_KEY_CHANGE | EventKind.TRUNCATE
HIDDEN_CHANGES = LOCK_CHANGES | EventKind.OTHER
"""A sink may hear of these with the next row: they show in none."""


def plan_boundary(
    event: TableEvent,
    options: ChangefeedOptions,
    *,
    follows_schema: bool,
    query: FeedQuery | None = None,
) -> Boundary:
    """The meaning of the event for a feed with these options and a sink that does or does not
    follow.

    A change of a column that a `query` names ends the feed, for the query means nothing any more.
    What could not change anything that it shows is no event to the feed.
    """
    kinds = event.kinds
    columns = None if query is None else query.read_columns
    for column, what in [] if query is None else changed_columns(event, query.columns):
        return _end(
            event,
            f'column "{column.name}" of table "{event.before.name}", which the query of the '
            f"changefeed reads, was {what}",
            of_query=True,
        )
    if EventKind.TRUNCATE in kinds and not follows_schema:
        return _end(event, f'table "{event.after.name}" was truncated')
    counts = _counts(event, options)
    if columns is not None:
        counts = counts and _concerns(event, columns)
    elif not follows_schema:
        counts = counts and _shows(event)
    if counts and options.schema_change_policy is SchemaChangePolicy.STOP:
        return _end(event, f'table "{event.after.name}" was changed ({describe(kinds)})')
    needed = counts
    if follows_schema:
        # Under another key, a mirror has none of the rows where they belong; and of a table that
        # was truncated it has dropped also those that were written while that ran, and stay.
        needed = bool(kinds & SETTLING) or rewrites(event.before, event.after)
    if columns is not None and needed:
        needed = _concerns(event, columns)
    backfills = needed and options.schema_change_policy is SchemaChangePolicy.BACKFILL
    return Boundary(
        event=event,
        kind=BoundaryKind.BACKFILL if backfills else BoundaryKind.NONE,
        settles=bool(kinds & SETTLING),
    )


def _end(event: TableEvent, what: str, *, of_query: bool = False) -> Boundary:
    end = SchemaChangeEnd(what, event.timestamp, of_query=of_query)
    return Boundary(event=event, kind=BoundaryKind.END, settles=True, end=end)


def _counts(event: TableEvent, options: ChangefeedOptions) -> bool:
    """Whether it is an event by `schema_change_events`."""
    if options.schema_change_events is SchemaChangeEvents.COLUMN_CHANGES:
        return bool(event.kinds & COLUMN_CHANGES)
    if event.kinds & DEFAULT_EVENTS:
        return True
    # A column with a constant default: old rows are not rewritten, and read otherwise than before.
    added = added_columns(event.before, event.after)
    return any(column.missing is not None for column in added)


def _shows(event: TableEvent) -> bool:
    """Whether messages may read otherwise behind the event: no hidden column is in them."""
    return bool(event.kinds & SETTLING) or event.before.shown_columns != event.after.shown_columns


def _concerns(event: TableEvent, columns: frozenset[int]) -> bool:
    """Whether rows, projected to these columns, may read otherwise behind the event."""
    if event.kinds & SETTLING:
        return True
    changed = {column.id for column in event.before.visible_columns} ^ {
        column.id for column in event.after.visible_columns
    }
    return bool(changed & columns)
