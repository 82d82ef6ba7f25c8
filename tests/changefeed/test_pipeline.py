"""A pipeline over a model store: what passes when, and what a restart finds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.changefeed.contract.changes import ChangeKind, Form
from tailrace.changefeed.contract.options import ChangefeedOptions, ScanChoice
from tailrace.changefeed.pipeline.boundary import SchemaChangeEnd
from tailrace.changefeed.pipeline.budget import MEMORY_LIMIT, NODE_MEMORY_LIMIT, FeedMemory
from tailrace.changefeed.pipeline.gate import SchemaGate
from tailrace.changefeed.pipeline.idle_pace import IdlePace
from tailrace.changefeed.pipeline.live import FeedState, LiveFeed
from tailrace.changefeed.pipeline.pipeline import Pipeline, SinkEnd
from tailrace.changefeed.pipeline.progress import progress_at
from tailrace.changefeed.pipeline.shared_decoding import SharedDecoding
from tailrace.changefeed.pipeline.stage_times import Milestone
from tailrace.changefeed.sinks import SinkError, SinkProgress
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.schemafeed.feed import TableDropped
from tests.changefeed.model import ModelSchema, ModelStore, Target, TargetSink, starts_of
from tests.harness.descriptors import INT8, table
from tests.harness.simulation import Simulation

NO_SCAN = ChangefeedOptions(initial_scan=ScanChoice.NO)


class Bench:
    """One feed over a model store, and everything about it that outlives an attempt."""

    def __init__(self, sim: Simulation, *tables: TableDescriptor, fast: bool = True) -> None:
        self.sim = sim
        self.tables = tables or (table(),)
        self.store = ModelStore(sim, *self.tables)
        self.schema = ModelSchema(*self.tables, fast=fast)
        self.target = Target()
        self.sink = TargetSink(sim, self.target)
        self.live = LiveFeed(1)
        self.pace = IdlePace()
        self.memory = FeedMemory()
        self.saved: list[SinkProgress] = []
        self.options = NO_SCAN
        self.transactional = True
        self.form = Form.COLUMNS
        self.start_at = self.store.clock.now()

    def pipeline(self) -> Pipeline:
        start = self.target.progress or progress_at(
            [each.primary_span for each in self.tables],
            self.start_at,
            scan_complete=self.options.initial_scan is ScanChoice.NO,
        )
        return Pipeline(
            self.store,
            starts_of(self.tables, SchemaGate(self.schema), self.start_at),
            end=SinkEnd(
                sink=self.sink,
                transactional=self.transactional,
                form=self.form,
                save=self._save,
            ),
            start=start,
            options=self.options,
            live=self.live,
            pace=self.pace,
            decoding=SharedDecoding(),
            memory=self.memory,
        )

    async def _save(self, progress: SinkProgress) -> None:
        await asyncio.sleep(0.001)
        self.saved.append(progress)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Pipeline]:
        pipeline = self.pipeline()
        task = asyncio.create_task(pipeline.run())
        await asyncio.sleep(0)
        try:
            yield pipeline
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def caught_up(self) -> Timestamp:
        """Resolves the present and waits until the sink holds it."""
        ts = self.store.resolve()
        await self.live.wait_until(ts)
        return ts


def test_lone_row_passes_in_the_step_it_came() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        async with bench.running():
            await asyncio.sleep(1)
            feed = bench.store.feeds[0]
            taken = feed.taken
            bench.store.write((1, "a"))
            while feed.taken == taken:
                await asyncio.sleep(0)
            assert [list(batch.rows or ()) for batch in bench.sink.emitted] == [[(1, "a")]]

    sim = Simulation(1)
    sim.run(scenario())


def test_a_feed_tells_how_long_its_sink_has_not_answered() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.sink.seconds = 60.0
        async with bench.running():
            now = bench.store.write((1, "a"))
            await asyncio.sleep(1)
            bench.live.state = FeedState.STEADY
            assert bench.live.describe(now, now, "null:///") == "running: 0.000 s behind"
            await asyncio.sleep(9)
            told = bench.live.describe(now, now, "null:///")
            assert told == "running: 0.000 s behind: waiting for null:/// for 10 s"
            bench.live.note_trouble("it says why")
            assert bench.live.describe(now, now, "null:///").endswith(" behind: it says why")
            bench.live.note_trouble(None)
            await asyncio.sleep(51)
            assert bench.target.rows() == {1: "a"}
            assert bench.live.describe(now, now, "null:///") == "running: 0.000 s behind"

    sim = Simulation(1)
    sim.run(scenario())


def test_a_feed_ends_when_its_time_has_come() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        end = Timestamp(bench.start_at + duration(seconds=10))
        bench.options = replace(NO_SCAN, end_time=end)
        running = asyncio.create_task(bench.pipeline().run())
        await asyncio.sleep(1)
        bench.store.write((1, "a"))
        await bench.caught_up()
        assert not running.done()
        await asyncio.sleep(10)
        bench.store.write((2, "b"))
        bench.store.resolve()
        await running
        assert bench.target.rows() == {1: "a"}
        assert bench.live.resolved == end

    sim = Simulation(1)
    sim.run(scenario())


def test_gate_holds_rows_until_proven() -> None:
    async def scenario() -> None:
        bench = Bench(sim, fast=False)
        async with bench.running():
            first = bench.store.write((1, "a"))
            bench.store.write((2, "b"))
            await asyncio.sleep(10)
            assert bench.sink.emitted == []
            bench.schema.prove(first)
            await asyncio.sleep(0.1)
            assert bench.target.rows() == {1: "a"}
            bench.schema.prove(bench.store.clock.now())
            await asyncio.sleep(0.1)
            assert bench.target.rows() == {1: "a", 2: "b"}

    sim = Simulation(2)
    sim.run(scenario())


def test_checkpoint_waits_behind_unproven_rows() -> None:
    async def scenario() -> None:
        bench = Bench(sim, fast=False)
        async with bench.running():
            bench.store.write((1, "a"))
            resolved = bench.store.resolve()
            await asyncio.sleep(5)
            assert bench.live.resolved < resolved
            bench.schema.prove(resolved)
            await bench.live.wait_until(resolved)
            assert bench.target.rows() == {1: "a"}

    sim = Simulation(3)
    sim.run(scenario())


def test_rows_that_straddle_an_unlock_are_split() -> None:
    async def scenario() -> None:
        bench = Bench(sim, table(locked=True), fast=False)
        async with bench.running():
            bench.store.write((1, "a"))
            unlocked_at = bench.store.clock.now()
            after = replace(bench.tables[0], version=2, locked=False, modification_time=unlocked_at)
            bench.schema.publish(after)
            bench.store.write((2, "b"))
            await asyncio.sleep(0.1)
            bench.schema.prove(bench.store.clock.now())
            await asyncio.sleep(0.1)
            seen = [(batch.descriptor.version, len(batch)) for batch in bench.sink.emitted]
            assert seen == [(1, 1), (2, 1)]
            bench.schema.prove(bench.store.clock.now())
            bench.store.resolve()
            bench.schema.fast = True
            bench.store.write((3, "c"))
            await bench.caught_up()
            await asyncio.sleep(1)
            answer = await bench.schema.peek(104, bench.store.clock.now())
            assert answer.events == ()  # consumed behind the frontier
            assert bench.sink.emitted[-1].descriptor.version == 2

    sim = Simulation(4)
    sim.run(scenario())


def test_dropped_table_ends_the_feed_behind_its_rows() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        pipeline = bench.pipeline()
        task = asyncio.create_task(pipeline.run())
        await asyncio.sleep(0)
        bench.store.write((1, "a"))
        dropped_at = bench.store.clock.now()
        bench.schema.drop(bench.tables[0], dropped_at)
        bench.store.resolve()
        with pytest.raises(TableDropped, match="orders"):
            await task
        assert bench.target.rows() == {1: "a"}
        assert bench.live.resolved == dropped_at - 1

    sim = Simulation(5)
    sim.run(scenario())


def test_initial_scan_then_live_is_exact() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = ChangefeedOptions()
        bench.store.write(*[(k, f"old {k}") for k in range(1000)])
        bench.start_at = bench.store.clock.now()
        bench.store.write((1, "during"), (5000, "new"), delete=[2])
        async with bench.running():
            bench.store.write((3, "live"))
            at = await bench.caught_up()
            assert bench.target.rows() == bench.store.rows_at(at)
            assert bench.live.state is FeedState.STEADY
            kinds = {batch.kind for batch in bench.sink.emitted}
            assert kinds == {ChangeKind.INITIAL_SCAN, ChangeKind.LIVE}
            assert bench.live.scanned_rows == 1000

    sim = Simulation(6)
    sim.run(scenario())


def test_nothing_resolves_before_the_scan_is_complete() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = ChangefeedOptions(min_checkpoint_frequency=0.0)
        bench.store.write(*[(k, "v") for k in range(2000)])
        bench.start_at = bench.store.clock.now()
        async with bench.running():
            while bench.target.progress is None or not bench.target.progress.scan_complete:
                assert bench.target.progress is None or bench.target.progress.resolved == 0
                await asyncio.sleep(0)
            assert bench.target.rows() == bench.store.rows_at(bench.start_at)

    sim = Simulation(7)
    sim.run(scenario())


def test_restart_mid_scan_resumes_behind_what_is_flushed() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = ChangefeedOptions(min_checkpoint_frequency=0.0)
        bench.store.write(*[(k, "v") for k in range(5000)])
        bench.start_at = bench.store.clock.now()
        async with bench.running():
            while len(bench.target.rows()) < 2000:
                await asyncio.sleep(0)
        scanned = len(bench.target.rows())
        assert 2000 <= scanned < 5000
        bench.store.write((1, "later"))
        async with bench.running():
            at = await bench.caught_up()
        assert bench.target.rows() == bench.store.rows_at(at)
        assert bench.store.scans[1].start > bench.tables[0].primary_span.start
        assert len(bench.target.applied) == 5001

    sim = Simulation(8)
    sim.run(scenario())


def test_scan_only_ends_when_all_is_flushed() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = ChangefeedOptions(initial_scan=ScanChoice.ONLY)
        bench.sink.seconds = 0.5
        bench.store.write(*[(k, "v") for k in range(300)])
        bench.start_at = bench.store.clock.now()
        bench.store.write((1, "later"))
        await bench.pipeline().run()
        assert bench.target.rows() == bench.store.rows_at(bench.start_at)
        assert bench.saved[-1].scan_complete

    sim = Simulation(9)
    sim.run(scenario())


def test_slow_sink_stops_the_reader_and_loses_nothing() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.store.settings.set(MEMORY_LIMIT.name, "20000")
        bench.sink.seconds = 5.0
        async with bench.running() as pipeline:
            for number in range(200):
                bench.store.write(*[(number * 10 + k, "x" * 50) for k in range(10)])
                await asyncio.sleep(0.01)
                assert pipeline.budget.used < 20000 + 10 * 300
            assert len(bench.store.feeds[0].waiting) > 100
            bench.sink.seconds = 0.0
            at = await bench.caught_up()
            assert bench.target.rows() == bench.store.rows_at(at)
            assert pipeline.budget.used == 0

    sim = Simulation(10)
    sim.run(scenario())


def test_slow_sinks_together_stay_below_the_nodes_limit() -> None:
    """Whether they hold rows for their sinks or end with them, and a later feed has its part."""
    limit, a_read = 60_000, 10 * 300

    async def scenario() -> None:
        benches = [Bench(sim) for _ in range(5)]
        memory = benches[0].memory
        for bench in benches:
            bench.memory = memory
            bench.store.settings.set(NODE_MEMORY_LIMIT.name, str(limit))
            bench.sink.seconds = 5000.0
        async with AsyncExitStack() as running:
            pipelines = []
            for bench in benches:
                pipelines.append(await running.enter_async_context(bench.running()))
                for number in range(200):
                    bench.store.write(*[(number * 10 + k, "x" * 50) for k in range(10)])
                    await asyncio.sleep(0.01)
                    assert memory.used == sum(each.budget.used for each in pipelines) < limit
            held = [pipeline.budget.used for pipeline in pipelines]
            assert min(held) >= a_read
            assert {each.why for each in benches[0].live.holdups(benches[0].store.clock.now())} >= {
                f"room: {NODE_MEMORY_LIMIT.name}"
            }
        assert memory.used == 0

    sim = Simulation(33)
    sim.run(scenario())


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_feed_without_memory_takes_one_read_after_another(limit: str) -> None:
    """An empty pipeline has room for one, whatever the limit: else it would wait for ever."""

    async def scenario() -> None:
        bench = Bench(sim)
        bench.store.settings.set(MEMORY_LIMIT.name, limit)
        async with bench.running():
            for number in range(20):
                bench.store.write((number, "v"))
            at = await bench.caught_up()
            assert bench.target.rows() == bench.store.rows_at(at)

    sim = Simulation(32)
    sim.run(scenario())


def test_backlog_is_cut_in_slices_and_coalesced() -> None:
    async def scenario() -> None:
        bench = Bench(sim, fast=False)
        async with bench.running():
            for number in range(1000):
                bench.store.write(*[(number * 20 + k, "v") for k in range(20)])
            await asyncio.sleep(0.1)
            bench.schema.prove(bench.store.clock.now())
            await asyncio.sleep(1)
            sizes = [len(batch) for batch in bench.sink.emitted]
            assert sum(sizes) == 20_000
            assert max(sizes) <= 4096
            assert len(sizes) <= 10
            assert all(batch.columns is not None for batch in bench.sink.emitted)

    sim = Simulation(11)
    sim.run(scenario())


def test_large_transaction_is_cut_exactly() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        async with bench.running():
            ts = bench.store.write(*[(k, "v") for k in range(10_000)])
            await bench.caught_up()
            keys = [key for batch in bench.sink.emitted for key in batch.keys]
            assert keys == [key for key, _, _ in bench.store.history]
            assert {ts} == {at for batch in bench.sink.emitted for at in batch.timestamps}
            assert len(bench.live.stages.samples_ns(Milestone.SINK)) <= 1  # a commit counts once

    sim = Simulation(16)
    sim.run(scenario())


def test_rows_gather_while_a_flush_runs() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.sink.seconds = 0.1
        async with bench.running():
            for number in range(100):
                bench.store.write((number, "v"))
                await asyncio.sleep(0.005)
            await asyncio.sleep(1)
            busy = [rows for rows in bench.target.flush_rows if rows]
            assert busy[0] == 1
            assert len(busy) < 10

    sim = Simulation(12)
    sim.run(scenario())


def test_resolved_message_follows_saved_progress() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = replace(NO_SCAN, resolved=True, resolved_interval=0.5)
        bench.transactional = False
        async with bench.running():
            for number in range(300):
                bench.store.write((number, "v"))
                bench.store.resolve()
                await asyncio.sleep(0.01)
                if bench.sink.resolved:
                    assert bench.sink.resolved[-1] <= bench.saved[-1].resolved
        assert 5 <= len(bench.sink.resolved) <= 7  # three seconds, one each half second
        assert bench.sink.resolved == sorted(bench.sink.resolved)
        assert len(bench.saved) <= 16

    sim = Simulation(13)
    sim.run(scenario())


class FlushedSink(TargetSink):
    """Keeps nothing of what it is given but how many rows each flush had, and whether progress."""

    def __init__(self, sim: Simulation, target: Target) -> None:
        super().__init__(sim, target)
        self.flushes: list[tuple[int, bool]] = []
        self._seen = 0

    async def flush(self, progress: SinkProgress | None) -> None:
        rows = sum(map(len, self.emitted[self._seen :]))
        self._seen = len(self.emitted)
        await asyncio.sleep(0.03)
        self.flushes.append((rows, progress is not None))


@pytest.mark.parametrize("stored", [False, True])
def test_what_is_stored_goes_as_it_is_and_progress_along(stored: bool) -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.sink = sink = FlushedSink(sim, bench.target)
        bench.form = Form.STORED if stored else Form.COLUMNS
        async with bench.running():
            for number in range(300):
                bench.store.write((number, "v"))
                bench.store.resolve()
                await asyncio.sleep(0.01)
        flushes = sink.flushes
        assert all((batch.bodies is not None) is stored for batch in bench.sink.emitted)
        told = [rows > 0 for rows, with_progress in flushes if with_progress]
        if stored:
            assert sum(told) == sum(rows > 0 for rows, _ in flushes) > 50
            assert told.count(False) <= 1
        else:
            assert len(told) <= 16  # three seconds, one each 200 ms

    sim = Simulation(15)
    sim.run(scenario())


def test_wait_brings_the_checkpoint_forward() -> None:
    async def scenario() -> None:
        bench = Bench(sim)
        bench.options = replace(NO_SCAN, min_checkpoint_frequency=60.0)
        async with bench.running():
            await bench.caught_up()
            began = sim.now
            await bench.caught_up()
            assert sim.now - began < 0.01

    sim = Simulation(14)
    sim.run(scenario())


def test_tables_flow_past_one_that_waits() -> None:
    async def scenario() -> None:
        bench = Bench(sim, table(), table(id=105, name="lines"))
        bench.schema.slow.add(104)
        async with bench.running():
            bench.store.write((1, "a"), table_id=104)
            bench.store.write((2, "b"), table_id=105)
            await asyncio.sleep(0.1)
            assert bench.target.rows(104) == {}
            assert bench.target.rows(105) == {2: "b"}

    sim = Simulation(15)
    sim.run(scenario())


def test_reader_goes_on_when_a_table_has_to_settle_behind_its_backfill() -> None:
    """More waits at a boundary than may, and only the range feed can tell that it settles."""

    async def scenario() -> None:
        bench = Bench(sim)
        bench.store.write(*[(k, "v") for k in range(3000)])
        bench.start_at = bench.store.clock.now()
        bench.sink.seconds = 0.1
        first = bench.tables[0]
        column = Column(id=3, name="w", type=INT8, default=7, has_default=True, missing=7)
        added = replace(
            first,
            version=2,
            modification_time=bench.store.clock.now(),
            columns=(*first.columns, column),
        )
        bench.schema.publish(added)
        bench.store.settings.set(MEMORY_LIMIT.name, "400000")
        pipeline = bench.pipeline()
        running = asyncio.create_task(pipeline.run())
        await asyncio.sleep(0)
        bench.store.resolve()
        while not bench.live.backfills:
            await asyncio.sleep(0.001)
        truncated_at = bench.store.clock.now()
        bench.schema.publish(
            replace(
                added,
                version=3,
                modification_time=truncated_at,
                primary_index_id=2,
                next_index_id=3,
            )
        )
        bench.store.write(*[(k, "later") for k in range(3000)])
        await asyncio.sleep(0.01)
        assert not pipeline.budget.overheld
        assert bench.live.backfills
        while bench.live.backfills:
            await asyncio.sleep(0.001)
        bench.store.resolve()
        with pytest.raises(SchemaChangeEnd, match="truncated"):
            await running
        assert bench.live.resolved == truncated_at - 1

    sim = Simulation(17)
    sim.run(scenario())


@pytest.mark.parametrize("seed", [*range(20), 179])
def test_random_history_survives_restarts(seed: int) -> None:
    """No row is lost or applied twice, and progress never passes what is in the target."""

    async def scenario() -> None:
        bench = Bench(sim, fast=False)
        bench.options = ChangefeedOptions(min_checkpoint_frequency=0.02)
        bench.sink.seconds, bench.sink.fail = 0.01, 0.1
        random = sim.random
        bench.store.write(*[(k, "seeded") for k in range(300)])
        bench.start_at = bench.store.clock.now()
        for _ in range(12):
            attempt = asyncio.create_task(bench.pipeline().run())
            for _ in range(random.randrange(60)):
                keys = random.sample(range(400), random.choice([1, 1, 3, 100]))
                if random.random() < 0.3:
                    bench.store.write(delete=keys)
                else:
                    bench.store.write(*[(k, f"{random.random()}") for k in keys])
                if random.random() < 0.4:
                    bench.store.resolve()
                if random.random() < 0.5:
                    bench.schema.prove(bench.store.clock.now())
                await asyncio.sleep(random.choice([0, 0.001, 0.02]))
                check_progress(bench)
            attempt.cancel()
            outcome = (await asyncio.gather(attempt, return_exceptions=True))[0]
            assert isinstance(outcome, SinkError | asyncio.CancelledError), outcome
        bench.sink.fail = 0.0
        bench.schema.fast = True
        async with bench.running():
            at = await bench.caught_up()
        assert bench.target.rows() == bench.store.rows_at(at)
        assert len(bench.target.applied) == len(set(bench.target.applied))

    sim = Simulation(seed)
    sim.run(scenario())


def check_progress(bench: Bench) -> None:
    """Everything at or below the target's progress is in the target."""
    progress = bench.target.progress
    if progress is None or not progress.scan_complete:
        return
    for key, _, ts in bench.store.history:
        if ts <= progress.resolved:
            found = bench.target.versions.get((104, key))
            written_before_scan = ts <= bench.start_at
            assert written_before_scan or (found is not None and found[0] >= ts), (key, ts)
