"""The services that sessions need of the layers below."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...cached import cached_property
from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.leases import LeaseManager
from ...catalog.rights.audit import Audit, NoAudit
from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.rights.rights import Rights
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.schema_change.jobs import SchemaChanges
from ...catalog.store.catalog import Catalog
from ...catalog.values.errors import SQLError
from ...changefeed import Changefeeds, StoreJobs
from ...kvlayer.access import StoreAccess, Transaction
from ...kvlayer.process.offload import OffloadLane
from ...kvlayer.ranges import RangedStore
from ...kvlayer.raw import Leadership
from ...kvlayer.write_shares import WriteShares
from ..analyze.calls.row_calls import Generators
from ..analyze.default_expressions import StoreGenerators
from ..results.result_batches import WaitingResults
from ..results.results import QueryEvaluator
from ..results.table_reads import Images
from .activity import Sessions
from .plan_cache import PlanCache


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
    jobs: StoreJobs
    changefeeds: Changefeeds
    schema_changes: SchemaChanges
    rights: RightsWatcher
    find_virtual: Callable[[Sequence[str]], TableDescriptor | None]
    """Returns the virtual table of a name as written; None where it is not of a virtual schema.
    Raises SQLError 42P01 for a table that such a schema lacks."""
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


def ranged_store(store: StoreAccess) -> RangedStore:
    """The store, where its ranges are in this process. Raises SQLError 0A000."""
    if not isinstance(store, RangedStore):
        raise SQLError(
            "0A000",
            "ranges are shown and changed on the node that has the store",
            hint="Connect to the node that was started without --join.",
        )
    return store
