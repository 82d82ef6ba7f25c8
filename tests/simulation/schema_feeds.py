"""The feeds of a storm, and what is known of them: each row under the schema that was canonical at
its timestamp, and as it was committed; nothing resolved before it was flushed; and nothing resolved
at or above a schema change that rewrites rows before they have been shown again.

A feed is a row of the job table, claimed by the node that runs it, and altered by any node: its
tables join and leave it, are paused, resumed and shown again. Each promise is judged for each time
that a table was in a feed (`Membership`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tailrace.api.feeds import ChangefeedResumer
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.jobs import JobContext, JobFenced, JobRecord, JobState, RetryableJobError
from tailrace.catalog.jobs.job_store import JobStore
from tailrace.catalog.jobs.states import JobEvent
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed import Changefeeds, FeedRequest
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
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
from tailrace.changefeed.jobs.details import ChangefeedDetails, decode_details
from tailrace.changefeed.jobs.job import FeedEnded
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.pipeline.boundary import SchemaChangeEnd
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.pipeline.progress import part_of
from tailrace.changefeed.sinks import SinkKinds
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
from tailrace.kvlayer.clock import ZERO, Timestamp, WallClock
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.schemafeed import TableEvent
from tailrace.schemafeed.feed import TableDropped
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.simulation.key_order import KeyOrder
from tests.simulation.raw_history import TableHistory, shape_of
from tests.simulation.row_model import PrefixMaximum
from tests.simulation.schema_model import KEY_GAP, TableModel
from tests.simulation.schema_steps import (
    Add,
    Become,
    Drop,
    Fill,
    Rekey,
    Step,
    Truncate,
)
from tests.simulation.storm_mirrors import LookedAtSink, StormMirror

RETRY_SECONDS = 0.05
FAIL_CHANCE = 0.01
"""Of each flush."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row as it was handed to the sink."""

    table: TableDescriptor
    kind: ChangeKind
    key: int
    at: Timestamp
    row: tuple[object, ...] | None


@dataclass
class Membership:
    """A table's time in a feed, from `start_at` on: with its rows as of then if it `scans`."""

    table_id: int
    start_at: Timestamp
    scans: bool
    followed: bool = True
    claims: PrefixMaximum = field(default_factory=PrefixMaximum)
    scanned: list[tuple[Timestamp, int, int]] = field(default_factory=list)
    """Scans that have ended: as of when, and the flushes behind which and with which."""
    _noted: int = 0
    """The last flush that claimed progress: a scan may have begun with one that claimed none."""
    _low: Timestamp | None = None
    _scanning: tuple[Timestamp, int] | None = None
    _counts: bool = False

    def begin_attempt(self, *, followed: bool) -> None:
        self.followed, self._counts = followed, False

    def note(self, flush: int, progress: SinkProgress) -> None:
        """A flush has claimed `progress`."""
        noted, self._noted = self._noted, flush
        parts = part_of(progress.frontier, table_span(self.table_id))
        if not parts:  # it has not begun, or begins anew
            self._low = self._scanning = None
            return
        low = min(at for _, at in parts)
        if self._scanning is None and (low == ZERO or (self._low is None and self.scans)):
            self._scanning = (self._low or self.start_at, noted if self._low else 0)
        if low == ZERO:
            return
        if self._scanning is not None:
            self.scanned.append((*self._scanning, flush))
            self._scanning = None
        self._low = low
        self.claims.note(flush, low)
        if self.followed and progress.scan_complete:
            counts = low >= progress.resolved
            assert counts or not self._counts, f"{self} fell behind {progress.resolved}"
            self._counts = counts


@dataclass
class Record:
    """One feed's job from its beginning on, over all its attempts."""

    name: str
    follows: bool
    members: dict[tuple[int, Timestamp], Membership] = field(default_factory=dict)
    current: list[Membership] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    unflushed: list[tuple[int, int, Timestamp, ChangeKind]] = field(default_factory=list)
    flushed_in: dict[tuple[int, int, Timestamp, bool], int] = field(default_factory=dict)
    scanned_in: dict[tuple[int, int, Timestamp], list[int]] = field(default_factory=dict)
    duplicates: int = 0
    failures: int = 0
    """Flushes that the sink refused, as the seed says."""
    flushes: int = 0
    known: SinkProgress | None = None

    def begin_attempt(self, details: ChangefeedDetails) -> None:
        self.unflushed, self.current = [], []
        for target in details.targets:
            member = Membership(target.table_id, target.start_at, target.scans)
            member = self.members.setdefault((target.table_id, target.start_at), member)
            member.begin_attempt(followed=target.state.followed)
            self.current.append(member)

    def note_flushed(self, progress: SinkProgress | None) -> None:
        self.flushes += 1
        for table_id, key, at, kind in self.unflushed:
            place = (table_id, key, at, kind is ChangeKind.LIVE)
            self.duplicates += place in self.flushed_in
            self.flushed_in.setdefault(place, self.flushes)
            if kind is ChangeKind.INITIAL_SCAN:
                self.scanned_in.setdefault((table_id, key, at), []).append(self.flushes)
        self.unflushed = []
        if progress is not None:
            assert self.known is None or progress.resolved >= self.known.resolved, progress
            self.known = progress
            for member in self.current:
                member.note(self.flushes, progress)

    def judge(self, models: Mapping[int, TableModel]) -> None:
        for shown in self.shown:
            _check_shown(shown, models[shown.table.id])
        for member in self.members.values():
            model = models[member.table_id]
            self._check_scanned(member, model)
            self._check_delivered(member, model)
            for era in model.eras:
                if era.at > member.start_at and any(_rewrites(s, self.follows) for s in era.steps):
                    self._check_shown_again(member, model, era.at)

    def _check_scanned(self, member: Membership, model: TableModel) -> None:
        for as_of, since, done in member.scanned:
            for key in model.rows_at(as_of):
                flushes = self.scanned_in.get((model.table_id, key, as_of), ())
                assert any(since < flush <= done for flush in flushes), (
                    f"{self.name}: {key} of {model.name} was not scanned as of {as_of}: {flushes}, "
                    f"not above {since} and up to {done}"
                )

    def _check_delivered(self, member: Membership, model: TableModel) -> None:
        for write in model.writes:
            at = write.at
            if at is None or at <= member.start_at:
                continue
            claimed = member.claims.first_at(at)
            for key in write.tokens if claimed is not None else ():
                flushed = self.flushed_in.get((model.table_id, key, at, True))
                assert flushed is not None, (
                    f"{self.name}: resolved passed {key} at {at}: never came"
                )
                assert flushed <= (claimed or 0), f"{self.name}: resolved passed {key} at {at}"

    def _check_shown_again(self, member: Membership, model: TableModel, at: Timestamp) -> None:
        """Rows as of a step that rewrites, or later versions of theirs, come before resolved."""
        claimed = member.claims.first_at(at)
        if claimed is None:
            return
        for key in model.rows_at(at):
            later = [
                number
                for (table_id, shown, ts, live), number in self.flushed_in.items()
                if (table_id, shown) == (model.table_id, key) and (ts >= at if live else ts == at)
            ]
            assert later, f"{self.name}: {key} as of {at} never came, and resolved passed it"
            assert min(later) <= claimed, f"{self.name}: resolved passed {at} before {key} of it"


def _check_shown(shown: Shown, model: TableModel) -> None:
    at = shown.at
    model.check_shape(at, shape_of(shown.table))
    model.note_ids({column.id: column.name for column in shown.table.visible_columns})
    match shown.kind:
        case ChangeKind.LIVE:
            assert model.written(shown.key, at), f"{shown} was never committed"
        case ChangeKind.BACKFILL:
            assert model.era_at(at).at == at, f"{shown}: nothing changed then"
        case ChangeKind.INITIAL_SCAN:
            pass  # as of whenever the table joined the feed, or stood when it was to come again
    model.check_row(shown.key, at, shown.row)


def _rewrites(step: Step, follows: bool) -> bool:
    """Whether a feed has to show the table's rows again."""
    match step:
        case Add(column=column):
            if column.fill is Fill.CONSTANT:
                return not follows
            return column.fill is not Fill.NULL
        case Drop():
            return not follows
        case Become(type=type):
            return type is not None
        case Rekey():
            return True
        case Truncate():
            return follows


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
        self._wall: WallClock = sim.wall
        self._ended = False
        self._batches: list[ChangeBatch] = []

    async def stand(self) -> SinkStand | None:
        known = self._record.known
        return None if known is None else SinkStand(progress=known, position=self._store.position)

    async def open(self, tables: Sequence[TableDescriptor]) -> None: ...

    @property
    def _deaf(self) -> bool:
        return self._ended or any(model.frozen for model in self._models)

    def emit(self, batch: ChangeBatch) -> None:
        batch.stages.received = self._wall.monotonic_ns()
        self._order.note(batch)
        self._batches.append(batch)
        if self._deaf:
            return
        table = batch.descriptor
        codec = codec_for(table)
        gap = 0 if table.key_columns[0].name == "k" else KEY_GAP
        rows = zip(batch.keys, batch.timestamps, batch.iterate_rows(), strict=True)
        for encoded, at, row in rows:
            name = codec.decode_key(encoded)[0]
            assert isinstance(name, int)
            self._record.shown.append(Shown(table, batch.kind, name - gap, at, row))
            self._record.unflushed.append((table.id, name - gap, at, batch.kind))

    def change_schema(self, event: TableEvent) -> None: ...

    async def flush(self, progress: SinkProgress | None) -> None:
        if self._sim.random.random() < self._fail_chance:
            self._record.failures += 1
            raise SinkError("the sink was away")
        for batch in self._batches:
            batch.stages.sunk = self._wall.monotonic_ns()
        self._batches = []
        if not self._deaf:
            self._record.note_flushed(progress)
        if self._sim.random.random() < 0.2:
            await asyncio.sleep(self._sim.random.random() * 0.05)

    async def emit_resolved(self, resolved: Timestamp) -> None: ...

    async def close(self) -> None:
        self._ended = True


class StormKind:
    """The kind of the sinks of one feed, on one node: the feed's file goes where the feed does.
    Implements `SinkKind`."""

    transactional = True
    local = False
    obeys = PIPELINE_OPTIONS

    def __init__(self, feed: StormFeed, node: SqlNode) -> None:
        self._feed = feed
        self._node = node
        self.columnar = feed.mirror is not None
        self.follows_schema = feed.follows

    def check_options(self, options: ChangefeedOptions) -> None: ...

    async def validate(
        self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str
    ) -> None: ...

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        return frozenset()

    def create(self, uri: str, context: SinkContext) -> Sink:
        return self._feed.sink(self._node, context)

    async def release(self, uri: str, identity: FeedIdentity) -> None:
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
        self.follows = follows or mirror is not None
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
        context = self._context = JobContext(jobs, job, await jobs.progress(job.id))
        self.live = feeds.watch(job.id)
        listening = asyncio.create_task(_listen(node, context))
        try:
            await ChangefeedResumer(feeds).resume(context)
        except (SchemaChangeEnd, TableDropped, FeedEnded) as end:
            await jobs.finish(context.job, JobEvent.FAIL, error=str(end))
            self._forget(job_id)
        finally:
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
        if not self._frozen:
            record.begin_attempt(decode_details(self._context.payload))
        return RecordingSink(
            record, self._models, self._sim, node.store, fail_chance=self.fail_chance
        )

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
        for job in node.registry.live():
            if job.id == context.job.id and job.epoch == context.epoch:
                context.note_payload(job.payload)
        await asyncio.sleep(RETRY_SECONDS)
