"""Crashes: what was acknowledged is there, what was pending is not, and nothing is half done."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import StoreClosed
from tailrace.kvlayer.keys import INTENT, TRANSACTION, table_span
from tailrace.kvlayer.span import prefix_end
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation, limits, resolution
from tests.harness.sim_disk import Operation
from tests.harness.simulation import Simulation
from tests.harness.stores import (
    crash,
    hold_log,
    key,
    open_store,
    put,
    release_log,
    reopen,
    running_store,
    submit,
)

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)
MANY = [key(f"{i:05}") for i in range(1200)]


async def check_clean(store: Store) -> None:
    """No intent and no record is left, and transactions go on."""
    for prefix in (INTENT, TRANSACTION):
        assert store.engine.first(prefix, prefix_end(prefix)) is None
    store.check_invariants()
    ts = await put(store, {key("after"): b"1"})
    assert await store.snapshot(ts).get(key("after")) == b"1"
    await store.close()


def test_id_and_data_survive() -> None:
    sim = Simulation(1)

    async def before() -> tuple[str, Timestamp]:
        store = await open_store(sim)
        committed = await put(store, {A: b"1"})
        crash(sim)
        return store.id, committed

    async def after(store_id: str, committed: Timestamp) -> None:
        store = await reopen(sim)
        assert store.id == store_id
        assert store.clock.now() > committed
        assert await store.snapshot(store.clock.last).get(A) == b"1"
        await check_clean(store)

    sim.run(after(*sim.run(before())))


def test_engine_that_flushed_ahead_is_fine() -> None:
    sim = Simulation(2)

    async def before() -> None:
        store = await open_store(sim)
        await put(store, {A: b"1"})
        hold_log(store)
        pending = await submit(store, A, b"2")
        store.engine.flush()
        assert store.log.durable_index < pending.index <= store.engine.flushed_index
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert await store.snapshot(store.clock.last).get(A) == b"2"
        await check_clean(store)

    sim.run(before())
    sim.run(after())


def test_pending_transaction_is_aborted() -> None:
    sim = Simulation(3)

    async def before() -> None:
        store = await open_store(sim)
        await put(store, {A: b"0"})
        writer = store.begin()
        await writer.put(MANY, [b"x"] * len(MANY))
        await writer.put([A], [b"1"])
        await put(store, {B: b"1"})  # durable, and so is all before it
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        rows = await store.snapshot(store.clock.last).scan(SPAN)
        assert rows == [(A, b"0"), (B, b"1")]
        await check_clean(store)

    sim.run(before())
    sim.run(after())


def test_committed_transaction_is_finished() -> None:
    """Its record is durable, and none of its intents is resolved."""
    sim = Simulation(4)

    async def before() -> Timestamp:
        store = await open_store(sim)
        writer = store.begin()
        await writer.put(MANY, [b"x"] * len(MANY))
        committed = await writer.commit()
        crash(sim)
        return committed

    async def after(committed: Timestamp) -> None:
        store = await reopen(sim)
        versions = store.versions(SPAN, Timestamp(committed - 1), committed)
        found = [version async for rows in versions for version in rows]
        assert found == [(name, committed, b"x") for name in MANY]
        await check_clean(store)

    sim.run(after(sim.run(before())))


@pytest.mark.parametrize("seed", range(40))
def test_transaction_is_whole_or_absent_at_any_crash(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 500 if seed % 2 else 50
    monkeypatch.setattr(limits, "COMMAND_ROWS_MAX", rows)
    monkeypatch.setattr(resolution, "COMMAND_ROWS_MAX", rows)
    sim = Simulation(seed)
    acknowledged: dict[bytes, int] = {}

    async def transfer(store: Store, name: str, size: int) -> None:
        keys = [key(f"{name}{i:05}") for i in range(size)]
        writer = store.begin()
        await writer.put(keys, [b"x"] * size)
        await writer.commit()
        acknowledged[name.encode()] = size

    async def before() -> None:
        store = await open_store(sim)
        sizes = {"p": 3, "q": 700, "r": 1300, "s": 1}
        tasks = [asyncio.create_task(transfer(store, *each)) for each in sizes.items()]
        if seed % 3 == 0:
            store.engine.flush()
        await asyncio.sleep(sim.random.random() * 0.02)
        assert len(tasks) == len(sizes)
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        rows = await store.snapshot(store.clock.last).scan(SPAN)
        counts: dict[bytes, int] = {}
        for name, _ in rows:
            counts[name[5:6]] = counts.get(name[5:6], 0) + 1
        whole = {b"p": 3, b"q": 700, b"r": 1300, b"s": 1}
        assert all(whole[name] == count for name, count in counts.items()), counts
        assert all(name in counts for name in acknowledged), (counts, acknowledged)
        await check_clean(store)

    sim.run(before())
    sim.run(after())


def test_nothing_is_released_before_it_is_durable() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            explicit = store.begin()
            await explicit.put([B], [b"1"])
            await store.log.wait_durable(store.log.last_index)
            hold_log(store)
            pending = await submit(store, A, b"1")
            at = store.clock.now()
            reader, writer = store.begin(read_only=True), store.begin()

            def duplicate(evaluation: Evaluation) -> None:
                raise LookupError(evaluation.get(A))

            calls: list[Callable[[], Awaitable[object]]] = [
                pending.wait,
                explicit.commit,
                lambda: store.snapshot(at).get(A),
                lambda: store.snapshot(at).scan(SPAN),
                lambda: anext(store.versions(SPAN, Timestamp(at - 1000), at)),
                lambda: reader.get(A),
                lambda: reader.scan(SPAN),
                lambda: writer.get(A, for_update=True),
                lambda: store.one_phase(lambda e: e.get(A)),
                lambda: store.one_phase(duplicate),
            ]
            tasks = [asyncio.ensure_future(call()) for call in calls]
            await asyncio.sleep(3)
            assert [task.done() for task in tasks] == [False] * len(tasks)
            release_log(store)
            await asyncio.wait(tasks)
            assert isinstance(tasks[-1].exception(), LookupError)
            assert [task.exception() for task in tasks[:-1]] == [None] * (len(tasks) - 1)
            await writer.rollback()

    sim.run(main())


def test_failed_sync_closes_the_store() -> None:
    sim = Simulation(6)

    async def main() -> None:
        store = await open_store(sim)
        await put(store, {A: b"0"})
        holder, waiter = store.begin(), store.begin()
        await holder.put([A], [b"1"])
        waiting = asyncio.create_task(waiter.put([A], [b"2"]))
        await asyncio.sleep(0.1)
        sim.disk.fail(Operation.SYNC, OSError(errno.EIO, "bad block"))
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: put(store, {B: b"1"}),
            lambda: put(store, {B: b"2"}),
            holder.commit,
            lambda: waiting,
            lambda: store.snapshot(store.clock.last).get(A),
        ]
        for call in calls:
            with pytest.raises(StoreClosed, match="bad block"):
                await call()
        with pytest.raises(StoreClosed, match="bad block"):
            store.begin()
        await store.close()

    sim.run(main())


def test_rollback_hides_no_cancelled_commit() -> None:
    """A commit that is cancelled while it waits to be durable stays cancelled for its caller."""

    async def commit_one(store: Store) -> None:
        transaction = store.begin()
        try:
            await transaction.put([A], [b"1"])
            await transaction.commit()
        except BaseException:
            await transaction.rollback()
            raise

    async def scenario(sim: Simulation) -> None:
        async with running_store(sim) as store:
            hold_log(store)
            task = asyncio.create_task(commit_one(store))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            release_log(store)
            assert task.cancelled()

    sim = Simulation(1)
    sim.run(scenario(sim))
