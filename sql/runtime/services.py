"""The services that sessions need of the layers below, jobs among them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from ...cached import cached_property
from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.leases import LeaseManager
from ...catalog.rights.audit import Audit, NoAudit
from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.rights.rights import Rights
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.rights.users import ROOT
from ...catalog.schema_change.jobs import SchemaChanges
from ...catalog.store.catalog import Catalog
from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ...changefeed import (
    Changefeeds,
    DeadLetter,
    ScheduleStatus,
    SendingReport,
    SpanLag,
    StageReport,
    TaskStatus,
    Verified,
)
from ...kvlayer.access import StoreAccess, Transaction
from ...kvlayer.clock import Timestamp
from ...kvlayer.process.offload import OffloadLane
from ...kvlayer.ranges import RangeInfo
from ...kvlayer.raw import Leadership
from ...kvlayer.span import Span
from ...kvlayer.write_shares import WriteShares
from ..analyze.calls.row_calls import Generators
from ..analyze.default_expressions import StoreGenerators
from ..results.result_batches import WaitingResults
from ..results.results import QueryEvaluator
from ..results.table_reads import Images
from ..syntax.statements import JobAction
from .activity import Sessions
from .plan_cache import PlanCache


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job as SHOW JOBS prints it. What has a default is known of changefeeds only."""

    id: int
    kind: str
    description: str
    state: str
    created: datetime
    finished: datetime | None
    error: str | None
    started: datetime | None = None
    modified: datetime | None = None
    running_status: str | None = None
    user_name: str | None = None
    tables: str | None = None
    table_ids: tuple[int, ...] = ()
    topics: str | None = None
    format: str | None = None
    sink: str | None = None
    resolved: Timestamp | None = None
    lag_seconds: float | None = None
    catch_up_seconds: float | None = None
    replication: str | None = None
    partial: bool = False
    """Whether a feed of a keyspace follows some of its keys, and not all."""
    task: TaskStatus | None = None
    """The task that the job is, among those that make a replication."""
    sending: SendingReport | None = None
    """The report of the node that runs a replication's task."""
    node_id: int | None = None
    """The node that has it."""
    epoch: int = 0
    """The number of times that the job was taken up."""
    trouble: str | None = None
    watched: str | None = None
    """The feed's tables, each with what it is doing and how far it has come."""

    @property
    def owner(self) -> str:
        """The user whose rights it goes on with."""
        return self.user_name or ROOT


class Jobs(Protocol):
    """The jobs of the store. Each method is a transaction of its own."""

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        """Returns the jobs that have not ended and those that ended of late, by id."""

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        """Returns the jobs of these ids that exist, whenever they ended."""

    async def control(self, job_id: int, action: JobAction) -> None:
        """Raises SQLError: 42704 for an unknown job, 55000 where its state does not allow it."""

    async def completed(self, job_ids: Sequence[int]) -> None:
        """Returns when all of the jobs are over. Raises SQLError 42704 for an unknown one."""

    async def wait(self, job_id: int, until: Timestamp, *, seconds: float | None) -> Timestamp:
        """Returns the feed's resolved timestamp when its sink holds everything at or below `until`,
        wherever it runs. Raises SQLError: 42704 for an unknown job, 42809 for one that is no feed,
        55000 for one that does not run, 57014 where it takes longer than `seconds`."""

    async def verify(self, job_id: int, *, repairs: bool) -> Verified:
        """Returns the differences between a feed's sink and its tables, as of what the sink has
        resolved. Raises SQLError."""

    async def schedules(self) -> Sequence[ScheduleStatus]:
        """All schedules that are not dropped."""

    async def dead_letters(self, job_id: int) -> Sequence[DeadLetter]:
        """A feed's dead letters. Raises SQLError."""

    async def skip_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        """Forgets them."""

    async def retry_dead_letters(self, job_id: int, letters: Sequence[DeadLetter]) -> Sequence[str]:
        """Yields the outcome of each letter, in turn. Raises SQLError 55000 for a feed that does
        not run, and 0A000 for one that runs on another node."""

    async def latency(self, job_id: int) -> Sequence[StageReport]:
        """The times and the waiting rows of each stage of a feed. Raises SQLError: 0A000 for a feed
        that runs on another node."""

    async def lag(self, job_id: int) -> Sequence[SpanLag]:
        """The lag of each span of a feed: none, where the feed is over."""


def sees(rights: Rights, user: str, owner: str) -> bool:
    """Whether SHOW statements tell a user of the jobs, schedules and subscriptions of `owner`: of
    one's own, and of all with VIEWJOB or CONTROLJOB."""
    if rights.held(user, SYSTEM) & (Privilege.VIEWJOB | Privilege.CONTROLJOB):
        return True
    return owner in rights.roles_of(user)


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
    relaxed_lane: OffloadLane
    """The lane in which many events of relaxed logs are read, beside the loop."""
    plans: PlanCache = field(default_factory=PlanCache)
    sessions: Sessions = field(default_factory=Sessions)
    images: Images | None = None
    audit: Audit = field(default_factory=NoAudit)
    leadership: Leadership | None = None
    """The leadership of the store's keyspaces, on the node that serves the store."""

    @cached_property
    def waiting_results(self) -> WaitingResults:
        """Results that are not whole. Close them before the analytics and the store."""
        return WaitingResults(self.store)

    @cached_property
    def write_shares(self) -> WriteShares:
        """The debts of the node's users to one another."""
        return WriteShares(self.store.settings)

    @cached_property
    def generators(self) -> Generators:
        """Generators of default values."""
        return StoreGenerators(self.store)

    @asynccontextmanager
    async def reading(self, opened: Transaction | None = None) -> AsyncIterator[Transaction]:
        """The open transaction, or a new one that only reads."""
        reader = self.store.begin(read_only=True) if opened is None else opened
        try:
            yield reader
        finally:
            if opened is None:
                await reader.rollback()


class ListedTable(Protocol):
    """A virtual table, as names find it and tables about tables list it."""

    @property
    def id(self) -> int: ...
    @property
    def schema(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Mapping[str, ColumnType]: ...


class VirtualTables(Protocol):
    """Virtual tables by schema and name. Every database has them all."""

    def find(self, parts: Sequence[str]) -> TableDescriptor | None:
        """The table of a name as written; None where the name is not of a virtual schema.

        Raises SQLError 42P01 for a table that such a schema lacks.
        """

    def of(self, descriptor: TableDescriptor) -> ListedTable: ...

    def __iter__(self) -> Iterator[ListedTable]: ...


@runtime_checkable
class RangeStore(Protocol):
    """A store whose ranges can be changed."""

    async def split(self, key: bytes) -> None: ...
    async def unsplit(self, key: bytes) -> None: ...
    def ranges(self, span: Span) -> list[RangeInfo]: ...


def ranged_store(store: StoreAccess) -> RangeStore:
    """The store, where its ranges are in this process. Raises SQLError 0A000."""
    if not isinstance(store, RangeStore):
        raise SQLError(
            "0A000",
            "ranges are shown and changed on the node that has the store",
            hint="Connect to the node that was started without --join.",
        )
    return store
