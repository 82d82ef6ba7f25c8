"""A mirror in a Delta table equals its source at each of its commits, whatever fails, by seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.sinks import FeedIdentity, SinkContext, SinkProgress, held_rows
from tailrace.changefeed.sinks.delta import DeltaKind, mirror_table
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tailrace.schemafeed.table_events import EventKind, TableEvent, classify
from tests.changefeed.feeds import open_bench
from tests.changefeed.sinks.delta.faults import FaultyKind, attempt
from tests.harness import delta_reader
from tests.harness.descriptors import KEY, STRING, VALUE, table
from tests.harness.mirrors import rows_batch
from tests.harness.simulation import Simulation

URI = "delta:///lake?mode=mirror"


@pytest.mark.parametrize("seed", range(1, 7))
def test_every_commit_equals_the_source(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With faults before and after commits, attempts that end anywhere, and merges of few rows."""

    async def scenario() -> None:
        async with open_bench(sim) as bench:
            kind = FaultyKind(sim, tmp_path)
            bench.services.kinds.register("delta", kind)
            written: list[tuple[int, int, str | None]] = []
            job_id = await bench.create(URI, min_checkpoint_frequency="50ms")

            async def write() -> None:
                for _ in range(sim.random.randrange(15)):
                    key, value = sim.random.randrange(6), f"{sim.random.random()}"
                    if sim.random.random() < 0.3:
                        written.append((await bench.table.write(delete=[key]), key, None))
                    else:
                        written.append((await bench.table.write((key, value)), key, value))
                    await asyncio.sleep(sim.random.random() * 0.05)

            for _ in range(6):
                await attempt(bench, job_id, asyncio.create_task(write()))
            kind.chance = 0.0
            bench.jobs.claims[job_id].take_again()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            assert kind.faults, "nothing failed"
            states = [*delta_reader.states(tmp_path / "lake")]
            assert len(states) > 3, states
            for resolved, rows in states:
                expected: dict[int, str | None] = {1: "old", 2: "old"}
                expected |= {key: value for at, key, value in written if at <= resolved}
                kept = {key: value for key, value in expected.items() if value is not None}
                assert sorted((row["k"], row["v"]) for row in rows) == sorted(kept.items())
            last: dict[int, str | None] = {1: "old", 2: "old"}
            last |= {key: value for _, key, value in written}
            assert {row["k"]: row["v"] for row in states[-1][1]} == {
                key: value for key, value in last.items() if value is not None
            }

    monkeypatch.setattr(mirror_table, "MERGE_BYTES_MAX", 100 * (seed % 3))
    monkeypatch.setattr(held_rows, "MEMORY_BYTES_MAX", 300 if seed % 2 else 1 << 20)
    sim = Simulation(seed)
    sim.run(scenario())


class Mirror:
    """A sink whose table's Delta table is read back."""

    def __init__(self, sim: Simulation, root: Path) -> None:
        self.kind = DeltaKind([root], sim.offload)
        self.path = root / "lake"
        self._sim = sim
        self._clock = Clock(sim.wall, MemoryBoundStore())

    def sink(self, uri: str = URI, *, epoch: int = 1, **options: str) -> Any:
        context = SinkContext(
            identity=FeedIdentity(store_id="s", job_id=7, epoch=epoch),
            position=lambda: StorePosition(incarnation="", index=0),
            clock=self._clock,
            offload=self._sim.offload,
            settings=Settings(),
            metrics=Metrics(),
            options=parse_options(options),
        )
        return self.kind.create(uri, context)

    async def open(self, *tables: TableDescriptor, uri: str = URI, epoch: int = 1) -> Any:
        sink = self.sink(uri, epoch=epoch)
        await sink.stand()
        await sink.open(tables)
        return sink

    def rows(self, name: str = "") -> list[tuple[Any, ...]]:
        found = DeltaTable(str(self.path / name)).to_pyarrow_table().to_pylist()
        hidden = ("_commit_timestamp", "_key")
        return sorted(tuple(v for k, v in row.items() if k not in hidden) for row in found)


def progress(*stands: tuple[TableDescriptor, int], resolved: int | None = None) -> SinkProgress:
    frontier = tuple((each.span, Timestamp(at)) for each, at in stands)
    at = min(at for _, at in frontier) if resolved is None else Timestamp(resolved)
    return SinkProgress(frontier=frontier, resolved=at, scan_complete=True)


def event(before: TableDescriptor, after: TableDescriptor, at: int) -> TableEvent:
    after = replace(after, version=before.version + 1, modification_time=Timestamp(at))
    return TableEvent(before=before, after=after, kinds=classify(before, after))


OTHER = Column(id=3, name="w", type=STRING)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((KEY, VALUE), (KEY, VALUE, OTHER), [(1, "a", None), (2, "b", None)]),
        (
            (KEY, VALUE),
            (KEY, VALUE, replace(OTHER, missing="new")),
            [(1, "a", "new"), (2, "b", "new")],
        ),
        ((KEY, VALUE), (KEY, replace(VALUE, name="title")), [(1, "a"), (2, "b")]),
        ((KEY, VALUE), (KEY,), [(1,), (2,)]),
        ((KEY, VALUE), (KEY, replace(VALUE, nullable=False)), [(1, "a"), (2, "b")]),
    ],
    ids=["grown", "default", "renamed", "dropped", "hidden"],
)
def test_columns_are_followed(
    tmp_path: Path,
    before: Sequence[Column],
    after: Sequence[Column],
    expected: list[tuple[Any, ...]],
) -> None:
    """The rows as of the event, and again when the feed begins anew in the middle of it."""
    first = table(columns=tuple(before))
    change = event(first, replace(first, columns=tuple(after)), 30)

    async def scenario() -> None:
        sink = await mirror.open(first)
        sink.emit(rows_batch(first, [((1,), 10, (1, "a"))], kind=ChangeKind.INITIAL_SCAN))
        await sink.flush(progress((first, 10)))
        sink.emit(rows_batch(first, [((2,), 20, (2, "b"))]))
        sink.change_schema(change)
        await sink.flush(progress((first, 40)))
        assert mirror.rows() == expected
        sink = await mirror.open(change.after, epoch=2)
        sink.change_schema(change)
        await sink.flush(progress((first, 50)))
        assert mirror.rows() == expected
        shapes = [(set(rows[0]), resolved) for resolved, rows in delta_reader.states(mirror.path)]
        if change.kinds is not EventKind.OTHER:
            assert all((shape == shapes[-1][0]) is (at >= 30) for shape, at in shapes), shapes

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())


def test_rows_as_of_an_event_replace_all(tmp_path: Path) -> None:
    """Also by a row that was written while they were shown."""
    first = table()
    other = replace(first, primary_index_id=2, next_index_id=3)
    emptied = event(first, other, 30)
    after = emptied.after

    async def scenario() -> None:
        sink = await mirror.open(first)
        sink.emit(rows_batch(first, [((k,), 10, (k, "old")) for k in range(5)]))
        await sink.flush(progress((first, 20)))
        sink.change_schema(emptied)
        sink.emit(rows_batch(after, [((8,), 45, (8, "later"))]))
        await sink.flush(progress((first, 29)))
        assert len(mirror.rows()) == 5
        sink.emit(rows_batch(after, [((9,), 30, (9, "stayed"))], kind=ChangeKind.BACKFILL))
        sink.emit(rows_batch(after, [((9,), 35, (9, "new")), ((7,), 50, (7, "last"))]))
        await sink.flush(progress((first, 40)))
        assert mirror.rows() == [(9, "new")]
        await sink.flush(progress((first, 60)))
        assert mirror.rows() == [(7, "last"), (8, "later"), (9, "new")]

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        (ColumnType(TypeKind.FLOAT8), [-0.0, 0.0]),
        (ColumnType(TypeKind.INTERVAL), [Interval(months=1), Interval(days=30)]),
    ],
    ids=["zero", "month"],
)
def test_equal_keys_are_one_row(tmp_path: Path, type: ColumnType, keys: list[Any]) -> None:
    keyed = table(columns=(replace(KEY, type=type), VALUE))

    async def scenario() -> None:
        sink = await mirror.open(keyed)
        for at, key in enumerate(keys, start=10):
            sink.emit(rows_batch(keyed, [((key,), at, (key, f"v{at}"))]))
            await sink.flush(progress((keyed, at)))
        assert [value for _, value in mirror.rows()] == ["v11"]
        sink.emit(rows_batch(keyed, [((keys[0],), 20, None)]))
        await sink.flush(progress((keyed, 20)))
        assert mirror.rows() == []

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())


@pytest.mark.parametrize("mode", ["mirror", "log"])
def test_each_table_stands_where_its_commit_says(tmp_path: Path, mode: str) -> None:
    """One that joined later does not hold the others up, and one that left tells nothing more."""
    uri = f"delta:///lake/?mode={mode}"
    orders, refunds = table(), table(id=105, name="refunds")

    async def scenario() -> None:
        sink = await mirror.open(orders, uri=uri)
        sink.emit(rows_batch(orders, [((1,), 10, (1, "a"))]))
        await sink.flush(progress((orders, 20)))
        sink = await mirror.open(orders, refunds, uri=uri, epoch=2)
        sink.emit(rows_batch(refunds, [((2,), 5, (2, "r"))]))
        sink.emit(rows_batch(orders, [((3,), 25, (3, "c"))]))
        await sink.flush(progress((orders, 30), (refunds, 8), resolved=30))
        stand = await mirror.sink(uri, epoch=3).stand()
        assert stand.progress == progress((orders, 30), (refunds, 8), resolved=30)
        assert len(mirror.rows("orders")) == 2 and len(mirror.rows("refunds")) == 1
        await mirror.open(refunds, uri=uri, epoch=3)
        stand = await mirror.sink(uri, epoch=4).stand()
        assert stand.progress == progress((refunds, 8))
        sink = await mirror.open(orders, refunds, uri=uri, epoch=4)
        sink.emit(rows_batch(orders, [((9,), 50, (9, "anew"))], kind=ChangeKind.INITIAL_SCAN))
        await sink.flush(progress((orders, 50), (refunds, 50)))
        assert [row[:2] for row in mirror.rows("orders")] == [(9, "anew")]

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())


def test_a_feed_that_was_taken_over_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = await mirror.open(table())
        first.emit(rows_batch(table(), [((1,), 10, (1, "a"))]))
        await first.flush(progress((table(), 20)))
        second = await mirror.open(table(), epoch=2)
        for sink in (first, second):
            sink.emit(rows_batch(table(), [((1,), 30, (1, "b"))]))
        await second.flush(progress((table(), 40)))
        with pytest.raises(Exception, match="a later claim of job 7"):
            await first.flush(progress((table(), 30)))
        assert mirror.rows() == [(1, "b")]

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())


def test_files_beside_the_delta_tables_are_nobodys(tmp_path: Path) -> None:
    async def scenario() -> None:
        mirror.path.mkdir()
        (mirror.path / "README").write_text("who reads this")
        sink = await mirror.open(table(), uri="delta:///lake/?mode=mirror")
        sink.emit(rows_batch(table(), [((1,), 10, (1, "a"))]))
        await sink.flush(progress((table(), 20)))
        assert mirror.rows(table().name) == [(1, "a")]

    sim = Simulation(1)
    mirror = Mirror(sim, tmp_path)
    sim.run(scenario())
