"""Creating a changefeed: everything is checked before there is a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp, duration, format_timestamp
from ...kvlayer.protected_timestamp import ProtectionRefused
from ...kvlayer.raw import START_WINDOW
from ...kvlayer.settings import declare_duration
from ...kvlayer.txn import Transaction
from ..contract.options import (
    ChangefeedOptions,
    ScanChoice,
    check_effective,
    parse_options,
)
from ..contract.queries import FeedQuery
from ..encode.headers import check_named_columns
from ..sinks.kinds import AnyKind, scheme_of
from ..sinks.protocol import SinkError, SinkRefused
from ..sinks.registry import check_registry
from ..sinks.tailrace import ReplicatingKind
from ..sinks.worker import WorkerKind
from ..targets import DatabaseTables, FeedTarget, KeyspacePart
from .details import ChangefeedDetails, ReplicationTask, TargetDetails
from .places import claim_place
from .reach import check_reach
from .reservations import PROTECTION_OWNER, check_free
from .sealed_options import sealed_options
from .services import ChangefeedServices
from .sink_uris import FeedSink, find_sink, in_mirror_schema

PROTECTION_MAX_AGE = declare_duration(
    "changefeed.protect_timestamp.max_age",
    96 * 3600.0,
    "how long a changefeed that makes no progress keeps rows from garbage collection (0: for ever)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """A CREATE CHANGEFEED, its tables found.

    `names[i]` is the full name of `tables[i]`, versions that are canonical at `at`, the time of the
    statement. Options are as written, a bare one with None.
    """

    tables: Sequence[TableDescriptor]
    names: Sequence[str]
    options: Mapping[str, str | None]
    at: Timestamp
    user: str = ROOT
    keyspace: KeyspacePart | None = None
    """The keys that are sent of the one table, where it is a raw keyspace."""
    resolved: Timestamp | None = None
    """The timestamp up to which a replica had its source's entries as of the statement."""
    replication: str | None = None
    """The name of a feed into a replica of the keyspace."""
    task: ReplicationTask | None = None
    """The feed's place where several make the replication, begun at `node_id`."""
    node_id: int | None = None
    query: FeedQuery | None = None
    """The query of the changes of the one table."""
    whole_database: DatabaseTables | None = None
    """The database whose tables are sent, those that come later among them."""

    @property
    def whole_keyspace(self) -> bool:
        """Whether it is of all keys of a keyspace that is written here."""
        part = self.keyspace
        return part is not None and part == KeyspacePart(replica=part.replica) and not self.resolved

    @property
    def newest(self) -> Timestamp:
        """The begin of a feed without a cursor: nothing at or below it is still to come."""
        return self.at if self.resolved is None else self.resolved


class JobCreator(Protocol):
    """The interface of the job registry to the creation of a feed or a schedule."""

    async def create(
        self,
        transaction: Transaction,
        kind: str,
        description: str,
        payload: bytes,
        *,
        paused: bool,
    ) -> int: ...


async def plan_changefeed(
    services: ChangefeedServices,
    transaction: Transaction,
    request: FeedRequest,
    sink_uri: str,
    *,
    user_name: str,
) -> ChangefeedDetails:
    """Checks the request and says what the new feed's job is to hold.

    All that it writes, in `transaction`, is the protected timestamp of the feed's start, and what
    it reads there keeps two feeds from getting one mirror table. Raises
    SQLError for anything about the request that will not do.
    """
    options = parse_options(request.options, request.query)
    sink = await _find_sink(services, transaction, sink_uri, user_name)
    kind = services.kinds.kind_of(sink.uri)
    start_at = check_end(options, request.newest)
    if request.whole_database is not None:
        check_follows_database(options, kind, scheme_of(sink.uri))
    check_effective(request.options, kind.obeys, scheme_of(sink.uri))
    if not isinstance(kind, WorkerKind):
        kind.check_options(options)
        await kind.load(options, services.offload)
    elif request.keyspace is not None and not request.whole_keyspace:
        raise SQLError(
            "0A000",
            f"into {scheme_of(sink_uri)} goes only a whole keyspace that is written here",
            hint="Spark reads it from this store as a table. INTO 'duckdb:///…' keeps a mirror of "
            "some keys, or of a replica; a replication without engine = 'spark' sends some keys.",
        )
    await check_start(services, request, options.cursor)
    if options.mirror_schema is not None:
        sink = in_mirror_schema(sink, options.mirror_schema)
    tables = request.tables
    if request.query is not None:
        tables = [await shown_table(services, request, request.query, kind, sink.uri, start_at)]
    check_named_columns(tables, options)
    await check_registry(options, services.store.settings)
    await _claim_sink(services, transaction, sink, kind, user_name)
    details = ChangefeedDetails(
        store_id=services.store.id,
        node_id=services.node_id if request.node_id is None else request.node_id,
        whole_database=request.whole_database,
        targets=_targets(request, options, start_at),
        sink_uri=sink.shown,
        sealed_uri=sink.sealed,
        connection=sink.connection,
        options=sealed_options(services, request.options),
        replication=request.replication or "",
        task=request.task,
        user_name=user_name,
        owner_logs_in=services.rights.current.may_log_in(user_name),
        start_at=start_at,
        query=request.query,
        created_at=request.at,
        protection_id=await protect(
            services,
            transaction,
            targets_of(services, request.tables, request.keyspace),
            start_at,
            max_age_seconds=options.gc_protect_expires_after,
        ),
    )
    await check_free(services, transaction, details)
    try:
        await kind.validate(sink.uri, tables, store_id=services.store.id)
    except SinkRefused as refused:
        raise SQLError("55000", str(refused)) from refused
    return details


async def _claim_sink(
    services: ChangefeedServices,
    transaction: Transaction,
    sink: FeedSink,
    kind: AnyKind,
    user_name: str,
) -> None:
    """Raises SQLError where the user may not write there."""
    if not sink.connection:
        await check_reach(services, sink.uri, user_name)
    for place in _places(kind, sink.uri):
        await claim_place(services, transaction, place, user_name)


def _places(kind: AnyKind, uri: str) -> list[str]:
    """The places that a feed needs the right to: its sink, and the folder of a replica's backup."""
    backup = kind.backup_of(uri) if isinstance(kind, ReplicatingKind) else None
    return [uri] if backup is None else [uri, backup]


def _targets(
    request: FeedRequest, options: ChangefeedOptions, start_at: Timestamp
) -> tuple[TargetDetails, ...]:
    return tuple(
        TargetDetails(
            table_id=table.id,
            name=name,
            start_at=start_at,
            scans=options.initial_scan is not ScanChoice.NO,
            keyspace=request.keyspace,
        )
        for table, name in zip(request.tables, request.names, strict=True)
    )


async def shown_table(
    services: ChangefeedServices,
    request: FeedRequest,
    query: FeedQuery,
    kind: AnyKind,
    sink_uri: str,
    start_at: Timestamp,
) -> TableDescriptor:
    """The table that a sink is shown by a query. Raises SQLError where there is no such query, or
    the sink can make nothing of it."""
    if isinstance(kind, WorkerKind):
        raise SQLError(
            "0A000",
            "CDC queries into this sink are not supported: its worker reads the table by itself",
            hint="Without INTO, and into files and mirrors, they are.",
        )
    if kind.whole_tables is not None:
        raise SQLError(
            "0A000", "CDC queries into this sink are not supported", detail=kind.whole_tables
        )
    result = await check_query(services, request, query, start_at)
    if not kind.follows(sink_uri):
        return result
    if kind.wants_previous(sink_uri):
        raise SQLError(
            "0A000",
            "CDC queries into a log of changes are not supported",
            hint="Without mode=log, and without mode=both, they are.",
        )
    if query.previous or query.tells_event:
        raise SQLError(
            "0A000",
            "a mirror holds rows: cdc_prev and functions that tell of an event are not supported "
            "in its CDC query",
            hint="Without INTO, or into files, the changes themselves are shown.",
        )
    (table,) = request.tables
    missing = [column.name for column in result.key_columns if column.hidden]
    if missing and not table.keyless:
        raise SQLError(
            "0A000",
            f'a mirror finds its rows by the primary key of table "{table.name}", and the CDC '
            f"query does not show {', '.join(missing)}",
            hint="SELECT the columns of the primary key, too.",
        )
    return result


async def check_query(
    services: ChangefeedServices, request: FeedRequest, query: FeedQuery, start_at: Timestamp
) -> TableDescriptor:
    """The result of a query as of a feed's start. Raises SQLError."""
    if services.queries is None:
        raise SQLError("0A000", "this node computes no CDC queries")
    (table,) = request.tables
    if start_at < request.at:
        found = await services.descriptors.read_at(table.id, start_at)
        assert isinstance(found, TableDescriptor), "a cursor is checked first"
        table = found
    return (await services.queries.compile(query.text, table, table)).result


def check_end(options: ChangefeedOptions, newest: Timestamp) -> Timestamp:
    """The timestamp at which a feed begins, which without a cursor is `newest`. Raises SQLError
    22023 where it ends before."""
    start_at = newest if options.cursor is None else options.cursor
    if options.end_time is not None and options.end_time <= start_at:
        raise SQLError(
            "22023",
            f"changefeed option end_time {format_timestamp(options.end_time)} must be after the "
            f"feed's start {format_timestamp(start_at)}",
        )
    return start_at


def check_follows_database(options: ChangefeedOptions, kind: AnyKind, sink: str) -> None:
    """Raises SQLError where a feed with these options cannot follow a whole database."""
    if options.initial_scan is ScanChoice.ONLY:
        raise SQLError(
            "22023",
            "a changefeed of a whole database cannot end with its initial scan",
            hint="Name the tables: CREATE CHANGEFEED FOR TABLE …",
        )
    if options.cursor is not None:
        raise SQLError(
            "22023",
            "a changefeed of a whole database begins at the time of the statement, not at a cursor",
            hint="Name the tables: CREATE CHANGEFEED FOR TABLE …",
        )
    if isinstance(kind, WorkerKind):
        raise SQLError("0A000", f"a {sink} changefeed follows one table, and no whole database")


async def _find_sink(
    services: ChangefeedServices, transaction: Transaction, uri: str, user: str
) -> FeedSink:
    try:
        return await find_sink(services, transaction, uri, user)
    except SinkError as error:
        raise SQLError("58030", str(error)) from error


async def check_start(
    services: ChangefeedServices, request: FeedRequest, cursor: Timestamp | None
) -> None:
    """Raises SQLError where a feed cannot follow these tables, or not from there."""
    assert request.tables or request.whole_database, "the grammar asks for a table"
    check_tables(request.tables, request.names, request.at)
    if cursor is not None:
        await _check_cursor(services, request, cursor)
        if request.resolved is not None:
            return  # a replica has entries that are older than itself
        for table, name in zip(request.tables, request.names, strict=True):
            if await services.descriptors.read_at(table.id, cursor) is None:
                shown = format_timestamp(cursor)
                raise SQLError("42P01", f'table "{name}" does not exist as of cursor {shown}')


def check_tables(tables: Sequence[TableDescriptor], names: Sequence[str], at: Timestamp) -> None:
    """Raises SQLError where a feed cannot follow these tables from `at` on."""
    seen: set[int] = set()
    for table, name in zip(tables, names, strict=True):
        if table.id < FIRST_USER_ID:
            raise SQLError("0A000", f'changefeeds on system tables are not supported: "{name}"')
        if table.id in seen:
            raise SQLError("42712", f'table "{name}" is named more than once')
        seen.add(table.id)
        if table.modification_time >= at:
            # It is not there as of the feed's start; and to look would be to wait for ourselves.
            raise SQLError(
                "0A000",
                f'table "{name}" was created or altered in this transaction',
                hint="Commit first, then create the changefeed.",
            )


async def _check_cursor(
    services: ChangefeedServices, request: FeedRequest, cursor: Timestamp
) -> None:
    shown, now = format_timestamp(cursor), await services.store.now()
    if cursor > now:
        raise SQLError("22023", f"changefeed cursor {shown} is in the future")
    if request.resolved is not None and cursor > request.resolved:
        raise SQLError(
            "22023",
            f"changefeed cursor {shown} lies above {format_timestamp(request.resolved)}, up to "
            "which the replica has everything of its source",
        )
    window = services.store.settings.get(START_WINDOW)
    if request.keyspace is not None and cursor <= now - duration(seconds=window):
        raise SQLError(
            "22023",
            f"changefeed cursor {shown} lies further back than {START_WINDOW.name} ({window:g} s)",
            hint="Deletions are not kept for ever. Start without a cursor, with an initial scan.",
        )
    # Other tables may be collected further: what counts is what the feed reads.
    targets = targets_of(services, request.tables, request.keyspace)
    spans = [target.rows_span(table) for target, table in zip(targets, request.tables, strict=True)]
    threshold = await services.store.gc_threshold_over(spans)
    if cursor <= threshold:
        raise SQLError(
            "22023",
            f"changefeed cursor {shown} is at or below the garbage collection threshold "
            f"{format_timestamp(threshold)}",
            hint="Start without a cursor, with an initial scan.",
        )


def targets_of(
    services: ChangefeedServices,
    tables: Sequence[TableDescriptor],
    keyspace: KeyspacePart | None = None,
) -> Sequence[FeedTarget]:
    """The targets that tables, or a part of a `keyspace`, are to a feed. Raises SQLError 22023."""
    try:
        return [services.target(table.id, keyspace) for table in tables]
    except ValueError:
        raise SQLError(
            "22023",
            f'no key of keyspace "{tables[0].name}" lies between the keys that are given',
            hint="FROM is the first key, and TO the first behind the last.",
        ) from None


async def protect(
    services: ChangefeedServices,
    transaction: Transaction,
    targets: Sequence[FeedTarget],
    start_at: Timestamp,
    *,
    max_age_seconds: float,
) -> bytes:
    """Keeps what a feed will read of these targets, for so long without progress; with zero for as
    long as the cluster's setting says. Raises SQLError where that is gone already."""
    try:
        return await services.protections.protect(
            transaction,
            owner=PROTECTION_OWNER,
            spans=[target.span for target in targets],
            timestamp=start_at,
            max_age_seconds=max_age_seconds or services.store.settings.get(PROTECTION_MAX_AGE),
        )
    except ProtectionRefused as refused:
        raise SQLError("22023", f"changefeed cannot start: {refused}") from refused
