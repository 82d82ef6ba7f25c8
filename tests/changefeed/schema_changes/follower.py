"""A table that changes, and a feed of it into a DuckDB file, on a simulated store.

async with following(sim, tmp_path) as on:
    await on.write((1, "a"))
    await on.change(columns=...)         # one version, as any schema change publishes it
    await on.settle()                    # the mirror equals the source, names and types included
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.descriptors.elements import ElementState, Index, IndexKind
from tailrace.catalog.rights.rights_watcher import RightsWatcher
from tailrace.catalog.rows.row_codec import RowCodec
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind, Form
from tailrace.changefeed.contract.options import ChangefeedOptions
from tailrace.changefeed.jobs.attempt import Destination, plan_tables, run_attempt
from tailrace.changefeed.jobs.reservations import lives
from tailrace.changefeed.jobs.services import ChangefeedServices
from tailrace.changefeed.pipeline.live import LiveFeed
from tailrace.changefeed.sinks import Sink, SinkKinds, SinkProgress
from tailrace.changefeed.sinks.duckdb import DuckDBFiles, DuckDBKind, MirrorReader
from tailrace.changefeed.sinks.locations import Apply, MirrorLocations
from tailrace.changefeed.sinks.protocol import FeedIdentity, SinkContext
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.kvlayer.txn import Evaluation
from tailrace.schemafeed import TableEvent
from tests.harness.descriptors import INT8
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation

FILE = "mirror.duckdb"
Row = tuple[Datum, ...]


Shown = tuple[list[tuple[str, str]], list[Row]]
"""A mirror's columns, with their types, and its rows in order of the first column."""


class Recorded:
    """A sink that also notes what passes."""

    def __init__(self, inner: Sink, batches: list[ChangeBatch], backfilling: asyncio.Event) -> None:
        self._inner = inner
        self._backfilling = backfilling
        self.batches = batches
        self.stand, self.open, self.flush = inner.stand, inner.open, inner.flush
        self.emit_resolved, self.close = inner.emit_resolved, inner.close

    def emit(self, batch: ChangeBatch) -> None:
        self.batches.append(batch)
        if batch.kind is ChangeKind.BACKFILL:
            self._backfilling.set()
        self._inner.emit(batch)

    def change_schema(self, event: TableEvent) -> None:
        self._inner.change_schema(event)


class Source:
    """A table of the store, written under its newest version, in all its primary indexes."""

    def __init__(self, catalog: CatalogFixture, table: TableDescriptor, other: Node) -> None:
        self.catalog = catalog
        self.table = table
        self._other = other

    @property
    def id(self) -> int:
        return self.table.id

    def now(self) -> Timestamp:
        return self.catalog.store.clock.now()

    async def write(self, *rows: Row, delete: Sequence[Datum] = ()) -> Timestamp:
        """One transaction. Rows have the visible columns."""
        return await self._commit(self._operations(rows, delete))

    def _operations(
        self, rows: Sequence[Row], delete: Sequence[Datum]
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        codec = RowCodec(self.table)
        puts = [codec.encode_row(row) for row in rows]
        gone = [codec.encode_key((key,)) for key in delete]
        if self.table.new_primary is not None:
            built = RowCodec(self._built)
            rewritten = [self.rewrite(row) for row in rows]
            puts += [built.encode_row(row) for row in rewritten]
            moved = delete if self._key == (1,) else [f"made for {key!r}" for key in delete]
            gone += [built.encode_key((key,)) for key in moved]
        return puts, gone

    async def _commit(self, work: tuple[list[tuple[bytes, bytes]], list[bytes]]) -> Timestamp:
        def evaluate(evaluation: Evaluation) -> None:
            evaluation.put([key for key, _ in work[0]], [body for _, body in work[0]])
            evaluation.delete(work[1])

        return (await self.catalog.store.one_phase(evaluate))[1]

    async def change(self, **changes: Any) -> TableDescriptor:
        """The next version, once no lease on the one before stands in its way."""
        await self._other.leases.wait_for_one_version(self.id, timeout=30)
        self.table = await self.catalog.publish(self.id, **changes)
        return self.table

    async def add_column(self, name: str, default: Datum, type: ColumnType = INT8) -> None:
        """ADD COLUMN with a constant default: nothing is rewritten."""
        table = self.table
        column = Column(
            id=table.next_column_id,
            name=name,
            type=type,
            default=default,
            has_default=default is not None,
            missing=default,
        )
        await self.change(columns=(*table.columns, column), next_column_id=table.next_column_id + 1)

    async def drop_column(self, name: str) -> None:
        await self.change(columns=tuple(c for c in self.table.columns if c.name != name))

    async def rename_column(self, old: str, new: str) -> None:
        columns = [replace(c, name=new) if c.name == old else c for c in self.table.columns]
        await self.change(columns=tuple(columns))

    async def truncate(self) -> None:
        index = self.table.next_index_id
        await self.change(primary_index_id=index, next_index_id=index + 1)

    async def build(self, columns: tuple[Column, ...], *, key: tuple[int, ...] = (1,)) -> None:
        """Begins to rewrite the rows into another primary index, for these columns and key."""
        table = self.table
        index = Index(id=table.next_index_id, name="building", kind=IndexKind.PRIMARY, columns=key)
        hidden = tuple(
            replace(column, state=ElementState.WRITE_ONLY, nullable=True)
            for column in columns
            if column.id not in {known.id for known in table.columns}
        )
        self._target, self._key = columns, key
        await self.change(
            columns=table.columns + hidden,
            next_column_id=max(c.id for c in (*columns, *table.columns)) + 1,
            new_primary=index,
            next_index_id=index.id + 1,
        )
        rows = await self.rows_at(self.now())
        built = RowCodec(self._built)
        await self._commit(([built.encode_row(self.rewrite(row)) for row in rows], []))

    @property
    def _built(self) -> TableDescriptor:
        assert self.table.new_primary is not None
        return replace(
            self.table,
            columns=self._target,
            primary_key=self._key,
            primary_index_id=self.table.new_primary.id,
            new_primary=None,
        )

    def rewrite(self, row: Row) -> Row:
        """A row of the table now as the new index holds it: a new column is text of the key."""
        known = {
            column.id: value for column, value in zip(self.table.visible_columns, row, strict=True)
        }
        return tuple(known.get(column.id, f"made for {row[0]!r}") for column in self._target)

    async def swap(self) -> None:
        """From here on the rows are read from the new index."""
        built = self._built
        old = self.table.primary_index
        await self.change(
            columns=built.columns,
            primary_key=built.primary_key,
            primary_index_id=built.primary_index_id,
            new_primary=None,
            old_primary=replace(old, columns=(1,)),
        )

    async def rows_at(self, at: Timestamp) -> list[Row]:
        """SELECT * AS OF `at`, by key."""
        table = await self.catalog.descriptors.read_at(self.id, at)
        assert isinstance(table, TableDescriptor)
        codec = RowCodec(table)
        found = await self.catalog.store.snapshot(at).scan(table.primary_span)
        return [codec.decode_row(key, body) for key, body in found]


class Follower:
    """A feed of some tables into a mirror file, which may be stopped and started again."""

    def __init__(self, sim: Simulation, catalog: CatalogFixture, node: Node, folder: Path) -> None:
        self._sim = sim
        self._catalog = catalog
        self._node = node
        self.store = catalog.store
        self._files = DuckDBFiles(MirrorLocations([folder]), sim.offload)
        self.kind = DuckDBKind(self._files, partial(lives, self.store))
        self._reader = MirrorReader(self._files)
        self.live = LiveFeed(7)
        self.options = ChangefeedOptions()
        self.apply = Apply.ROW
        self.batches: list[ChangeBatch] = []
        self.backfilling = asyncio.Event()
        """The first rows of a backfill have been emitted."""
        self.saved: list[SinkProgress] = []
        self.start_at = self.store.clock.now()
        self.protected_at = ZERO
        """Garbage collection has left what lies above it."""
        self.path = folder / FILE
        self.sources: list[Source] = []
        self._epoch = 0
        self.task: asyncio.Task[None]

    def start(self) -> None:
        self._epoch += 1
        self.live = LiveFeed(7)
        self.task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def _run(self) -> None:
        store = self.store
        identity = FeedIdentity(store_id=store.id, job_id=7, epoch=self._epoch)
        context = SinkContext(
            identity=identity,
            position=lambda: store.position,
            clock=store.clock,
            offload=self._sim.offload,
            settings=store.settings,
            metrics=store.metrics,
            options=self.options,
        )
        services = ChangefeedServices(
            store=store,
            descriptors=self._catalog.descriptors,
            leases=self._node.leases,
            kinds=SinkKinds({}),
            offload=self._sim.offload,
            protections=ProtectedTimestamps(store),
            rights=RightsWatcher(store),
            sealer=sealer(),
        )
        plan = plan_tables(
            services,
            [source.id for source in self.sources],
            start_at=self.start_at,
            options=self.options,
            protected_at=self.protected_at,
        )
        destination = Destination(
            sink=Recorded(
                self.kind.create(f"duckdb:///{FILE}?apply={self.apply.value}", context),
                self.batches,
                self.backfilling,
            ),
            transactional=True,
            form=Form.COLUMNS,
            follows_schema=True,
            known=self.saved[-1] if self.saved else None,
            save=self._save,
        )
        await run_attempt(services, plan, destination, self.live)

    async def _save(self, progress: SinkProgress) -> None:
        self.saved.append(progress)

    async def shown(self, name: str = "orders") -> Shown:
        """By two reads: a boundary may come between."""
        described = await self.read(f"DESCRIBE SELECT * FROM {name}")
        columns = [(row["column_name"], row["column_type"]) for row in described.to_pylist()]
        found = await self.read(f"SELECT * FROM {name} ORDER BY ALL")
        return columns, [tuple(row.values()) for row in found.to_pylist()]

    async def read(self, sql: str) -> pa.Table:
        """What a reader of the file sees."""
        return await self._reader.read(FILE, sql)

    async def settle(self) -> None:
        """Waits until the present is resolved, and compares each mirror with its source."""
        at = self.store.clock.now()
        await asyncio.wait_for(self.live.wait_until(at), 60)
        for source in self.sources:
            await self.check(source, self.live.resolved)

    async def check(self, source: Source, at: Timestamp) -> None:
        """Names, types and rows equal SELECT * AS OF `at`."""
        await self.compare(source, at, await self.shown(source.table.name))

    async def compare(self, source: Source, at: Timestamp, shown: Shown) -> None:
        """Names, types and rows that were shown equal SELECT * AS OF `at`."""
        table = await self._catalog.descriptors.read_at(source.id, at)
        assert isinstance(table, TableDescriptor)
        columns, rows = shown
        expected = [(c.name, c.type.duckdb_name) for c in table.visible_columns]
        assert columns == expected
        assert sorted(rows, key=str) == sorted(await source.rows_at(at), key=str)

    async def close(self) -> None:
        await self.stop()


@asynccontextmanager
async def following(
    sim: Simulation,
    folder: Path,
    *,
    tables: Sequence[str] = ("orders",),
    locked: bool = False,
    apply: Apply = Apply.ROW,
) -> AsyncIterator[Follower]:
    """A feed of empty tables `(k INT8 PRIMARY KEY, v STRING)`."""
    async with open_nodes(sim, 2) as (catalog, [node, other]):
        created = [await catalog.create(name, locked=locked) for name in tables]
        on = Follower(sim, catalog, node, folder)
        on.sources = [Source(catalog, table, other) for table in created]
        on.apply = apply
        on.start()
        yield on
        await on.close()
