"""Membership: which tables of a database a feed of the whole database is to follow.

Whoever runs the feed follows the database's descriptors beside its tables' rows. They are a part of
the feed's frontier, so nothing is resolved at or above the creation of a table that has not joined:

    frontier   orders 120, descriptors 120      resolved 120
    CREATE TABLE refunds, at 130
    frontier   orders 140, descriptors 129      resolved 129: refunds joins, with all from 130 on
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...catalog.descriptors.descriptor import Descriptor, TableDescriptor
from ...catalog.descriptors.names import own_name
from ...catalog.store.descriptor_store import decode_stored
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp, format_timestamp
from ...kvlayer.events import Event, ValueBatch
from ...kvlayer.span import Span
from ...schemafeed.feed import SchemaFeedError
from ..encode.headers import check_named_columns
from ..sinks.kind import SinkKind
from ..sinks.protocol import FeedIdentity, SinkRefused
from ..targets import DatabaseTables, TargetState
from .create import protect
from .details import ChangefeedDetails, TargetDetails
from .reservations import check_free
from .services import ChangefeedServices
from .sink_uris import whole_uri


class DatabaseDropped(SchemaFeedError):
    """The database of a feed was dropped, and its tables with it."""

    def __init__(self, name: str, at: Timestamp) -> None:
        super().__init__(f'database "{name}" was dropped at {format_timestamp(at)}')


class Membership:
    """The tables that an attempt does not follow yet, as their descriptors come."""

    def __init__(
        self,
        services: ChangefeedServices,
        database: DatabaseTables,
        known: frozenset[int],
        *,
        start_at: Timestamp,
        join: Callable[[Sequence[TargetDetails]], Awaitable[None]],
    ) -> None:
        """`known` are the ids of the feed's targets; `join` is given those that are to be more."""
        self.id = database.id
        self.span: Span = database.span
        self.start_at = start_at
        self._services = services
        self._database = database
        self._known = set(known)
        self._join = join
        self._arrived: list[tuple[TableDescriptor, str]] = []
        self._dropped: DatabaseDropped | None = None
        self._dropped_at: Timestamp | None = None

    async def take(self, events: Sequence[Event], resolved: Timestamp) -> Timestamp:
        """Up to when the feed's targets are all that there are, descriptors having been told of up
        to `resolved`."""
        for event in events:
            if isinstance(event, ValueBatch):
                for key, body, at in zip(event.keys, event.values, event.timestamps, strict=True):
                    if body is not None:
                        await self._note(decode_stored(key, body, at))
        firsts = [table.modification_time for table, _ in self._arrived]
        if self._dropped_at is not None:
            firsts.append(self._dropped_at)
        return min([resolved, *(Timestamp(first - 1) for first in firsts)])

    @property
    def ended(self) -> Exception | None:
        """The error for which no table will join any more."""
        return None if self._arrived else self._dropped

    async def join(self) -> None:
        """Lets the tables that have arrived join the feed."""
        if self._arrived:
            await self._join([_joining(table, name) for table, name in self._arrived])

    async def _note(self, descriptor: Descriptor) -> None:
        if descriptor.id == self.id and descriptor.dropped:
            self._dropped_at = descriptor.modification_time
            self._dropped = DatabaseDropped(self._database.name, self._dropped_at)
        if descriptor.id in self._known or descriptor.dropped:
            return
        if not self._database.holds(descriptor):
            return
        assert isinstance(descriptor, TableDescriptor), descriptor
        reader = self._services.store.snapshot(descriptor.modification_time)
        name = await self._database.name_of(self._services.descriptors, reader, descriptor)
        if self._database.takes(name):
            self._known.add(descriptor.id)
            self._arrived.append((descriptor, name))


def _joining(table: TableDescriptor, name: str) -> TargetDetails:
    """A table as it joins: with all of its history, or, where it was there under a name that is not
    the feed's, with its rows as of then."""
    at = table.modification_time
    if table.version > 1:
        return TargetDetails(table_id=table.id, name=name, start_at=at)
    return TargetDetails(
        table_id=table.id, name=name, start_at=Timestamp(at - 1), scans=False, created_at=at
    )


async def protected_targets(
    services: ChangefeedServices,
    kind: SinkKind,
    details: ChangefeedDetails,
    joining: Sequence[TargetDetails],
    feed: FeedIdentity,
) -> ChangefeedDetails:
    """The feed's details with targets that join it, what they have still to show being protected. A
    table that cannot join is one that has failed, by an error that says why.

    A table whose place at the sink is that of a dropped one joins once that one has left the feed:
    the feed is on its way to the drop, and the attempt behind it hears of the table again.
    """
    for target in joining:
        if details.target(target.table_id) is not None:
            continue
        holder = holder_of(services, kind, details, target)
        if holder is not None and await leaves(services, holder):
            continue
        details = await _joined(services, kind, details, target, holder, feed)
    return details


def holder_of(
    services: ChangefeedServices, kind: SinkKind, details: ChangefeedDetails, target: TargetDetails
) -> TargetDetails | None:
    """The feed's other target that has at the sink what `target` would have to itself, if one has.

    Both go there by the names under which they joined."""
    uri = whole_uri(services, details)
    shared = kind.reserved(uri, ())

    def places(*of: TargetDetails) -> frozenset[str]:
        return kind.reserved(uri, [own_name(each.name) for each in of]) - shared

    wanted = places(target)
    others = [
        each
        for each in details.targets
        if each.table_id != target.table_id
        and each.keyspace is None
        and not (each.state.final or each.refused)
    ]
    # Nearly always nobody has it, which is asked at once: a database has many tables.
    if not wanted & places(*others):
        return None
    return next((each for each in others if wanted & places(each)), None)


async def leaves(services: ChangefeedServices, target: TargetDetails) -> bool:
    """Whether the feed will drop the target by itself: it is followed up to where its table was
    dropped."""
    table = await services.descriptors.read_at(target.table_id, await services.store.now())
    return target.state.followed and (table is None or table.dropped)


async def _joined(
    services: ChangefeedServices,
    kind: SinkKind,
    details: ChangefeedDetails,
    target: TargetDetails,
    holder: TargetDetails | None,
    feed: FeedIdentity,
) -> ChangefeedDetails:
    transaction = services.store.begin()
    try:
        if holder is not None:
            raise SQLError("55000", f"{holder.name} of the same feed has its place at the sink")
        table = await services.descriptors.read_at(target.table_id, await services.store.now())
        protection_id = await protect(
            services,
            transaction,
            [services.target(target.table_id)],
            target.start_at,
            max_age_seconds=details.parsed_options.gc_protect_expires_after,
        )
        kept = msgspec.structs.replace(target, protection_id=protection_id)
        joined = msgspec.structs.replace(details, targets=(*details.targets, kept))
        await check_free(services, transaction, joined, job_id=feed.job_id)
        if isinstance(table, TableDescriptor) and not table.dropped:
            uri = whole_uri(services, details)
            await kind.admit(uri, [table], feed)
            check_named_columns([table], details.parsed_options)
        await transaction.commit()
    except (SQLError, SinkRefused) as refused:
        await transaction.rollback()
        services.store.metrics.add("changefeed_targets_left_total")
        failed = msgspec.structs.replace(
            target, state=TargetState.FAILED, error=str(refused), fresh=True
        )
        return msgspec.structs.replace(details, targets=(*details.targets, failed))
    except BaseException:
        await transaction.rollback()
        raise
    return joined
