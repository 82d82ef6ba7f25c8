"""Savepoints: what is undone, what stands, and that feeds count intents rightly through it all."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.errors import TransactionState
from tailrace.kvlayer.events import Checkpoint, ValueBatch
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.mvcc import decode_intent
from tailrace.kvlayer.rangefeed import SpanFeed
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.txn import LockMode, Savepoint, TransactionRecord, locks, rewind
from tailrace.kvlayer.txn.intent_history import needed
from tests.harness import stores
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

A, B, C = key("a"), key("b"), key("c")
KEYS = [key(f"{i}") for i in range(5)]
SPAN = table_span(7)


def test_rollback_to_restores_earlier_values() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0", C: b"0"})
            writer = store.begin()
            await writer.put([A], [b"1"])
            mark = await writer.savepoint()
            await writer.put([A, B], [b"2", b"2"])
            await writer.delete([C])
            await writer.put([A], [b"3"])
            assert await writer.scan(SPAN) == [(A, b"3"), (B, b"2")]
            await writer.rollback_to(mark)
            store.check_invariants()
            assert await writer.scan(SPAN) == [(A, b"1"), (C, b"0")]
            assert writer.write_count == 1
            at = await writer.commit()
            assert await store.snapshot(at).scan(SPAN) == [(A, b"1"), (C, b"0")]

    sim.run(main())


def test_rollback_to_frees_what_was_locked_since() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            holder, other = store.begin(), store.begin(lock_timeout=1.0)
            await holder.lock([A], mode=LockMode.SHARED)
            mark = await holder.savepoint()
            await holder.lock([A, B])
            await holder.put([C], [b"1"])
            waiting = asyncio.create_task(other.put([B, C], [b"2", b"2"]))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await holder.rollback_to(mark)
            await waiting
            await other.lock([A], mode=LockMode.SHARED)  # the upgrade is undone, the share is not
            store.check_invariants()
            await other.commit()
            await holder.commit()

    sim.run(main())


def test_large_rollback_to_is_sliced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewind, "COMMAND_ROWS_MAX", 7)
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            names = [key(f"{i:03}") for i in range(100)]
            writer = store.begin()
            await writer.put(names[:50], [b"old"] * 50)
            mark = await writer.savepoint()
            await writer.put(names, [b"new"] * 100)
            await writer.rollback_to(mark)
            store.check_invariants()
            at = await writer.commit()
            rows = await store.snapshot(at).scan(SPAN)
            assert rows == [(name, b"old") for name in names[:50]]

    sim.run(main())


def test_many_locks_are_freed_a_portion_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PORTION_KEYS", 7)
    sim = Simulation(9)
    names = [key(f"{i:03}") for i in range(100)]

    async def main() -> None:
        async with running_store(sim) as store:
            holder = store.begin()
            await holder.lock(names[:10])
            mark = await holder.savepoint()
            await holder.lock(names[5:60])
            await holder.lock(names[50:], mode=LockMode.SHARED)
            table = store._ranges.locks
            seen = {len(table.locks) + len(table.shares)}
            undoing = asyncio.create_task(holder.rollback_to(mark))
            while not undoing.done():
                await asyncio.sleep(0)
                seen.add(len(table.locks) + len(table.shares))
            assert dict(table.locks.items()).keys() == set(names[:10])
            assert not table.shares
            assert len(seen) > 10
            store.check_invariants()
            await holder.rollback()

    sim.run(main())


def test_keys_that_were_rewritten_are_looked_for_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where none of them is to be undone, and the transaction ends in the middle."""
    monkeypatch.setattr(rewind, "KEYS_AT_ONCE", 5)
    sim = Simulation(10)
    names = [key(f"{i:03}") for i in range(50)]

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            await writer.put(names, [b"1"] * len(names))
            await writer.savepoint()
            await writer.put(names, [b"2"] * len(names))
            mark = await writer.savepoint()
            undoing = asyncio.create_task(writer.rollback_to(mark))
            turns = 0
            while not undoing.done():
                await asyncio.sleep(0)
                turns += 1
            assert turns >= 10
            undoing = asyncio.create_task(writer.rollback_to(mark))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await writer.rollback()
            with pytest.raises(TransactionState):
                await undoing
            store.check_invariants()

    sim.run(main())


def test_half_of_a_rollback_cannot_be_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewind, "COMMAND_ROWS_MAX", 1)
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            mark = await writer.savepoint()
            await writer.put([A, B, C], [b"1"] * 3)
            undoing = asyncio.create_task(writer.rollback_to(mark))
            while len(writer._record.intents) == 3:
                await asyncio.sleep(0)
            undoing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await undoing
            with pytest.raises(TransactionState):
                await writer.commit()
            assert await store.snapshot(store.clock.last).scan(SPAN) == []

    sim.run(main())


def test_intent_keeps_what_a_savepoint_may_need_and_no_more() -> None:
    history = ((1, b"a"), (3, b"b"), (4, b"c"), (9, b"d"))
    assert needed(history, []) == ()
    assert needed(history, [2]) == ((1, b"a"),)
    assert needed(history, [2, 5, 6]) == ((1, b"a"), (4, b"c"))
    assert needed(history, [0]) == ()
    assert needed(history, [10]) == ((9, b"d"),)


class Watcher:
    """Remembers what a feed delivered, and holds it to ascending order above its checkpoints."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, Timestamp, bytes | None]] = []
        self.resolved = Timestamp(0)

    async def watch(self, feed: SpanFeed) -> None:
        while True:
            for event in await feed.next():
                if isinstance(event, Checkpoint):
                    self.resolved = max(self.resolved, event.resolved)
                elif isinstance(event, ValueBatch):
                    assert min(event.timestamps) > self.resolved, "nothing new below a checkpoint"
                    self.seen += zip(event.keys, event.timestamps, event.values, strict=True)


@pytest.mark.parametrize("seed", range(25))
def test_random_savepoints_against_a_model(seed: int) -> None:
    """A stack of maps says what each rollback restores. The feed must see the commit, whole, and
    no checkpoint may pass it: a wrong count of intents would let it by."""
    sim = Simulation(seed)
    random = Random(f"savepoints:{seed}")

    async def main() -> None:
        # Closing waits for nobody, so that only the count of intents holds a checkpoint back.
        settings = Settings(stores.DEFAULTS | {"kv.closed_timestamp.target_duration": "1ms"})
        async with running_store(sim, settings=settings) as store:
            feed, watcher = store.span_feed([SPAN], store.clock.last), Watcher()
            watching = asyncio.create_task(watcher.watch(feed))
            committed: dict[bytes, bytes | None] = {}
            for _ in range(6):
                writer = store.begin()
                model: dict[bytes, bytes | None] = {}
                stack: list[tuple[Savepoint, dict[bytes, bytes | None]]] = []
                for step in range(random.randint(1, 25)):
                    match random.choice(["put", "put", "delete", "mark", "release", "back"]):
                        case "put":
                            names = random.sample(KEYS, random.randint(1, 3))
                            await writer.put(names, [b"%d" % step] * len(names))
                            model |= dict.fromkeys(names, b"%d" % step)
                        case "delete":
                            name = random.choice(KEYS)
                            await writer.delete([name])
                            model[name] = None
                        case "mark":
                            stack.append((await writer.savepoint(), dict(model)))
                        case "release" if stack:
                            place = random.randrange(len(stack))
                            await writer.release(stack[place][0])
                            del stack[place:]
                        case "back" if stack:
                            del stack[random.randrange(len(stack)) + 1 :]
                            await writer.rollback_to(stack[-1][0])
                            model = dict(stack[-1][1])
                    store.check_invariants()
                    seen = {k: body for k, body in (committed | model).items() if body is not None}
                    assert dict(await writer.scan(SPAN)) == seen
                    if random.random() < 0.3:
                        await asyncio.sleep(random.random() * 0.04)
                    if random.random() < 0.1:
                        await store._ranges.push(writer.id)
                before = len(watcher.seen)
                at = await writer.commit()
                while watcher.resolved < at:
                    assert not watching.done(), watching.exception()
                    await asyncio.sleep(0.01)
                told = {name: body for name, ts, body in watcher.seen[before:] if ts == at}
                assert told == model
                committed |= model
            watching.cancel()
            feed.close()

    sim.run(main())


def test_history_is_bounded_by_the_savepoints_that_stand() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            for number in range(20):
                mark = await writer.savepoint()
                await writer.put([A], [b"%d" % number])
                await writer.release(mark)
            assert len(history_of(writer._record, store.engine.get(b"\x02" + A))) <= 1
            await writer.commit()

    sim.run(main())


def history_of(record: TransactionRecord, encoded: bytes | None) -> tuple[tuple[int, bytes], ...]:
    assert encoded is not None
    intent = decode_intent(encoded)
    assert intent.transaction_id == record.id
    return intent.history


def test_feeds_count_an_intent_that_keeps_its_history_once() -> None:
    """One put replaces an intent that must remember (A) and one that need not (B)."""
    sim = Simulation(6)

    async def main() -> None:
        settings = unbuffered()
        settings.set("kv.closed_timestamp.target_duration", "1ms")
        async with running_store(sim, settings=settings) as store:
            feed, watcher = store.span_feed([SPAN], store.clock.last), Watcher()
            watching = asyncio.create_task(watcher.watch(feed))
            writer = store.begin()
            await writer.put([A], [b"1"])
            mark = await writer.savepoint()
            await writer.put([B], [b"2"])
            await writer.put([A, B], [b"3", b"3"])
            await writer.rollback_to(mark)
            await asyncio.sleep(0.2)
            assert watcher.resolved < writer.write_timestamp, "A's intent holds it back"
            at = await writer.commit()
            await asyncio.sleep(0.2)
            assert watcher.seen == [(A, at, b"1")]
            watching.cancel()
            feed.close()

    sim.run(main())
