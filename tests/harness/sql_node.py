"""A node with SQL on a simulated store, in one line.

async with sql_node(sim) as node:
    await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    rows = await node.rows("SELECT * FROM t WHERE k = $1", 1)
    other = node.session()       # a second client
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Self, cast

import pytest

from tailrace.catalog.jobs import JobAction, JobRegistry
from tailrace.catalog.leases import LeaseManager, LivenessSession
from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.catalog.rights.rights_watcher import RightsWatcher
from tailrace.catalog.schema_change.job import JOB_KIND, SchemaChanger
from tailrace.catalog.schema_change.jobs import SchemaChanges
from tailrace.catalog.schema_change.type_change import JOB_KIND as TYPE_CHANGE
from tailrace.catalog.schema_change.type_change import TypeChanger
from tailrace.catalog.store.catalog import Catalog
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import (
    Alteration,
    Changefeeds,
    ChangefeedStream,
    DeadLetter,
    FeedRequest,
    JobSummary,
    Latency,
    ScheduleStatus,
    SpanLag,
    StageReport,
    StoreJobs,
    Verified,
)
from tailrace.changefeed.sinks.sinkless import ChangefeedRow
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.process.offload import Offload
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Transaction
from tailrace.sql import (
    Analytics,
    Result,
    Row,
    Services,
    Session,
)
from tailrace.sql.execute.columnar_cache import ColumnarCache
from tailrace.sql.execute.ddl.analytic_rows import AnalyticRows
from tailrace.sql.introspection.registry import find_virtual
from tests.harness.simulation import Simulation
from tests.harness.stores import open_store


class RecordedFeeds(Changefeeds):
    """Changefeeds that are only noted: SQL hands them on and does no more."""

    def __init__(self) -> None:
        self.requests: list[tuple[FeedRequest, str | None]] = []
        self.altered: list[tuple[int, Alteration]] = []

    async def create(
        self, transaction: Transaction, request: FeedRequest, sink: str, *, user_name: str = "root"
    ) -> int:
        self.requests.append((request, sink))
        return len(self.requests)

    async def alter(
        self,
        transaction: Transaction,
        job_id: int,
        alterations: Sequence[Alteration],
        *,
        at: Timestamp,
    ) -> str:
        self.altered += [(job_id, alteration) for alteration in alterations]
        return f"changefeed {job_id}"

    async def stream(self, request: FeedRequest) -> ChangefeedStream:
        self.requests.append((request, None))
        return cast(ChangefeedStream, RecordedStream(request))

    async def subscribe(self, transaction: Transaction, request: FeedRequest, name: str) -> None:
        self.requests.append((request, name))

    async def explain(
        self, transaction: Transaction, request: FeedRequest, sink: str | None
    ) -> list[tuple[str, str]]:
        return [("sink", str(sink))]

    async def sample(self, request: FeedRequest, count: int) -> list[ChangefeedRow]:
        return []


class RecordedStream:
    """A row for each table of a feed without a sink."""

    def __init__(self, request: FeedRequest) -> None:
        self._request = request

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None: ...

    async def __aiter__(self) -> AsyncIterator[ChangefeedRow]:
        for name in self._request.names:
            yield ChangefeedRow(name, b"[1]", b"{}")


class RecordedJobs(StoreJobs):
    """The jobs of recorded feeds."""

    def __init__(self, feeds: RecordedFeeds) -> None:
        self._recorded = feeds
        self.controlled: list[tuple[int, JobAction]] = []

    async def verify(self, job_id: int, *, repairs: bool) -> Verified:
        return Verified([])

    async def schedules(self) -> Sequence[ScheduleStatus]:
        return []

    async def dead_letters(self, job_id: int) -> Sequence[DeadLetter]:
        return []

    async def retry_dead_letters(self, job_id: int, letters: Sequence[DeadLetter]) -> Sequence[str]:
        return []

    async def latency(self, job_id: int) -> Sequence[StageReport]:
        measured = Latency(count=1, p50=1.0, p95=2.0, p99=3.0, max=4.0)
        return [StageReport(name="sink", measured=measured)]

    async def lag(self, job_id: int) -> Sequence[SpanLag]:
        return []

    async def wait(self, job_id: int, until: Timestamp, *, seconds: float | None) -> Timestamp:
        return until

    async def list(self, *, changefeeds_only: bool) -> Sequence[JobSummary]:
        return [
            JobSummary(
                id=number,
                kind="changefeed",
                description=f"changefeed {number}",
                state="running",
                created=datetime(2026, 1, 1, tzinfo=UTC),
                finished=None,
                error=None,
                sink=sink,
                resolved=request.at,
            )
            for number, (request, sink) in enumerate(self._recorded.requests, start=1)
        ]

    async def find(self, job_ids: Sequence[int]) -> Sequence[JobSummary]:
        return [job for job in await self.list(changefeeds_only=False) if job.id in job_ids]

    async def completed(self, job_ids: Sequence[int]) -> None: ...

    async def control(self, job_id: int, action: JobAction) -> None:
        self.controlled.append((job_id, action))


class SqlNode:
    """A node's services, and its first session."""

    def __init__(
        self,
        store: Store,
        services: Services,
        feeds: RecordedFeeds,
        jobs: RecordedJobs,
        registry: JobRegistry,
        liveness: LivenessSession,
        offload: Offload,
    ) -> None:
        self.store = store
        self.offload = offload
        self.liveness = liveness
        self.registry = registry
        self.services = services
        self.feeds = feeds
        self.jobs = jobs
        self.first = Session(services)

    def session(self, user: str = "root") -> Session:
        return Session(self.services, user=user)

    async def sql(self, text: str, *parameters: object) -> Result:
        """The last result of a text."""
        return (await self.first.execute(text, parameters))[-1]

    async def rows(self, text: str, *parameters: object) -> list[Row]:
        return (await self.sql(text, *parameters)).fetch_rows()

    async def error(self, text: str, *parameters: object) -> SQLError:
        """The error that a text must end in."""
        with pytest.raises(SQLError) as caught:
            await self.sql(text, *parameters)
        return caught.value


@asynccontextmanager
async def sql_services(sim: Simulation, store: Store, node_id: int) -> AsyncIterator[SqlNode]:
    """A node on a store that is there and bootstrapped."""
    descriptors = DescriptorStore(store)
    session = LivenessSession(store, node_id)
    leases = LeaseManager(store, descriptors, session)
    rights = RightsWatcher(store)
    await rights.start()
    await session.start()
    await leases.start()
    feeds = RecordedFeeds()
    jobs = RecordedJobs(feeds)
    analytics = Analytics(sim.offload, store.clock.wall)
    changer = SchemaChanger(store, descriptors, leases, AnalyticRows(store, descriptors, analytics))
    types = TypeChanger(store, descriptors, leases)
    registry = JobRegistry(store, session, {JOB_KIND: changer, TYPE_CHANGE: types})
    await registry.start()
    services = Services(
        store=store,
        catalog=Catalog(descriptors),
        leases=leases,
        analytics=analytics,
        find_virtual=find_virtual,
        relaxed_lane=sim.offload,
        jobs=jobs,
        changefeeds=feeds,
        schema_changes=SchemaChanges(store, descriptors),
        images=ColumnarCache(store),
        rights=rights,
    )
    node = SqlNode(store, services, feeds, jobs, registry, session, sim.offload)
    try:
        yield node
    finally:
        await node.first.close()
        await services.waiting_results.close()
        await registry.close()
        analytics.close()
        await leases.close()
        await session.close()
        await rights.close()


@asynccontextmanager
async def sql_node(sim: Simulation) -> AsyncIterator[SqlNode]:
    """One node on a new store."""
    store = await open_store(sim)
    await bootstrap(store)
    async with sql_services(sim, store, 1) as node:
        yield node
        store.check_invariants()
    await store.close()
