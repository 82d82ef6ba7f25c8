"""Changefeeds on a simulated node, with a job registry that a test plays by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.jobs import JobContext, JobRecord, JobState
from tailrace.catalog.rights.rights_watcher import RightsWatcher
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import Changefeeds, ChangefeedServices, FeedRequest
from tailrace.changefeed.contract.options import PIPELINE_OPTIONS, ChangefeedOptions
from tailrace.changefeed.sinks import (
    FeedIdentity,
    Sink,
    SinkContext,
    SinkError,
    SinkKind,
    default_kinds,
)
from tailrace.kvlayer.clock import ZERO
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.kvlayer.txn import Transaction
from tests.changefeed.model import Target, TargetSink
from tests.changefeed.table import Table
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation


class MemoryClaim(JobContext):
    """A claimed job whose row is here."""

    def __init__(self, job_id: int, payload: bytes) -> None:
        job = JobRecord(
            id=job_id,
            kind="CHANGEFEED",
            description="",
            state=JobState.RUNNING,
            payload=payload,
            created=datetime(2024, 1, 1, tzinfo=UTC),
            epoch=1,
        )
        super().__init__(None, job, None)  # type: ignore[arg-type]  # what asks for rows is below

    def take_again(self) -> None:
        """Another node takes the job: a greater epoch than the one that ran."""
        self.job = replace(self.job, epoch=self.epoch + 1)

    def alter(self, payload: bytes) -> None:
        """What a statement does."""
        self.note_payload(payload, ZERO)

    async def change_payload(self, change: Callable[[bytes], bytes]) -> bytes:
        await asyncio.sleep(0.001)
        self.alter(change(self.payload))
        return self.payload

    async def save_progress(self, progress: bytes) -> None:
        await asyncio.sleep(0.001)
        self.progress = progress


class MemoryJobs:
    def __init__(self) -> None:
        self.claims: dict[int, MemoryClaim] = {}
        self.descriptions: dict[int, str] = {}

    async def create(
        self,
        transaction: Transaction,
        kind: str,
        description: str,
        payload: bytes,
        *,
        paused: bool,
    ) -> int:
        assert not paused, "these jobs run at once"
        job_id = len(self.claims) + 1
        self.claims[job_id] = MemoryClaim(job_id, payload)
        self.descriptions[job_id] = description
        return job_id


@dataclass
class TargetKind(SinkKind):
    """Sinks into targets that outlive them; a target takes one feed."""

    sim: Simulation
    transactional = True
    local = False
    columnar = True
    follows_schema = True
    obeys = PIPELINE_OPTIONS
    targets: dict[str, Target] = field(default_factory=dict)
    released: list[int] = field(default_factory=list)
    fail: float = 0.0
    seconds: float = 0.001
    """What a flush takes."""
    away: bool = False
    """Whether targets can be released at present."""
    release_seconds: float = 0.0
    sinks_made: int = 0

    def check_options(self, options: ChangefeedOptions) -> None:
        """Any value will do."""

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        if uri in self.targets:
            raise SQLError("55000", f"target {uri!r} belongs to another feed")

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset([f"target {uri!r}"])

    def create(self, uri: str, context: SinkContext) -> Sink:
        target = self.targets.setdefault(uri, Target())
        self.sinks_made += 1
        return TargetSink(
            self.sim, target, position=context.position(), seconds=self.seconds, fail=self.fail
        )

    async def release(self, uri: str, identity: FeedIdentity, holds: object) -> None:
        if self.away:
            raise SinkError(f"target {uri!r} is away")
        await asyncio.sleep(self.release_seconds)
        self.released.append(identity.job_id)

    def redacted(self, uri: str) -> str:
        return uri.partition("?")[0]


class FeedBench:
    """A node that runs changefeeds, and one table."""

    def __init__(
        self,
        sim: Simulation,
        catalog: CatalogFixture,
        node: Node,
        table: Table,
        kind: TargetKind | None = None,
    ) -> None:
        self.store = catalog.store
        self.table = table
        self.kind = kind or TargetKind(sim)
        kinds = default_kinds()
        kinds.register("target", self.kind)
        self.protections = ProtectedTimestamps(catalog.store)
        self.services = ChangefeedServices(
            store=catalog.store,
            descriptors=catalog.descriptors,
            leases=node.leases,
            kinds=kinds,
            offload=sim.offload,
            protections=self.protections,
            node_id=node.session.node_id,
            rights=RightsWatcher(catalog.store),
            sealer=sealer(),
        )
        self.jobs = MemoryJobs()
        self.feeds = Changefeeds(self.services, self.jobs)

    def request(self, **options: str | None) -> FeedRequest:
        return FeedRequest(
            tables=[self.table.descriptor],
            names=["defaultdb.public.orders"],
            options=options,
            at=self.store.clock.now(),
        )

    async def create(self, uri: str = "target://a?secret=1", **options: str | None) -> int:
        transaction = self.store.begin()
        try:
            request = self.request(**options)
            job_id = await self.feeds.create(transaction, request, uri)
            await transaction.commit()
            return job_id
        except BaseException:
            await transaction.rollback()
            raise

    @asynccontextmanager
    async def running(self, job_id: int) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.feeds.run(self.jobs.claims[job_id]))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def rows(self, uri: str = "target://a?secret=1") -> dict[int, str | None]:
        return self.kind.targets[uri].rows(self.table.descriptor.id)


@asynccontextmanager
async def open_bench(sim: Simulation) -> AsyncIterator[FeedBench]:
    async with open_nodes(sim, 1) as (catalog, [node]):
        table = Table(catalog, await catalog.create(locked=True))
        await table.write((1, "old"), (2, "old"))
        yield FeedBench(sim, catalog, node, table)
