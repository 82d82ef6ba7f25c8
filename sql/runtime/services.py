"""What sessions need of the rest of the house."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...cached import cached_property
from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.leases import LeaseManager
from ...catalog.rights.audit import Audit, NoAudit
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.rights.users import ROOT
from ...catalog.schema_change.jobs import SchemaChanges
from ...catalog.store.catalog import Catalog
from ...changefeed import (
    Alteration,
    DatabaseTables,
    KeyspacePart,
    Subscription,
    SubscriptionReader,
)
from ...changefeed.contract.queries import FeedQuery
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span
from ...kvlayer.txn import Transaction
from ..analyze.default_expressions import StoreGenerators
from ..analyze.scalars import Generators
from ..results.result_batches import WaitingResults
from ..results.results import ResultColumn, Row
from ..results.table_reads import Images
from .activity import Sessions
from .jobs import Jobs
from .plan_cache import PlanCache
from .query_evaluator import QueryEvaluator
from .virtual_tables import VirtualTables


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangefeedRequest:
    """CREATE CHANGEFEED, its tables found.

    `names[i]` is the full name of `tables[i]`, versions that are canonical at `at`, the time of the
    statement. Options are as written, a bare one with None.
    """

    tables: Sequence[TableDescriptor]
    names: Sequence[str]
    options: Mapping[str, str | None]
    at: Timestamp
    user: str = ROOT
    keyspace: KeyspacePart | None = None
    """Which keys, where the one table is a raw keyspace."""
    replication: str | None = None
    """The name of a feed into a replica."""
    query: FeedQuery | None = None
    """What is to be shown of the changes of the one table."""
    whole_database: DatabaseTables | None = None
    """Where the tables are those of a database: which, also of such as come later."""


@dataclass(frozen=True, slots=True)
class ChangefeedStream:
    """Rows of a changefeed without a sink. Closing the iterator ends the feed."""

    columns: Sequence[ResultColumn]
    rows: AsyncGenerator[Row, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStage:
    """A stage of a feed: what `commits` took in it, and what waits there now, if anything does."""

    name: str
    commits: int = 0
    percentiles_ms: tuple[float | None, float | None, float | None, float | None] = (None,) * 4
    """p50, p95, p99 and the greatest."""
    waiting: int | None = None
    waited_ms: float | None = None
    table_id: int | None = None
    span: Span | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSpan:
    """A span of one of a feed's tables; `resolved` is None while it is not scanned."""

    table_id: int
    table: str
    state: str
    span: Span
    resolved: Timestamp | None
    lag_seconds: float
    catch_up_seconds: float | None


class Changefeeds(Protocol):
    """Makes changefeeds. Bad options, sinks and cursors are SQLErrors that leave nothing behind."""

    async def create(self, transaction: Transaction, request: ChangefeedRequest, sink: str) -> int:
        """Writes the job in the transaction; it starts some time after the commit."""
        ...

    async def stream(self, request: ChangefeedRequest) -> ChangefeedStream: ...

    async def alter(
        self,
        transaction: Transaction,
        job_id: int,
        alterations: Sequence[Alteration],
        *,
        at: Timestamp,
    ) -> str:
        """Changes a feed's job in the transaction; returns its new description."""
        ...

    async def verify(
        self, job_id: int, *, at_resolved: bool, repairs: bool
    ) -> Sequence[tuple[str, str, str]]:
        """The table, the key and what differs, for each row of a feed's sink that is not as in its
        table. Raises SQLError."""
        ...

    async def explain(
        self, transaction: Transaction, request: ChangefeedRequest, sink: str | None
    ) -> Sequence[tuple[str, str]]:
        """What a feed would do, property by property.

        It is refused as at its creation, for which it writes in the transaction: roll that back.
        """
        ...

    async def sample(self, request: ChangefeedRequest, count: int) -> Sequence[Row]:
        """Up to `count` messages that a feed would send of what is there now."""
        ...

    async def latency(self, job_id: int) -> Sequence[FeedStage]:
        """Where a feed's rows spend their time. Raises SQLError: 0A000 for a feed that runs on
        another node."""
        ...

    async def lag(self, job_id: int) -> Sequence[FeedSpan]:
        """How far each span of a feed is behind."""
        ...

    async def subscribe(
        self, transaction: Transaction, request: ChangefeedRequest, name: str
    ) -> None:
        """Writes a subscription in the transaction. Raises SQLError."""
        ...

    async def read_subscription(self, subscription: Subscription, user: str) -> SubscriptionReader:
        """A reader from the subscription's position on, to be closed. Raises SQLError."""
        ...

    async def acknowledge(
        self, transaction: Transaction, subscription: Subscription, upto: Timestamp
    ) -> None:
        """Moves the subscription's position in the transaction. Raises SQLError."""
        ...

    async def create_connection(
        self, transaction: Transaction, name: str, uri: str, user: str
    ) -> None:
        """Writes an external connection in the transaction. Raises SQLError."""
        ...

    async def alter_connection(
        self, transaction: Transaction, name: str, uri: str, user: str
    ) -> None:
        """Gives a connection, and the feeds that use it, another URI. Raises SQLError."""
        ...

    async def give_connection(
        self, transaction: Transaction, name: str, owner: str, user: str
    ) -> None:
        """Makes a role a connection's owner. Raises SQLError."""
        ...

    async def drop_connection(self, transaction: Transaction, name: str, user: str) -> None: ...

    async def unsubscribe(self, transaction: Transaction, subscription: Subscription) -> None: ...

    async def wait(self, job_id: int, until: Timestamp, *, seconds: float | None) -> Timestamp:
        """Returns the feed's resolved timestamp when its sink holds everything at or below `until`,
        wherever it runs. Raises SQLError: 42704 for an unknown job, 42809 for one that is no feed,
        55000 for one that does not run, 57014 where it takes longer than `seconds`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Services:
    """One node's services, shared by all its sessions."""

    store: StoreAccess
    catalog: Catalog
    leases: LeaseManager
    analytics: QueryEvaluator
    jobs: Jobs
    changefeeds: Changefeeds
    schema_changes: SchemaChanges
    rights: RightsWatcher
    virtual_tables: VirtualTables
    plans: PlanCache = field(default_factory=PlanCache)
    sessions: Sessions = field(default_factory=Sessions)
    images: Images | None = None
    audit: Audit = field(default_factory=NoAudit)

    @cached_property
    def waiting_results(self) -> WaitingResults:
        """Results that are not whole. Close them before the analytics and the store."""
        return WaitingResults(self.store)

    @cached_property
    def generators(self) -> Generators:
        """What draws the values of defaults."""
        return StoreGenerators(self.store)
