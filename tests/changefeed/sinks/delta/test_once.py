"""A Delta table holds every change once, whatever fails and whoever is killed, by seeds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from tailrace.catalog.rows.row_codec import codec_for
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.sinks import FeedIdentity, SinkContext, SinkError, SinkProgress, held_rows
from tailrace.changefeed.sinks.delta import DeltaKind
from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.history import StorePosition
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings
from tests.changefeed.feeds import FeedBench, open_bench
from tests.changefeed.sinks.delta.faults import FaultyKind, attempt
from tests.harness import delta_reader
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

URI = "delta:///lake"
KEYS = 6


async def write(
    bench: FeedBench, random: Random, written: dict[tuple[int, int], str | None]
) -> None:
    for _ in range(random.randrange(12)):
        key, value = random.randrange(KEYS), f"{random.random()}"
        if random.random() < 0.2:
            written[key, await bench.table.write(delete=[key])] = None
        else:
            written[key, await bench.table.write((key, value))] = value
        await asyncio.sleep(random.random() * 0.05)


@pytest.mark.parametrize("seed", range(1, 6))
def test_every_change_is_there_once(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            kind = FaultyKind(sim, tmp_path)
            bench.services.kinds.register("delta", kind)
            written: dict[tuple[int, int], str | None] = {}
            job_id = await bench.create(URI, min_checkpoint_frequency="50ms")
            for _ in range(6):
                await attempt(bench, job_id, asyncio.create_task(write(bench, sim.random, written)))
            kind.chance = 0.0
            bench.jobs.claims[job_id].take_again()
            async with bench.running(job_id):
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
                check(tmp_path / "lake", written)

    sim = Simulation(seed)
    sim.run(scenario())


def check(table: Path, written: dict[tuple[int, int], str | None]) -> None:
    rows = delta_reader.rows(table)
    changes = [((row["k"], row["_commit_timestamp"]), row) for row in rows]
    assert len(changes) == len({change for change, _ in changes}), "a change is there twice"
    found = {change: row["v"] for change, row in changes}
    scan = min(at for _, at in found)
    later = {change: value for change, value in written.items() if change[1] > scan}
    assert {change: value for change, value in found.items() if change[1] > scan} == later
    assert {row["_op"] for _, row in changes if row["v"] is None} <= {"delete"}
    before = 0
    for actions, commit in zip(
        delta_reader.log_actions(table), delta_reader.commits(table), strict=True
    ):
        resolved = delta_reader.resolved_of(actions)
        assert all(before < row["_commit_timestamp"] <= resolved for row in commit)
        before = resolved


def context(sim: Simulation, clock: Clock, *, epoch: int) -> SinkContext:
    return SinkContext(
        identity=FeedIdentity(store_id="s", job_id=7, epoch=epoch),
        position=lambda: StorePosition(incarnation="", index=0),
        clock=clock,
        offload=sim.offload,
        settings=Settings(),
        metrics=Metrics(),
        options=parse_options({}),
    )


def change(at: int, value: str) -> ChangeBatch:
    key, _ = codec_for(table()).encode_row((1, value))
    return ChangeBatch(
        descriptor=table(),
        kind=ChangeKind.LIVE,
        keys=[key],
        timestamps=[Timestamp(at)],
        rows=[(1, value)],
    )


def progress(resolved: int) -> SinkProgress:
    at = Timestamp(resolved)
    return SinkProgress(frontier=((table().span, at),), resolved=at, scan_complete=True)


def test_who_was_taken_over_commits_no_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = Clock(sim.wall, MemoryBoundStore())
        kind = DeltaKind([tmp_path], sim.offload)
        first, second = (kind.create(URI, context(sim, clock, epoch=each)) for each in (1, 2))
        assert await first.stand() is None
        await first.open([table()])
        first.emit(change(10, "a"))
        await first.flush(progress(20))
        stand = await second.stand()
        assert stand is not None and stand.progress == progress(20)
        await second.open([table()])
        for sink in (first, second):
            sink.emit(change(30, "b"))
        await second.flush(progress(40))
        with pytest.raises(SinkError):
            await first.flush(progress(50))
        rows = delta_reader.rows(tmp_path / "lake")
        assert [row["v"] for row in rows] == ["a", "b"]

    sim = Simulation(1)
    sim.run(scenario())


def test_rows_above_what_is_resolved_wait_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        sink = DeltaKind([tmp_path], sim.offload).create(
            URI, context(sim, Clock(sim.wall, MemoryBoundStore()), epoch=1)
        )
        assert await sink.stand() is None
        await sink.open([table()])
        for at in (30, 10, 50, 20, 20):  # the last is delivered twice
            sink.emit(change(at, f"v{at}"))
            await sink.flush(None)
        await sink.flush(progress(20))
        await sink.flush(progress(60))
        await sink.close()
        found = delta_reader.commits(tmp_path / "lake")
        # A commit of delta-rs has no order of rows.
        assert [sorted(row["v"] for row in commit) for commit in found] == [
            ["v10", "v20"],
            ["v30", "v50"],
        ]

    monkeypatch.setattr(held_rows, "MEMORY_BYTES_MAX", 0)
    sim = Simulation(1)
    sim.run(scenario())


def test_others_may_compact_the_table(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_bench(sim) as bench:
            kind = FaultyKind(sim, tmp_path)
            kind.chance = 0.0
            bench.services.kinds.register("delta", kind)
            job_id = await bench.create(URI, min_checkpoint_frequency="50ms")
            async with bench.running(job_id):
                for number in range(4):
                    await bench.table.write((number, "new"))
                    await bench.feeds.wait_until(job_id, bench.store.clock.now())
                    DeltaTable(str(tmp_path / "lake")).optimize.compact()
            bench.jobs.claims[job_id].take_again()
            async with bench.running(job_id):
                await bench.table.write((9, "new"))
                await bench.feeds.wait_until(job_id, bench.store.clock.now())
            found = DeltaTable(str(tmp_path / "lake")).to_pyarrow_table().to_pylist()
            assert sorted(row["k"] for row in found if row["v"] == "new") == [0, 1, 2, 3, 9]

    sim = Simulation(4)
    sim.run(scenario())
