"""Writes that are buffered until the commit, and what becomes of those that outgrow the buffer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from tailrace.kvlayer.command import CommitIntent, LogicalOp, WriteIntent, WriteValue
from tailrace.kvlayer.errors import (
    KeyTooLarge,
    LockTimeout,
    RetryableTransaction,
    TransactionState,
    WriteConflict,
)
from tailrace.kvlayer.keys import KEY_BYTES_MAX, VALUE_BYTES_MAX, table_span
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation, WhenLocked
from tailrace.kvlayer.txn.transaction import PORTION_KEYS
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store

A, B, C = key("a"), key("b"), key("c")
SPAN = table_span(7)
LARGE = b"x" * 300
"""Two of them outgrow the buffer of `run`."""


@pytest.fixture(autouse=True)
def buffer_bytes() -> None:
    """Each of these says what it needs."""


Work = Callable[[Store, list[LogicalOp]], Awaitable[None]]


def run(work: Work, *, bound: int = 1000) -> None:
    sim = Simulation(1)

    async def main() -> None:
        settings = Settings({"kv.transaction.buffer_bytes": str(bound)})
        async with running_store(sim, settings=settings) as store:
            proposed: list[LogicalOp] = []
            propose = store._ranges.propose

            def noted(operations: list[LogicalOp], **how: object) -> int:
                proposed.extend(operations)
                return propose(operations, **how)  # type: ignore[arg-type]

            store._ranges.propose = noted  # type: ignore[assignment, method-assign]
            await work(store, proposed)

    sim.run(main())


def test_a_buffered_transaction_is_one_entry() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.put([A], [b"1"])
        await writer.put([B, A], [b"2", b"3"])
        await writer.delete([C])
        assert not proposed
        at = await writer.commit()
        (entry,) = proposed
        assert isinstance(entry, WriteValue)
        assert entry.timestamp == at
        assert sorted(entry.keys) == [A, B, C]
        assert await store.snapshot(at).scan(SPAN) == [(A, b"3"), (B, b"2")]

    run(work)


def test_a_transaction_reads_what_it_has_buffered() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        await put(store, {A: b"old", C: b"old"})
        writer = store.begin()
        await writer.put([B], [b"new"])
        await writer.delete([C])
        rows = [(A, b"old"), (B, b"new")]
        assert await writer.scan(SPAN) == rows
        assert await writer.scan(SPAN, reverse=True, limit=1) == rows[1:]
        assert [row async for part in writer.scan_slices(SPAN) for row in part] == rows
        assert await writer.get(C) is None
        assert await writer.first_existing([C, B]) == 1
        after = store.gc_threshold
        changes = [each async for part in writer.changed_slices(SPAN, after) for each in part]
        assert dict(changes) == {A: b"old", B: b"new", C: None}
        await writer.rollback()
        assert not store._ranges.locks.locks

    run(work)


def test_a_reader_does_not_wait_and_the_writer_commits_above_it() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        await put(store, {A: b"old"})
        writer = store.begin()
        await writer.put([A], [b"new"])
        reader = store.begin(read_only=True)
        assert await reader.get(A) == b"old"
        assert await writer.commit() > reader.read_timestamp
        assert await reader.get(A) == b"old"

    run(work)


def test_a_buffered_writer_whose_read_has_changed_is_refused() -> None:
    """It committed above a reader of what it wrote, and so its own reads must hold there."""

    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.get(B)
        await writer.put([A], [b"new"])
        await put(store, {B: b"changed"})
        assert await store.snapshot(store.clock.now()).get(A) is None
        with pytest.raises(RetryableTransaction):
            await writer.commit()

    run(work)


def test_buffered_keys_are_locked() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        first, second = store.begin(), store.begin(isolation=Isolation.READ_COMMITTED)
        await first.put([A], [b"1"])
        assert await second.lock([A], when_locked=WhenLocked.SKIP) == []
        waiting = asyncio.create_task(put(store, {A: b"2"}))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        at = await first.commit()
        assert await waiting > at

    run(work)


def test_keys_beside_locked_ones_are_looked_at() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin(isolation=Isolation.REPEATABLE_READ)
        await writer.lock([A])
        savepoint = await writer.savepoint()
        await writer.lock([B])
        await writer.put([B], [b"1"])
        await writer.rollback_to(savepoint)
        await put(store, {B: b"2"})
        await writer.put([A], [b"1"])
        with pytest.raises(WriteConflict):
            await writer.put([A, B], [b"1", b"1"])
        await writer.rollback()

    run(work)


def test_what_outgrows_the_buffer_becomes_intents() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.put([A], [LARGE])
        assert not proposed
        await writer.put([B, C], [LARGE, LARGE])
        kinds = [type(op) for op in proposed]
        assert kinds == [WriteIntent, WriteIntent]
        assert await writer.scan(SPAN) == [(name, LARGE) for name in (A, B, C)]
        at = await writer.commit()
        assert isinstance(proposed[-1], CommitIntent)
        assert len(await store.snapshot(at).scan(SPAN)) == 3

    run(work)


async def _spill_amid_savepoints(store: Store, random: Random) -> None:
    """Runs a transaction that spills, and goes back to each of its savepoints."""
    writer = store.begin()
    rows: dict[bytes, bytes] = {}
    stack = [(await writer.savepoint(), dict(rows))]
    for step in range(12):
        match random.choice(("put", "put", "put", "mark", "mark", "back")):
            case "put":
                name = random.choice((A, B))
                rows[name] = b"%d" % step
                await writer.put([name], [rows[name]])
            case "mark":
                stack.append((await writer.savepoint(), dict(rows)))
            case "back":
                del stack[max(1, len(stack) - random.choice((0, 0, 1))) :]
                await writer.rollback_to(stack[-1][0])
                rows = dict(stack[-1][1])
    await writer.put([C], [LARGE * 9])
    assert writer._record.intents and not writer._record.buffer
    assert dict(await writer.scan(SPAN)) == rows | {C: LARGE * 9}
    for savepoint, rows in reversed(stack):
        await writer.rollback_to(savepoint)
        assert dict(await writer.scan(SPAN)) == rows
        store.check_invariants()
    await writer.rollback()


def test_any_savepoint_is_gone_back_to_after_a_spill() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        for seed in range(100):
            await _spill_amid_savepoints(store, Random(f"spill:{seed}"))

    run(work, bound=2000)


def test_savepoints_bring_back_what_was_buffered_before_it_spilled() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.put([A], [b"1"])
        first = await writer.savepoint()
        await writer.put([A, B], [b"2", b"2"])
        second = await writer.savepoint()
        await writer.delete([A])
        await writer.put([C], [LARGE * 4])
        assert proposed, "it has spilled"
        await writer.rollback_to(second)
        assert await writer.scan(SPAN) == [(A, b"2"), (B, b"2")]
        await writer.rollback_to(first)
        assert await writer.scan(SPAN) == [(A, b"1")]
        await put(store, {B: b"free again"})
        at = await writer.commit()
        assert await store.snapshot(at).get(A) == b"1"

    run(work)


def test_savepoints_bring_the_buffer_back() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.put([A], [b"1"])
        outer = await writer.savepoint()
        inner = await writer.savepoint()
        await writer.put([A, B], [b"2", b"2"])
        await writer.release(inner)
        await writer.put([A], [b"3"])
        store.check_invariants()
        await writer.rollback_to(outer)
        assert await writer.scan(SPAN) == [(A, b"1")]
        await writer.put([A], [b"4"])
        await writer.rollback_to(outer)
        store.check_invariants()
        await put(store, {B: b"free again"})
        await writer.commit()
        (written,) = [op for op in proposed if isinstance(op, WriteValue) and A in op.keys]
        assert written.values == [b"\x001"]

    run(work)


def test_a_buffered_writer_holds_no_closed_timestamp() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        feed = store.range_feed(SPAN, store.gc_threshold)
        writer = store.begin()
        await writer.lock([B])
        await writer.put([A], [b"1"])
        await asyncio.sleep(0.5)
        closed = store.closed_timestamps.close()
        assert closed > writer.write_timestamp
        assert store.closed_timestamps.holder_count == 0
        assert await writer.commit() > closed
        feed.close()

    run(work)


def test_an_abandoned_writer_leaves_no_lock() -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        await writer.put([A], [b"1"])
        del writer
        await put(store, {A: b"2"})
        assert not store._ranges.locks.locks
        assert len(proposed) == 1

    run(work)


KEYS = [key(f"{number:05}") for number in range(PORTION_KEYS + 1000)]
"""More than one portion of a statement."""


@pytest.mark.parametrize("bound", [1000, 1 << 24])
def test_a_statement_with_a_wrong_value_at_its_end_writes_nothing(bound: int) -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        writer = store.begin()
        bodies = [b"1"] * (len(KEYS) - 1)
        with pytest.raises(KeyTooLarge):
            await writer.put(KEYS, [*bodies, bytes(VALUE_BYTES_MAX + 1)])
        with pytest.raises(KeyTooLarge):
            await writer.delete([*KEYS, A + bytes(KEY_BYTES_MAX)])
        at = await writer.commit()
        assert await store.snapshot(at).scan(SPAN) == []

    run(work, bound=bound)


@pytest.mark.parametrize("bound", [1000, 1 << 24])
def test_half_of_a_statement_of_many_portions_is_not_committed(bound: int) -> None:
    async def work(store: Store, proposed: list[LogicalOp]) -> None:
        holder = store.begin()
        await holder.put([KEYS[PORTION_KEYS + 10]], [b"held"])
        writer = store.begin(lock_timeout=0.05)
        with pytest.raises(LockTimeout):
            await writer.put(KEYS, [b"1"] * len(KEYS))
        with pytest.raises(TransactionState):
            await writer.commit()
        at = await holder.commit()
        assert await store.snapshot(at).scan(SPAN) == [(KEYS[PORTION_KEYS + 10], b"held")]

    run(work, bound=bound)
