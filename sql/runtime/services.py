"""What sessions need of the rest of the house."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...cached import cached_property
from ...catalog.leases import LeaseManager
from ...catalog.rights.audit import Audit, NoAudit
from ...catalog.rights.rights_watcher import RightsWatcher
from ...catalog.schema_change.jobs import SchemaChanges
from ...catalog.store.catalog import Catalog
from ...changefeed import Changefeeds
from ...kvlayer.access import StoreAccess
from ..analyze.default_expressions import StoreGenerators
from ..analyze.scalars import Generators
from ..results.result_batches import WaitingResults
from ..results.table_reads import Images
from .activity import Sessions
from .jobs import Jobs
from .plan_cache import PlanCache
from .query_evaluator import QueryEvaluator
from .virtual_tables import VirtualTables


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
