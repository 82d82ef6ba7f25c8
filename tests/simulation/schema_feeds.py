"""The feeds of a storm, and what is known of them: each row under the schema that was canonical at
its timestamp, and as it was committed; nothing resolved before it was flushed; and nothing resolved
at or above a schema change that rewrites rows before they have been shown again.

A feed is a row of the job table, claimed by the node that runs it, and altered by any node: its
tables join and leave it, are paused, resumed and shown again. Each promise is judged for each time
that a table was in a feed (`Membership`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random

from tailrace.api.feeds import ChangefeedResumer
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.jobs import JobContext, JobFenced, JobRecord, JobState, RetryableJobError
from tailrace.catalog.jobs.job_store import JobStore
from tailrace.catalog.jobs.states import JobEvent
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed import Changefeeds, FeedRequest
from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.changefeed.contract.options import (
    PIPELINE_OPTIONS,
    ChangefeedOptions,
    SchemaFeedKind,
)
from tailrace.changefeed.jobs.alterations import (
    AddTarget,
    Alteration,
    ControlTarget,
    DropTarget,
    TargetAction,
    TargetName,
)
from tailrace.changefeed.jobs.details import ChangefeedDetails, decode_details, decode_progress
from tailrace.changefeed.jobs.job import FeedEnded
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.pipeline.boundary import SchemaChangeEnd
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.sinks import SinkKind, SinkKinds
from tailrace.changefeed.sinks.protocol import (
    FeedIdentity,
    Sink,
    SinkContext,
    SinkError,
    SinkProgress,
    SinkStand,
)
from tailrace.changefeed.targets import TargetState
from tailrace.kvlayer.access import StoreAccess
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.frontier import part_of
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.schemafeed import TableEvent
from tailrace.schemafeed.feed import TableDropped
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.simulation.feed_record import Record, rows_of
from tests.simulation.framed_feed import FramedAttempt, FramedSink
from tests.simulation.key_order import KeyOrder
from tests.simulation.raw_history import TableHistory
from tests.simulation.schema_model import TableModel
from tests.simulation.storm_mirrors import LookedAtSink, StormMirror

RETRY_SECONDS = 0.05
FAIL_CHANCE = 0.01
"""Of each flush."""


class RecordingSink:
    """Implements `Sink`. It is slow and fails as the seed says."""

    def __init__(
        self,
        record: Record,
        models: Sequence[TableModel],
        sim: Simulation,
        store: StoreAccess,
        *,
        fail_chance: float,
    ) -> None:
        self._record = record
        self._store = store
        self._fail_chance = fail_chance
        self._order = KeyOrder(record.name)
        self._models = models
        self._sim = sim
        self._ended = False

    async def stand(self) -> SinkStand | None:
        known = self._record.known
        return None if known is None else SinkStand(progress=known, position=self._store.position)

    async def open(self, tables: Sequence[TableDescriptor]) -> None: ...

    @property
    def _deaf(self) -> bool:
        return self._ended or any(model.frozen for model in self._models)

    def emit(self, batch: ChangeBatch) -> None:
        self._order.note(batch)
        if self._deaf:
            return
        shown = rows_of(batch)
        self._record.shown += shown
        self._record.unflushed += [(row.table.id, row.key, row.at, row.kind) for row in shown]

    def change_schema(self, event: TableEvent) -> None: ...

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._sim.random.random() < self._fail_chance:
            self._record.failures += 1
            raise SinkError("the sink was away")
        if not self._deaf:
            self._record.note_flushed(progress)
        if self._sim.random.random() < 0.2:
            await asyncio.sleep(self._sim.random.random() * 0.05)

    async def emit_resolved(self, resolved: Timestamp) -> None: ...

    async def close(self) -> None:
        self._ended = True


class StormKind(SinkKind):
    """The kind of the sinks of one feed, on one node: the feed's file goes where the feed does."""

    local = False
    obeys = PIPELINE_OPTIONS | {"transactions", "updated"}

    def __init__(self, feed: StormFeed, node: SqlNode) -> None:
        self._feed = feed
        self._node = node
        self.transactional = not feed.transactions
        self.columnar = feed.mirror is not None
        self.follows_schema = feed.follows

    def check_options(self, options: ChangefeedOptions) -> None: ...

    async def validate(
        self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str
    ) -> None: ...

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def wants_previous(self, uri: str) -> bool:
        return self._feed.mirror is not None and self._feed.mirror.logs

    def create(self, uri: str, context: SinkContext) -> Sink:
        return self._feed.sink(self._node, context)

    async def release(self, uri: str, identity: FeedIdentity, holds: object) -> None:
        if self._feed.mirror is not None:
            await self._feed.mirror.release(self._node.store, identity)

    def redacted(self, uri: str) -> str:
        return uri


class StormFeed:
    """A feed of some tables, which runs on one node and may move to another.

    It writes messages, or with `mirror` into a DuckDB file. When its job has ended, with its last
    table or at a truncation, which a feed of messages does not outlive, another begins.
    """

    def __init__(
        self,
        sim: Simulation,
        kind: SchemaFeedKind,
        models: Sequence[TableModel],
        *,
        follows: bool,
        mirror: StormMirror | None = None,
    ) -> None:
        """`models` are those of all tables, also of such as come later."""
        self._sim = sim
        self.kind = kind
        self._models = models
        self.transactions = mirror is None and sim.random.random() < 0.5
        self.follows = mirror is not None or (follows and not self.transactions)
        self.mirror = mirror
        self.fail_chance = FAIL_CHANCE
        self.checkpoints = sim.random.choice(["0s", "50ms", "1s"])
        self.records: list[Record] = []
        self.job_id: int | None = None
        self.live = LiveFeed(1)
        self.task: asyncio.Task[None] | None = None
        self._context: JobContext | None = None

    def __repr__(self) -> str:
        kind = "a mirror" if self.mirror else "a follower" if self.follows else "messages"
        kind = "transactions" if self.transactions else kind
        return f"<StormFeed {self.kind.value} into {kind}>"

    @property
    def _frozen(self) -> bool:
        return any(model.frozen for model in self._models)

    @property
    def idle(self) -> bool:
        """Whether it runs, and all its tables are paused."""
        context = self._context
        return context is not None and not decode_details(context.payload).followed

    def start(self, node: SqlNode) -> None:
        self.task = asyncio.create_task(self._run(node), name=f"feed {self.kind.value}")

    async def stop(self) -> None:
        task, self.task = self.task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    def die(self) -> None:
        """The process of its node is gone, in the middle of whatever it did."""
        task, self.task = self.task, None
        if self._context is not None:
            self._context.lost = True
        if task is not None:
            task.cancel()
        if self.mirror is not None:
            self.mirror.crash()
            self.mirror.begin()

    def check_alive(self) -> None:
        """Raises what ended it."""
        assert self.task is not None, self
        if self.task.done():
            self.task.result()

    # Its job

    def _feeds(self, node: SqlNode) -> Changefeeds:
        services = ChangefeedServices(
            store=node.store,
            descriptors=DescriptorStore(node.store),
            leases=node.services.leases,
            kinds=SinkKinds({"storm": StormKind(self, node)}),
            offload=self._sim.offload,
            protections=ProtectedTimestamps(node.store),
            rights=node.services.rights,
            sealer=sealer(),
        )
        return Changefeeds(services, node.registry)

    async def _run(self, node: SqlNode) -> None:
        feeds = self._feeds(node)
        while True:
            try:
                if self.job_id is None:
                    await self._create(node, feeds)
                else:
                    await self._attempt(node, feeds, self.job_id)
            except (RetryableJobError, JobFenced, KVError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _create(self, node: SqlNode, feeds: Changefeeds) -> None:
        random = self._sim.random
        at = await node.store.now()
        chosen = self._models[:1] if random.random() < 0.4 else self._models
        found = [await self._table(node, model, at) for model in chosen]
        tables = [table for table in found if table is not None]
        request = FeedRequest(
            tables=tables,
            names=[table.name for table in tables],
            options={
                "schema_feed": self.kind.value,
                "min_checkpoint_frequency": self.checkpoints,
                "on_table_dropped": "leave",
                **({"transactions": None, "updated": None} if self.transactions else {}),
            },
            at=at,
            user="root",
        )
        transaction = node.store.begin()
        try:
            job_id = await feeds.create(transaction, request, "storm://")
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise
        if not self._frozen:
            self.job_id = job_id
            name = f"{self.kind.value}{' follower' * self.follows}"
            self.records.append(Record(name, self.follows))

    async def _table(
        self, node: SqlNode, model: TableModel, at: Timestamp
    ) -> TableDescriptor | None:
        table = await DescriptorStore(node.store).read_at(model.table_id, at)
        if not isinstance(table, TableDescriptor) or table.dropped:
            return None
        return None if table.modification_time >= at else table

    async def _there(self, node: SqlNode, added: AddTarget, at: Timestamp) -> bool:
        table = await DescriptorStore(node.store).read_at(added.table.id, at)
        return isinstance(table, TableDescriptor) and not table.dropped

    async def _attempt(self, node: SqlNode, feeds: Changefeeds, job_id: int) -> None:
        """A claim of the job, to its end."""
        jobs = JobStore(node.store)
        job = await jobs.claim(job_id, node.liveness.incarnation)
        if job is None:
            held = await jobs.get(job_id)
            if held.state.final:
                self._forget(job_id)
            else:
                await _let_go(jobs, held)
            return
        progress = await jobs.progress(job.id)
        context = self._context = _Claim(jobs, job, progress, self._note_saved)
        if progress is not None:
            self._note_saved(progress)
        self.live = feeds.watch(job.id)
        listening = asyncio.create_task(_listen(node, context))
        try:
            await ChangefeedResumer(feeds).resume(context)
        except (SchemaChangeEnd, TableDropped, FeedEnded) as end:
            await jobs.finish(context.job, JobEvent.FAIL, error=str(end))
            self._forget(job_id)
        finally:
            if self._context is context:  # where it died, another may run by now
                self._context = None
            listening.cancel()

    def _forget(self, job_id: int) -> None:
        """The job has ended."""
        if job_id == self.job_id and not self._frozen:
            self.job_id = None

    def sink(self, node: SqlNode, context: SinkContext) -> Sink:
        if self.mirror is not None:
            return LookedAtSink(
                self.mirror.sink(node.store, context),
                self.mirror,
                node.store,
                self._models,
                self._sim,
                job_id=context.identity.job_id,
                fail_chance=self.fail_chance,
            )
        assert self._context is not None
        record = self.records[-1]
        details = decode_details(self._context.payload)
        if not self._frozen:
            record.begin_attempt(details)
        if self.transactions:
            return self._framed_sink(context, record, details)
        return RecordingSink(
            record, self._models, self._sim, node.store, fail_chance=self.fail_chance
        )

    def _framed_sink(
        self, context: SinkContext, record: Record, details: ChangefeedDetails
    ) -> FramedSink:
        attempt = FramedAttempt.beginning(details, context.known)
        if not self._frozen:
            record.framed.append(attempt)
        order, tables = KeyOrder(record.name), {model.name: model for model in self._models}

        def on_batch(batch: ChangeBatch) -> None:
            order.note(batch)
            if not self._frozen:
                record.shown += rows_of(batch)

        def on_rows(rows: Sequence[tuple[str, int, Timestamp]]) -> None:
            tables.update({model.name: model for model in self._models})
            if not self._frozen:
                record.note_taken((tables[name].table_id, key, at) for name, key, at in rows)

        def on_failure() -> None:
            record.failures += 1

        return FramedSink(
            context.options,
            attempt,
            self._sim.random,
            fail_chance=self.fail_chance,
            on_batch=on_batch,
            on_rows=on_rows,
            on_failure=on_failure,
        )

    def _note_saved(self, progress: bytes) -> None:
        """Progress that the job's row holds. A sink that keeps none claims it by that."""
        if self.transactions and not self._frozen:
            self.records[-1].note_flushed(decode_progress(progress))

    # Its alterations

    async def alter(self, node: SqlNode, alterations: Sequence[Alteration]) -> None:
        """Raises SQLError where the job does not take them."""
        if self.job_id is None or not alterations:
            return
        at = await node.store.now()
        for clause in alterations:  # a statement holds a lease: nothing is dropped before its time
            if isinstance(clause, AddTarget) and not await self._there(node, clause, at):
                return
        transaction = node.store.begin()
        try:
            await self._feeds(node).alter(transaction, self.job_id, alterations, at=at)
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise

    async def choose_alterations(self, node: SqlNode, random: Random) -> list[Alteration]:
        """Clauses that the feed takes, as far as anybody can tell from here."""
        context = self._context
        targets = decode_details(context.payload).targets if context is not None else ()
        states = {target.table_id: target.state for target in targets}
        chosen: list[Alteration] = []
        for model in random.sample(self._models, min(len(self._models), random.choice([1, 1, 2]))):
            named, state = TargetName(model.table_id, model.name), states.get(model.table_id)
            again = random.random() < 0.3
            if state is not None and random.random() < 0.4:
                chosen.append(DropTarget(named))
            if state is None or (again and chosen):
                scans = True if self.mirror else random.choice([None, True, False])
                table = await self._table(node, model, await node.store.now())
                if table is not None:
                    chosen.append(AddTarget(table, model.name, scans))
            elif not chosen:
                paused = state is TargetState.PAUSED
                running = random.choice([TargetAction.PAUSE, TargetAction.RESCAN])
                chosen.append(ControlTarget(TargetAction.RESUME if paused else running, named))
        return chosen

    async def resume_targets(self, node: SqlNode) -> None:
        """Lets all of its tables go on."""
        if self.job_id is None:
            return
        details = decode_details((await JobStore(node.store).get(self.job_id)).payload)
        paused = [each for each in details.targets if each.state is TargetState.PAUSED]
        names = [TargetName(each.table_id, each.name) for each in paused]
        await self.alter(node, [ControlTarget(TargetAction.RESUME, name) for name in names])

    async def caught_up(self, node: SqlNode, at: Timestamp) -> None:
        """Returns when all of its tables have come as far as `at`."""
        while not await self._holds(node, at):
            await asyncio.sleep(RETRY_SECONDS)

    async def _holds(self, node: SqlNode, at: Timestamp) -> bool:
        progress = self.live.progress
        if self.job_id is None or progress is None:
            return False
        details = decode_details((await JobStore(node.store).get(self.job_id)).payload)
        for target in details.targets:
            assert target.state is not TargetState.FAILED, f"{self}: {target}"
        if details.followed and progress.resolved < at:  # one that follows nothing resolves nothing
            return False
        spans = [table_span(target.table_id) for target in details.followed]
        begun = not any(target.fresh or target.again for target in details.followed)
        return begun and all(
            parts and min(reached for _, reached in parts) >= at
            for parts in (part_of(progress.frontier, span) for span in spans)
        )

    # Judgement

    def judge(self, histories: Mapping[int, TableHistory]) -> int:
        """Returns how many rows were looked at."""
        models = {model.table_id: model for model in self._models}
        if self.mirror is not None:
            return self.mirror.judge(models, histories)
        for record in self.records:
            record.judge(models)
        return sum(len(record.shown) for record in self.records)

    async def verify_logs(self, node: SqlNode) -> int:
        """Returns how many logs of changes were looked at."""
        if self.mirror is None or not self.mirror.logs or self.job_id is None:
            return 0
        job = await JobStore(node.store).get(self.job_id)
        return await self.mirror.verify_logs(node, job.id, decode_details(job.payload))


class _Claim(JobContext):
    """A claim that tells of the progress that it has saved."""

    def __init__(
        self,
        jobs: JobStore,
        job: JobRecord,
        progress: bytes | None,
        on_saved: Callable[[bytes], None],
    ) -> None:
        super().__init__(jobs, job, progress)
        self._on_saved = on_saved

    async def save_progress(self, progress: bytes) -> None:
        await super().save_progress(progress)
        self._on_saved(progress)


async def _let_go(jobs: JobStore, job: JobRecord) -> None:
    """The node where it ran before gives up its claim, as PAUSE JOB has it do."""
    if job.state is JobState.RUNNING:
        job = await jobs.request(job.id, JobEvent.REQUEST_PAUSE)
    if job.state is JobState.PAUSE_REQUESTED:
        job = await jobs.finish(job, JobEvent.PAUSE)
    if job.state is JobState.PAUSED:
        await jobs.request(job.id, JobEvent.RESUME)


async def _listen(node: SqlNode, context: JobContext) -> None:
    """Tells a claim of the job's changes, as a registry's runner does it."""
    while True:
        heard = node.registry._live.get(context.job.id)
        if heard is not None and heard.job is not None and heard.job.epoch == context.epoch:
            context.note_payload(heard.job.payload, heard.at)
        await asyncio.sleep(RETRY_SECONDS)
