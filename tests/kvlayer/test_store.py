"""The store as a whole: garbage, back-pressure, housekeeping, the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.clock import ZERO, Timestamp, duration
from tailrace.kvlayer.engine import EngineBatch, EngineFailed, EngineStall, MemoryEngine
from tailrace.kvlayer.errors import (
    BatchTimestampBeforeGC,
    StoreClosed,
    StoreFull,
    TransactionState,
    WriteConflict,
)
from tailrace.kvlayer.events import Checkpoint, SteadyState, ValueBatch
from tailrace.kvlayer.keys import ALL_KEYS, TIME_INDEX, table_span
from tailrace.kvlayer.mvcc import SLICE_ROWS
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span, prefix_end
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation
from tests.harness.simulation import Simulation
from tests.harness.stores import (
    crash,
    hold_log,
    key,
    open_store,
    put,
    reopen,
    running_store,
    submit,
    unbuffered,
)

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)


async def version_count(store: Store) -> int:
    slices = store.versions(ALL_KEYS, store.gc_threshold, store.clock.last)
    return sum([len(rows) async for rows in slices])


def test_garbage_goes_and_reads_above_stay() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            for i in range(11):
                await put(store, {A: b"%d" % i, B: None if i == 10 else b"%d" % i})
            threshold, above = store.clock.now(), store.clock.now()
            await put(store, {A: b"new"})
            assert await store.collect_garbage(SPAN, threshold) == 21
            assert store.gc_threshold == threshold
            assert await store.snapshot(above).scan(SPAN) == [(A, b"10")]
            assert await version_count(store) == 1

    sim.run(main())


def test_protected_timestamp_holds_the_threshold() -> None:
    sim = Simulation(15)

    async def main() -> None:
        async with running_store(sim) as store:
            first = await put(store, {A: b"1"})
            second = await put(store, {A: b"2"})
            await put(store, {A: b"3"})
            writer, records = store.begin(), ProtectedTimestamps(store)
            record = await records.protect(writer, owner="me", spans=[SPAN], timestamp=second)
            await writer.commit()
            await store.collect_garbage(SPAN, store.clock.now())
            assert first <= store.gc_threshold < second
            assert await store.snapshot(second).get(A) == b"2"
            writer = store.begin()
            await records.release(writer, record)
            await writer.commit()
            assert await store.collect_garbage(SPAN, store.clock.now()) == 2

    sim.run(main())


def test_one_key_with_many_versions_is_collected() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            for i in range(1500):
                await submit(store, A, b"%d" % i)
            assert await store.collect_garbage(SPAN, store.clock.now()) == 1499
            assert await store.snapshot(store.clock.now()).get(A) == b"1499"

    sim.run(main())


def test_reads_at_or_below_the_threshold_are_refused() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            old = store.begin(read_only=True)
            writer = store.begin()
            reader = store.snapshot(store.clock.last)
            slices = store.versions(SPAN, reader.at, store.clock.last)
            threshold = store.clock.now()
            await store.collect_garbage(SPAN, threshold)
            refused: list[Callable[[], Awaitable[object]]] = [
                lambda: old.get(A),
                lambda: old.scan(SPAN),
                lambda: writer.scan(SPAN),
                lambda: reader.get(A),
                lambda: anext(reader.scan_slices(SPAN)),
                lambda: anext(slices),
            ]
            for call in refused:
                with pytest.raises(BatchTimestampBeforeGC):
                    await call()
            with pytest.raises(BatchTimestampBeforeGC):
                await store.begin(read_timestamp=threshold).get(A)
            with pytest.raises(BatchTimestampBeforeGC):
                store.span_feed([SPAN], Timestamp(threshold - 1))
            await writer.rollback()

    sim.run(main())


def test_old_transaction_writes_nothing_over_a_version_that_it_does_not_see() -> None:
    """Though collection took the version's entry out of the time index."""
    sim = Simulation(31)

    async def main() -> None:
        async with running_store(sim) as store:
            old = store.begin(isolation=Isolation.REPEATABLE_READ)
            await put(store, {A: b"1", B: b"1"})
            await store.collect_garbage(SPAN, store.clock.now())
            with pytest.raises(WriteConflict):
                await old.put([A], [b"2"])
            await old.rollback()

    sim.run(main())


def test_time_index_is_as_large_as_what_came_since_the_threshold() -> None:
    sim = Simulation(32)

    def entries(store: Store) -> int:
        return len(list(store.engine.scan(TIME_INDEX, prefix_end(TIME_INDEX))))

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {key(f"{n:04}"): b"1" for n in range(1200)})
            assert entries(store) < 5, "several keys share an entry"
            await store.collect_garbage(SPAN, store.clock.now())
            await store.collect_garbage(table_span(8), store.clock.now())
            assert entries(store) == 0
            await put(store, {A: b"2"})
            assert entries(store) == 1

    sim.run(main())


def test_sliced_read_checks_the_threshold_to_its_end() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {key(f"{i:05}"): b"x" for i in range(1500)})
            slices = store.snapshot(store.clock.last).scan_slices(SPAN)
            assert len(await anext(slices)) == SLICE_ROWS
            await store.collect_garbage(SPAN, store.clock.now())
            with pytest.raises(BatchTimestampBeforeGC):
                await anext(slices)

    sim.run(main())


def test_threshold_survives_a_crash() -> None:
    sim = Simulation(5)

    async def before() -> Timestamp:
        store = await open_store(sim)
        await put(store, {A: b"1"})
        threshold = store.clock.now()
        await store.collect_garbage(SPAN, threshold)
        crash(sim)
        return threshold

    async def after(threshold: Timestamp) -> None:
        store = await reopen(sim)
        assert store.gc_threshold == threshold
        await store.close()

    sim.run(after(sim.run(before())))


class StallingEngine(MemoryEngine):
    """Refuses every other batch, as a durable engine does while it flushes."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals = 0

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        self.refusals += 1
        if self.refusals % 2:
            raise EngineStall
        super().write(batch, applied_index=applied_index)


def test_stalled_engine_presses_back_on_writers() -> None:
    sim = Simulation(6)

    async def main() -> None:
        engine = StallingEngine()
        engine.refusals = 1  # the bootstrap passes
        store = await open_store(sim, engine=engine)
        for i in range(10):
            await put(store, {A: b"%d" % i})
        writer = store.begin()
        await writer.put([B, C], [b"1", b"1"])
        await writer.commit()
        undone = store.begin()
        await undone.put([B], [b"2"])
        await undone.rollback()
        await asyncio.sleep(0.1)
        assert engine.refusals > 20
        assert store.log.last_index == engine.applied_index, "nothing is appended in vain"
        rows = await store.snapshot(store.clock.last).scan(SPAN)
        assert rows == [(A, b"9"), (B, b"1"), (C, b"1")]
        store.check_invariants()
        await store.close()

    sim.run(main())


def test_full_disk_refuses_writes_and_answers_reads() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            sim.disk.space_left = 0
            body = bytes(256 << 10)
            with pytest.raises(StoreFull):
                for _ in range(1000):
                    await put(store, {B: body})
            kept = await store.snapshot(store.clock.now()).get(B)
            assert kept == body
            with pytest.raises(StoreFull):
                await put(store, {B: body, C: body})
            assert await store.snapshot(store.clock.now()).get(C) is None
            assert await store.snapshot(store.clock.now()).get(A) == b"0"

    sim.run(main())


def test_log_is_cut_behind_the_engine() -> None:
    sim = Simulation(8)
    settings = Settings({"kv.engine.flush_bytes": "1000000"})

    async def before() -> None:
        store = await open_store(sim, settings=settings)
        for i in range(150):
            await put(store, {key(f"{i:03}"): bytes(1 << 20)})
        await asyncio.sleep(1)
        assert store.log.first_retained_index > 10
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        rows = await store.snapshot(store.clock.last).scan(SPAN)
        assert [name for name, _ in rows] == [key(f"{i:03}") for i in range(150)]
        await store.close()

    sim.run(before())
    sim.run(after())


def test_feed_of_the_store_catches_up_and_goes_on() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim) as store:
            start = store.clock.now()
            first = await put(store, {A: b"1"})
            feed = store.span_feed([SPAN], start)
            writer = store.begin()
            await writer.put([B], [b"2"])
            second = await writer.commit()
            third = await put(store, {A: None, key("elsewhere", 8): b"x"})
            values: list[tuple[bytes, int, bytes | None]] = []
            resolved, steady = ZERO, 0
            while resolved < third:
                for event in await feed.next():
                    match event:
                        case ValueBatch():
                            values += zip(event.keys, event.timestamps, event.values, strict=True)
                        case Checkpoint():
                            resolved = event.resolved
                        case SteadyState():
                            steady += 1
            assert values == [(A, first, b"1"), (B, second, b"2"), (A, third, None)]
            assert steady == 1
            feed.close()

    sim.run(main())


def test_long_writer_holds_resolved_until_it_is_pushed() -> None:
    sim = Simulation(10)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            feed = store.span_feed([SPAN], store.clock.now())
            writer = store.begin()
            await writer.put([A], [b"1"])
            began, target = sim.now, Timestamp(writer.write_timestamp + duration(seconds=1))
            resolved = ZERO
            while resolved < target:
                for event in await feed.next():
                    if isinstance(event, Checkpoint):
                        resolved = event.resolved
            assert sim.now - began > 2
            assert await writer.commit() > target
            feed.close()

    sim.run(main())


def test_future_is_not_readable() -> None:
    sim = Simulation(11)

    async def main() -> None:
        async with running_store(sim) as store:
            future = Timestamp(store.clock.now() + duration(seconds=60))
            for call in (store.snapshot, lambda at: store.begin(read_timestamp=at)):
                with pytest.raises(TransactionState, match="future"):
                    call(future)

    sim.run(main())


def test_closed_store_refuses_everything() -> None:
    sim = Simulation(12)

    async def main() -> None:
        store = await open_store(sim)
        running = store.begin()
        await running.put([A], [b"1"])
        feed = store.span_feed([SPAN], store.clock.last)
        reader = store.snapshot(store.clock.last)
        await store.close()
        await store.close()
        with pytest.raises(StoreClosed):
            store.begin()
        with pytest.raises(StoreClosed):
            await put(store, {A: b"1"})
        with pytest.raises(StoreClosed):
            await reader.get(A)
        feed.close()

    sim.run(main())


def test_close_waits_for_what_is_applied() -> None:
    sim = Simulation(13)

    async def before() -> None:
        store = await open_store(sim)
        pending = await submit(store, A, b"1")
        await store.close()
        await pending.wait()

    async def after() -> None:
        store = await reopen(sim)
        assert await store.snapshot(store.clock.last).get(A) == b"1"
        await store.close()

    sim.run(before())
    sim.run(after())


def test_waits_end_when_the_store_does() -> None:
    sim = Simulation(14)

    async def main() -> None:
        store = await open_store(sim)
        hold_log(store)
        pending = await submit(store, A, b"1")
        waiting = asyncio.create_task(pending.wait())
        await asyncio.sleep(0.1)
        store.fail(OSError("pulled the plug"))
        with pytest.raises(StoreClosed, match="plug"):
            store.begin()
        waiting.cancel()

    sim.run(main())


class RefusingEngine(MemoryEngine):
    """An engine whose disk refuses writes and flushes, while it does."""

    refusal: Exception | None = None

    def write(self, batch: EngineBatch, *, applied_index: int) -> None:
        self._refuse()
        super().write(batch, applied_index=applied_index)

    def flush(self) -> None:
        self._refuse()
        super().flush()

    def _refuse(self) -> None:
        if self.refusal is not None:
            raise self.refusal


def test_store_ends_with_its_engine_and_says_so() -> None:
    sim = Simulation(15)

    async def main() -> None:
        engine = RefusingEngine()
        store = await open_store(sim, engine=engine)
        told: list[BaseException] = []
        store.on_failure(told.append)
        engine.refusal = EngineFailed("the disk is broken")
        with pytest.raises(StoreClosed, match="the disk is broken"):
            await put(store, {A: b"1"})
        await asyncio.sleep(0)
        with pytest.raises(StoreClosed, match="the disk is broken"):
            store.begin()
        assert told == [engine.refusal]

    sim.run(main())


def test_log_is_cut_when_a_full_disk_has_room_for_the_engine() -> None:
    sim = Simulation(16)
    settings = Settings({"kv.engine.flush_bytes": "1000000"})

    async def main() -> None:
        engine = RefusingEngine()
        store = await open_store(sim, engine=engine, settings=settings)
        for _ in range(100):
            engine.refusal = None
            await put(store, {A: bytes(1 << 20)})
            engine.refusal = StoreFull("no room")
            await asyncio.sleep(0.1)
            with pytest.raises(StoreFull):
                await put(store, {A: b""})
        assert store.log.first_retained_index < 10
        engine.refusal = None
        await put(store, {A: b""})
        await asyncio.sleep(1)
        assert store.log.first_retained_index > 10
        await store.close()

    sim.run(main())


def test_a_feeds_consumer_changes_how_far_checkpoints_are_apart() -> None:
    sim = Simulation(22)

    async def main() -> None:
        async with running_store(sim) as store:
            feed = store.span_feed([Span(A, B)], await store.now())
            told: list[float] = []

            async def follow() -> None:
                async for _ in feed:
                    told.append(sim.now)

            following = asyncio.create_task(follow())
            await asyncio.sleep(0.5)
            feed.space_checkpoints(1.0)
            told.clear()
            await asyncio.sleep(4.0)
            assert 3 <= len(told) <= 5, told
            feed.space_checkpoints(0.0)
            told.clear()
            await asyncio.sleep(1.0)
            assert len(told) > 50, told
            feed.close()
            following.cancel()

    sim.run(main())


def test_a_feed_with_spaced_checkpoints_is_woken_for_values_alone() -> None:
    """A watcher of a system table costs the commits of other keys nothing."""
    sim = Simulation(21)

    async def main() -> None:
        async with running_store(sim) as store:
            start = await store.now()
            feed = store.span_feed([Span(A, B)], start, checkpoint_seconds=1.0)
            told: list[tuple[float, list[object]]] = []

            async def follow() -> None:
                async for events in feed:
                    told.append((sim.now, [type(event) for event in events]))

            following = asyncio.create_task(follow())
            await asyncio.sleep(0.5)
            told.clear()
            for _ in range(200):
                await put(store, {B: b"other"})
                await asyncio.sleep(0.02)
            assert 3 <= len(told) <= 5, told
            assert feed.frontier.low_water > await store.now() - duration(seconds=1.2)
            told.clear()
            await put(store, {A: b"mine"})
            await asyncio.sleep(0)
            assert ValueBatch in told[-1][1]
            feed.close()
            following.cancel()

    sim.run(main())
