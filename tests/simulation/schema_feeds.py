"""Feeds over tables whose schema changes, and what they may show: judged by `TableModel`.

Each row under the schema that was canonical at its timestamp, and as it was committed; nothing
resolved before it was flushed; and nothing resolved at or above a schema change that rewrites rows
before they have been shown again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import ChangefeedOptions, SchemaFeedKind
from tailrace.changefeed.jobs.attempt import Destination, plan_tables, retryable, run_attempt
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.pipeline.boundary import SchemaChangeEnd
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.sinks import SinkKinds
from tailrace.changefeed.sinks.protocol import Sink, SinkError, SinkProgress, SinkStand
from tailrace.kvlayer.access import StoreAccess
from tailrace.kvlayer.clock import Timestamp, WallClock
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.schemafeed import TableEvent
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
class Record:
    """One feed from its initial scan on, over all its attempts."""

    name: str
    scan_at: Timestamp
    follows: bool
    shown: list[Shown] = field(default_factory=list)
    unflushed: list[tuple[int, int, Timestamp, ChangeKind]] = field(default_factory=list)
    flushed_in: dict[tuple[int, int, Timestamp, bool], int] = field(default_factory=dict)
    claims: PrefixMaximum = field(default_factory=PrefixMaximum)
    flushes: int = 0
    known: SinkProgress | None = None
    ended_at: Timestamp | None = None
    """At a truncation, which a feed of messages does not outlive."""

    def note_flushed(self, progress: SinkProgress | None) -> None:
        self.flushes += 1
        for table_id, key, at, kind in self.unflushed:
            place = (table_id, key, at, kind is ChangeKind.LIVE)
            self.flushed_in.setdefault(place, self.flushes)
        self.unflushed = []
        if progress is not None:
            self.known = progress
            if progress.scan_complete:
                self.claims.note(self.flushes, progress.resolved)

    def judge(self, models: Mapping[int, TableModel]) -> None:
        for shown in self.shown:
            _check_shown(shown, models[shown.table.id], self.scan_at)
        for model in models.values():
            self._check_delivered(model)
            for era in model.eras:
                if era.at > self.scan_at and any(_rewrites(s, self.follows) for s in era.steps):
                    self._check_shown_again(model, era.at)

    def _check_delivered(self, model: TableModel) -> None:
        for write in model.writes:
            at = write.at
            if at is None or at <= self.scan_at:
                continue
            claimed = self.claims.first_at(at)
            for key in write.tokens if claimed is not None else ():
                flushed = self.flushed_in.get((model.table_id, key, at, True))
                assert flushed is not None, (
                    f"{self.name}: resolved passed {key} at {at}: never came"
                )
                assert flushed <= (claimed or 0), f"{self.name}: resolved passed {key} at {at}"

    def _check_shown_again(self, model: TableModel, at: Timestamp) -> None:
        """Rows as of a step that rewrites, or later versions of theirs, come before resolved."""
        claimed = self.claims.first_at(at)
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


def _check_shown(shown: Shown, model: TableModel, scan_at: Timestamp) -> None:
    at = shown.at
    model.check_shape(at, shape_of(shown.table))
    model.note_ids({column.id: column.name for column in shown.table.visible_columns})
    match shown.kind:
        case ChangeKind.LIVE:
            assert model.written(shown.key, at), f"{shown} was never committed"
        case ChangeKind.BACKFILL:
            assert model.era_at(at).at == at, f"{shown}: nothing changed then"
        case ChangeKind.INITIAL_SCAN:
            assert at == scan_at, shown
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
        model: Mapping[int, TableModel],
        sim: Simulation,
        store: StoreAccess,
        *,
        fail_chance: float,
    ) -> None:
        self._record = record
        self._store = store
        self._fail_chance = fail_chance
        self._order = KeyOrder(record.name)
        self._models = model
        self._sim = sim
        self._wall: WallClock = sim.wall
        self._ended = False
        self._batches: list[ChangeBatch] = []
        record.unflushed = []

    async def stand(self) -> SinkStand | None:
        known = self._record.known
        return None if known is None else SinkStand(progress=known, position=self._store.position)

    async def open(self, tables: Sequence[TableDescriptor]) -> None: ...

    @property
    def _deaf(self) -> bool:
        return self._ended or any(model.frozen for model in self._models.values())

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


class StormFeed:
    """A feed of some tables, which runs on one node and may move to another.

    It writes messages, or with `mirror` into a DuckDB file.
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
        self._sim = sim
        self.kind = kind
        self.models = {model.table_id: model for model in models}
        self.follows = follows or mirror is not None
        self.mirror = mirror
        self.fail_chance = FAIL_CHANCE
        self.min_checkpoint_frequency = sim.random.choice([0.0, 0.05, 1.0])
        self.records: list[Record] = []
        self.live = LiveFeed(1)
        self.task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        kind = "a mirror" if self.mirror else "a follower" if self.follows else "messages"
        return f"<StormFeed {self.kind.value} into {kind}>"

    def start(self, node: SqlNode) -> None:
        self.live = LiveFeed(1)
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

    async def _run(self, node: SqlNode) -> None:
        while True:
            try:
                if not self.records or self.records[-1].ended_at is not None:
                    name = f"{self.kind.value}{' follower' * self.follows}"
                    self.records.append(Record(name, await node.store.now(), self.follows))
                await self._attempt(node, self.records[-1])
            except SchemaChangeEnd:
                self.records[-1].ended_at = await node.store.now()
            except Exception as error:  # the feed knows which of its errors may be mended
                if not retryable(error):
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(self, node: SqlNode, record: Record) -> None:
        services = ChangefeedServices(
            store=node.store,
            descriptors=DescriptorStore(node.store),
            leases=node.services.leases,
            kinds=SinkKinds({}),
            offload=self._sim.offload,
            protections=ProtectedTimestamps(node.store),
            rights=node.services.rights,
            sealer=sealer(),
        )

        async def save(progress: SinkProgress) -> None: ...

        async def save_known(progress: SinkProgress) -> None:
            if not any(model.frozen for model in self.models.values()):
                record.known = progress

        mirrored = self.mirror is not None
        await run_attempt(
            services,
            plan_tables(
                services,
                list(self.models),
                start_at=record.scan_at,
                options=ChangefeedOptions(
                    schema_feed=self.kind, min_checkpoint_frequency=self.min_checkpoint_frequency
                ),
            ),
            Destination(
                sink=self._sink(node, record),
                transactional=True,
                columnar=mirrored,
                follows_schema=self.follows,
                known=record.known,
                save=save_known if mirrored else save,
            ),
            self.live,
        )

    def _sink(self, node: SqlNode, record: Record) -> Sink:
        if self.mirror is None:
            return RecordingSink(
                record, self.models, self._sim, node.store, fail_chance=self.fail_chance
            )
        return LookedAtSink(
            self.mirror.sink(node.store),
            self.mirror,
            node.store,
            self.models,
            self._sim,
            fail_chance=self.fail_chance,
        )

    def judge(self, histories: Mapping[int, TableHistory]) -> int:
        """Returns how many rows were looked at."""
        if self.mirror is not None:
            return self.mirror.judge(self.models, histories)
        for record in self.records:
            record.judge(self.models)
        return sum(len(record.shown) for record in self.records)
