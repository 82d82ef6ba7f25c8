"""Mirrors that outlive their process: a DuckDB file, and a sink in memory for any schema."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.changes import ChangeBatch
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.jobs.reservations import lives
from tailrace.changefeed.sinks.duckdb import DuckDBFiles
from tailrace.changefeed.sinks.duckdb.hosting import WORKERS, MirrorWorker, PlacedKind, PlacedReader
from tailrace.changefeed.sinks.duckdb.hosting.placement import Placement
from tailrace.changefeed.sinks.locations import Apply, MirrorLocations, Mode
from tailrace.changefeed.sinks.protocol import (
    FeedIdentity,
    Sink,
    SinkContext,
    SinkProgress,
    SinkStand,
)
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.schemafeed import TableEvent
from tests.harness.loop_worker import LoopWorker
from tests.harness.simulation import Simulation

JOB_ID = 7
FILE = "mirror.duckdb"

Row = tuple[Datum, ...]
Shown = dict[Datum, tuple[Timestamp, Row]]


@dataclass(frozen=True, slots=True)
class MirrorState:
    """What a mirror holds: how far it has come, and its rows by key with their timestamps."""

    resolved: Timestamp
    scan_complete: bool
    rows: Shown


EMPTY = MirrorState(ZERO, False, {})


class DuckDBMirror:
    """A mirror file, as one process has it open, or its worker, if the file is `apart`. The next
    process gets a copy."""

    def __init__(
        self,
        folder: Path,
        apply: Apply = Apply.ROW,
        mode: Mode = Mode.MIRROR,
        *,
        apart: bool = False,
    ) -> None:
        self.folder = folder
        self.apply = apply
        self.mode = mode
        self.apart = apart
        folder.mkdir(parents=True, exist_ok=True)
        self.worker: LoopWorker
        self._kind: PlacedKind
        self._reader: PlacedReader
        self._store: Store | None = None
        self._dead: DuckDBMirror | None = None
        """The one of the process before: its tasks are the loop's until that ends."""

    def begin(self, sim: Simulation) -> None:
        """A process starts."""
        files = DuckDBFiles(MirrorLocations([self.folder]), sim.offload)
        self.worker = LoopWorker(sim.offload, sim.wall)
        worker = MirrorWorker(self.worker.start, self._lives, Metrics(), [self.folder])
        settings = Settings({WORKERS.name: "on" if self.apart else "off"})
        placement = Placement(files, worker, settings)
        self._kind = PlacedKind(placement, self._lives, sim.offload.lane("mirrors"))
        self._reader = PlacedReader(placement)

    async def _lives(self, job_id: int) -> bool:
        assert self._store is not None, "asked of a store's feeds"
        return await lives(self._store, job_id)

    def sink(self, store: Store, sim: Simulation, epoch: int) -> Sink:
        context = SinkContext(
            identity=FeedIdentity(store_id=store.id, job_id=JOB_ID, epoch=epoch),
            position=lambda: store.position,
            clock=store.clock,
            offload=sim.offload,
            settings=store.settings,
            metrics=store.metrics,
            options=ChangefeedOptions(),
        )
        return self.kind(store).create(self.uri, context)

    @property
    def uri(self) -> str:
        return f"duckdb:///{FILE}?apply={self.apply.value}&mode={self.mode.value}"

    def kind(self, store: Store) -> PlacedKind:
        self._store = store
        return self._kind

    def crash(self, folder: Path) -> DuckDBMirror:
        """What the death of the process leaves: all that was committed, and nothing else."""
        folder.mkdir(parents=True)
        for path in self.folder.iterdir():
            shutil.copy(path, folder / path.name)
        copy = DuckDBMirror(folder, self.apply, self.mode, apart=self.apart)
        copy._dead = self
        return copy

    async def read(self, table_id: int) -> MirrorState:
        """As of one commit."""
        return _state(await self.query(_state_sql(table_id)))

    async def query(self, sql: str) -> list[Row]:
        """The rows of one SELECT, through the server's own reader."""
        while True:
            try:
                found = await self._reader.read(FILE, sql)
            except SQLError as error:
                if "the worker process" not in error.message:
                    raise
            else:
                return [tuple(row.values()) for row in found.to_pylist()]

    def look(self, table_id: int) -> MirrorState:
        """What a dead process left, without changing the file."""
        path = self.folder / FILE
        if not path.exists():
            return EMPTY
        with duckdb.connect(str(path), read_only=True, config={"threads": 1}) as connection:
            base = f"rows_{JOB_ID}_{table_id}"
            made = "SELECT 1 FROM duckdb_tables() WHERE table_name = $1"
            if not connection.execute(made, [base]).fetchall():
                return EMPTY
            return _state(connection.execute(_state_sql(table_id)).fetchall())


def _state_sql(table_id: int) -> str:
    base = f"_tailrace.rows_{JOB_ID}_{table_id}"
    return (
        "SELECT progress.resolved, progress.scan_complete, mirror._commit_timestamp, "
        f"mirror.* EXCLUDE (_commit_timestamp) FROM _tailrace.progress AS progress "
        f"LEFT JOIN {base} AS mirror ON true"
    )


def _state(found: Sequence[tuple[Datum, ...]]) -> MirrorState:
    resolved, scan_complete = found[0][:2]
    rows = {row[3]: (Timestamp(row[2]), row[3:]) for row in found if row[2] is not None}  # type: ignore[arg-type]
    return MirrorState(Timestamp(resolved or 0), bool(scan_complete), rows)  # type: ignore[arg-type]


@dataclass
class MemoryMirror:
    """A mirror in memory that takes rows of any schema, and never forgets a deletion."""

    newest: dict[Datum, tuple[Timestamp, Row | None]] = field(default_factory=dict)
    stand: SinkStand | None = None

    def begin(self, sim: Simulation) -> None: ...

    def sink(self, store: Store, sim: Simulation, epoch: int) -> Sink:
        return _MemorySink(self, store)

    def crash(self, folder: Path) -> MemoryMirror:
        return MemoryMirror(dict(self.newest), self.stand)

    async def read(self, table_id: int) -> MirrorState:
        return self.look(table_id)

    def look(self, table_id: int) -> MirrorState:
        rows = {key: (ts, row) for key, (ts, row) in self.newest.items() if row is not None}
        if self.stand is None:
            return MirrorState(ZERO, False, rows)
        progress = self.stand.progress
        return MirrorState(progress.resolved, progress.scan_complete, rows)


Mirror = DuckDBMirror | MemoryMirror


class _MemorySink:
    def __init__(self, mirror: MemoryMirror, store: Store) -> None:
        self._mirror = mirror
        self._store = store
        self._batches: list[ChangeBatch] = []

    async def stand(self) -> SinkStand | None:
        return self._mirror.stand

    async def open(self, tables: Sequence[TableDescriptor]) -> None:
        if self._mirror.stand is None:
            self._mirror.newest.clear()

    def emit(self, batch: ChangeBatch) -> None:
        self._batches.append(batch)

    def change_schema(self, event: TableEvent) -> None: ...

    async def flush(self, progress: SinkProgress | None) -> None:
        for batch in self._batches:
            keys = codec_for(batch.descriptor)
            for key, ts, row in zip(
                batch.keys, batch.timestamps, batch.iterate_rows(), strict=True
            ):
                name = keys.decode_key(key)[0]
                if name not in self._mirror.newest or self._mirror.newest[name][0] < ts:
                    self._mirror.newest[name] = (ts, row)
        self._batches = []
        if progress is not None:
            self._mirror.stand = SinkStand(progress=progress, position=self._store.position)

    async def emit_resolved(self, resolved: Timestamp) -> None: ...

    async def close(self) -> None: ...
