"""An Iceberg table holds every change once, whatever fails and whoever is killed, by seeds."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Transaction

from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.sinks import FeedIdentity, Sink, SinkContext, SinkError, SinkProgress
from tailrace.changefeed.sinks.iceberg import IcebergKind
from tailrace.changefeed.sinks.iceberg.iceberg_table import IcebergTable
from tailrace.changefeed.sinks.iceberg.location import iceberg_target
from tailrace.changefeed.sinks.iceberg.sink import IcebergSink
from tailrace.changefeed.sinks.lake.lake_table import LakeTable
from tailrace.changefeed.sinks.lake.record import TableRecord, decode_record
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tests.changefeed.feeds import open_bench
from tests.changefeed.sinks.delta.faults import attempt
from tests.harness.descriptors import table
from tests.harness.mirrors import rows_batch
from tests.harness.simulation import Simulation

pytestmark = pytest.mark.filterwarnings("ignore")  # of the library's own dependencies

URI = "iceberg:///lake"


class FaultyTable(IcebergTable):
    """Fails now and then before and after a commit."""

    fail: Callable[[], None]

    def _commit(
        self,
        transaction: Transaction,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        record: TableRecord,
    ) -> None:
        self.fail()
        super()._commit(transaction, schema, batches, record)
        self.fail()


class FaultySink(IcebergSink):
    fail: Callable[[], None]

    def _table(self, name: str) -> LakeTable:
        found = FaultyTable(self._open_catalog(), (self._target.namespace, name), self._identity)
        found.fail = self.fail
        return found


class FaultyKind(IcebergKind):
    def __init__(self, sim: Simulation, root: Path) -> None:
        super().__init__([root], sim.offload)
        self._root, self._random = root, sim.random
        self.chance, self.faults = 0.15, 0

    def create(self, uri: str, context: SinkContext) -> Sink:
        target = iceberg_target(uri, [self._root])
        sink = FaultySink(target, self._lane(target.path), context)
        sink.fail = self._fail
        return sink

    def _fail(self) -> None:
        if self._random.random() < self.chance:
            self.faults += 1
            raise OSError(errno.EIO, "told to fail")


def read(root: Path, name: str = "orders") -> Any:
    catalog = SqlCatalog(
        "default", uri=f"sqlite:///{root}/lake/catalog.db", warehouse=f"file://{root}/lake"
    )
    try:
        return catalog.load_table(f"default.{name}")
    finally:
        catalog.close()


@pytest.mark.parametrize("seed", [2, 4])
def test_every_change_is_there_once(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            kind = FaultyKind(sim, tmp_path)
            bench.services.kinds.register("iceberg", kind)
            written: dict[tuple[int, int], str | None] = {}
            job_id = await bench.create(URI, min_checkpoint_frequency="50ms")

            async def write() -> None:
                for _ in range(sim.random.randrange(8)):
                    key, value = sim.random.randrange(6), f"{sim.random.random()}"
                    if sim.random.random() < 0.2:
                        written[key, await bench.table.write(delete=[key])] = None
                    else:
                        written[key, await bench.table.write((key, value))] = value
                    await asyncio.sleep(sim.random.random() * 0.05)

            for _ in range(4):
                await attempt(bench, job_id, asyncio.create_task(write()))
            kind.chance = 0.0
            bench.jobs.claims[job_id].take_again()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            assert kind.faults, "nothing failed"
            found = read(tmp_path)
            rows = found.scan().to_arrow().to_pylist()
            changes = {(row["k"], row["_commit_timestamp"]): row["v"] for row in rows}
            assert len(changes) == len(rows), "a change is there twice"
            scan = min(at for _, at in changes)
            later = {change: value for change, value in written.items() if change[1] > scan}
            assert {change: v for change, v in changes.items() if change[1] > scan} == later
            for snapshot in found.snapshots():
                resolved = decode_record(snapshot.summary["tailrace"]).resolved
                shown = found.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
                assert {(row["k"], row["_commit_timestamp"]) for row in shown} == {
                    change for change in changes if change[1] <= resolved
                }

    sim = Simulation(seed)
    sim.run(scenario())


def progress(at: int) -> SinkProgress:
    stand = ((table().span, Timestamp(at)),)
    return SinkProgress(frontier=stand, resolved=Timestamp(at), scan_complete=True)


def test_who_was_taken_over_commits_no_more(tmp_path: Path) -> None:
    """Also one that looked before its successor committed, and that has nothing but progress."""

    def sink(epoch: int) -> Sink:
        context = SinkContext(
            identity=FeedIdentity(store_id="s", job_id=7, epoch=epoch),
            position=lambda: StorePosition(incarnation="", index=0),
            clock=Clock(sim.wall, MemoryBoundStore()),
            offload=sim.offload,
            settings=Settings(),
            metrics=Metrics(),
            options=parse_options({}),
        )
        return kind.create(URI, context)

    async def scenario() -> None:
        first, second = sink(1), sink(2)
        assert await first.stand() is None
        await first.open([table()])
        first.emit(rows_batch(table(), [((1,), 10, (1, "a"))]))
        await first.flush(progress(20))
        stand = await second.stand()
        assert stand is not None and stand.progress == progress(20)
        await second.open([table()])
        for each in (first, second):
            each.emit(rows_batch(table(), [((1,), 30, (1, "b"))]))
        await second.flush(progress(40))
        with pytest.raises(SinkError, match="a later claim"):
            await first.flush(progress(50))
        assert read(tmp_path).scan().to_arrow()["v"].to_pylist() == ["b", "a"]
        for each in (first, second):
            await each.close()

    sim = Simulation(1)
    kind = IcebergKind([tmp_path], sim.offload)
    sim.run(scenario())
