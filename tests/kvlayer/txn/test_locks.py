"""Lock waits: order, timeouts, deadlocks, abandoned holders."""

from __future__ import annotations

import asyncio
import gc

import pytest

from tailrace.kvlayer import locked_keys
from tailrace.kvlayer.errors import (
    Deadlock,
    LockTimeout,
    TransactionAborted,
    TransactionState,
    WriteConflict,
)
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation
from tailrace.kvlayer.txn import LockMode, Priority, TransactionStatus, locking
from tailrace.kvlayer.txn.locking import PORTION_KEYS
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

SPAN = table_span(7)
A, B, C = key("a"), key("b"), key("c")


async def write(store: Store, name: bytes, log: list[str], who: str) -> None:
    transaction = store.begin()
    await transaction.put([name], [who.encode()])
    log.append(who)
    await transaction.commit()


@pytest.mark.parametrize("seed", range(5))
def test_writers_take_turns_in_order_of_arrival(seed: int) -> None:
    sim = Simulation(seed)

    async def main() -> None:
        async with running_store(sim) as store:
            holder = store.begin()
            await holder.put([A], [b"0"])
            order: list[str] = []
            waiters = []
            for who in "12345":
                waiters.append(asyncio.create_task(write(store, A, order, who)))
                await asyncio.sleep(0.001)
            assert order == []
            await holder.commit()
            await asyncio.gather(*waiters)
            assert order == list("12345")

    sim.run(main())


def test_lock_wait_times_out() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            holder = store.begin()
            await holder.put([A], [b"0"])
            waiter = store.begin(lock_timeout=2.0)
            began = sim.now
            with pytest.raises(LockTimeout) as caught:
                await waiter.put([A], [b"1"])
            assert caught.value.holder == holder.id
            assert sim.now - began == pytest.approx(2.0)
            with pytest.raises(LockTimeout):
                await store.one_phase(lambda e: e.put([A], [b"2"]), lock_timeout=0.5)
            await waiter.rollback()
            await holder.commit()
            assert await store.snapshot(store.clock.last).get(A) == b"0"

    sim.run(main())


def test_cancelled_waiter_passes_its_turn_on() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            holder = store.begin()
            await holder.put([A], [b"0"])
            order: list[str] = []
            first = asyncio.create_task(write(store, A, order, "1"))
            await asyncio.sleep(0.01)
            second = asyncio.create_task(write(store, A, order, "2"))
            await asyncio.sleep(0.01)
            await holder.commit()
            first.cancel()
            await asyncio.wait([first])
            await second
            assert order[-1] == "2"

    sim.run(main())


def test_circle_of_waits_is_refused() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            one, two, three = store.begin(), store.begin(), store.begin()
            await one.put([A], [b"1"])
            await two.put([B], [b"2"])
            await three.put([C], [b"3"])
            waits = [asyncio.create_task(one.put([B], [b"1"]))]
            await asyncio.sleep(0.01)
            waits.append(asyncio.create_task(two.put([C], [b"2"])))
            await asyncio.sleep(0.01)
            with pytest.raises(Deadlock):
                await three.put([A], [b"3"])
            await three.rollback()
            await waits[1]
            await two.commit()
            await waits[0]
            await one.commit()
            rows = await store.snapshot(store.clock.last).scan(SPAN)
            assert rows == [(A, b"1"), (B, b"1"), (C, b"2")]

    sim.run(main())


def test_reader_waits_for_an_older_intent() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await put(store, {A: b"0"})
            early = store.begin(read_only=True)
            writer = store.begin()
            await writer.put([A], [b"1"])
            assert await early.get(A) == b"0", "an intent above the read is no concern of it"
            late = store.begin(read_only=True)
            reads = [asyncio.create_task(late.get(A)), asyncio.create_task(late.scan(SPAN))]
            await asyncio.sleep(0.1)
            assert not any(read.done() for read in reads)
            await writer.commit()
            assert await reads[0] == b"1"
            assert await reads[1] == [(A, b"1")]

    sim.run(main())


def test_abandoned_transaction_is_aborted() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})

            async def abandon() -> bytes:
                transaction = store.begin()
                await transaction.put([A], [b"lost"])
                return transaction.id

            lost = await abandon()
            gc.collect()
            began = sim.now
            await put(store, {A: b"1"})
            assert 4.0 < sim.now - began < 8.0
            assert (await store._ranges.push(lost)).verdict.name == "ABORTED"
            assert await store.snapshot(store.clock.last).get(A) == b"1"

    sim.run(main())


def test_held_transaction_is_not_abandoned() -> None:
    sim = Simulation(6)

    async def main() -> None:
        async with running_store(sim) as store:
            transaction = store.begin()
            await transaction.put([A], [b"1"])
            await asyncio.sleep(60)
            assert transaction.state is TransactionStatus.PENDING
            await transaction.commit()

    sim.run(main())


def test_locked_read_sees_the_newest_value() -> None:
    sim = Simulation(7)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"0"})
            transaction = store.begin()
            await put(store, {A: b"1"})
            assert await transaction.get(A, for_update=True) == b"1"
            blocked = asyncio.create_task(put(store, {A: b"2"}))
            await asyncio.sleep(0.1)
            assert not blocked.done()
            await transaction.put([A], [b"1+"])
            committed = await transaction.commit()
            assert await blocked > committed

    sim.run(main())


def test_ended_transaction_refuses_everything() -> None:
    sim = Simulation(8)

    async def main() -> None:
        async with running_store(sim) as store:
            transaction = store.begin()
            await transaction.put([A], [b"1"])
            await transaction.commit()
            for call in (transaction.commit, transaction.rollback, lambda: transaction.get(A)):
                with pytest.raises(TransactionState):
                    await call()
            reader = store.begin(read_only=True)
            with pytest.raises(TransactionState):
                await reader.put([A], [b"1"])
            undone = store.begin()
            await undone.put([B], [b"1"])
            await undone.rollback()
            await undone.rollback()
            with pytest.raises(TransactionState):
                await undone.commit()
            assert await store.snapshot(store.clock.last).get(B) is None

    sim.run(main())


def test_pushed_aside_waiter_stops_waiting() -> None:
    sim = Simulation(9)

    async def main() -> None:
        async with running_store(sim) as store:
            holder, waiter = store.begin(), store.begin()
            await holder.put([A], [b"0"])
            await waiter.put([B], [b"1"])
            waiting = asyncio.create_task(waiter.put([A], [b"1"]))
            await asyncio.sleep(0.1)
            store._ranges.abort_running("out of the way")
            with pytest.raises(TransactionAborted):
                await waiting
            with pytest.raises(TransactionAborted):
                await holder.commit()

    sim.run(main())


def test_one_phase_waits_for_whom_a_reader_would_push() -> None:
    """It reads at the present: a holder moved up to the present is below it again, for ever."""
    sim = Simulation(31)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            holder = store.begin(priority=Priority.LOW)
            await holder.put([A], [b"0"])
            adding = asyncio.create_task(
                store.one_phase(lambda e: e.put([B], [e.get(A) or b"nothing"]))
            )
            await asyncio.sleep(0.1)
            assert not adding.done()
            assert await store.begin(read_only=True).get(A) is None, "a reader in the past pushes"
            await holder.commit()
            await adding
            assert await store.snapshot(store.clock.last).get(B) == b"0"

    sim.run(main())


def test_sharers_do_not_starve_one_who_wants_the_key_alone() -> None:
    sim = Simulation(32)

    async def main() -> None:
        async with running_store(sim) as store:
            order: list[str] = []

            async def share(who: str) -> None:
                sharer = store.begin()
                await sharer.lock([A], mode=LockMode.SHARED)
                order.append(who)
                await asyncio.sleep(0.05)
                await sharer.commit()

            tasks = [asyncio.create_task(share("s1"))]
            await asyncio.sleep(0.01)
            tasks.append(asyncio.create_task(write(store, A, order, "w")))
            await asyncio.sleep(0.01)
            tasks += [asyncio.create_task(share("s2")), asyncio.create_task(share("s3"))]
            await asyncio.gather(*tasks)
            assert order[:2] == ["s1", "w"]
            assert sorted(order[2:]) == ["s2", "s3"]

    sim.run(main())


def test_circle_through_a_queue_is_refused() -> None:
    """s waits behind w for h, though h would share: were h to wait for s, all would for ever."""
    sim = Simulation(33)

    async def main() -> None:
        async with running_store(sim) as store:
            holder, writer, sharer = store.begin(), store.begin(), store.begin()
            await holder.lock([A], mode=LockMode.SHARED)
            await sharer.put([B], [b"1"])
            writing = asyncio.create_task(writer.put([A], [b"1"]))
            await asyncio.sleep(0.01)
            sharing = asyncio.create_task(sharer.lock([A], mode=LockMode.SHARED))
            await asyncio.sleep(0.01)
            with pytest.raises(Deadlock):
                await holder.put([B], [b"2"])
            await holder.rollback()
            await writing
            await writer.commit()
            await sharing
            await sharer.commit()

    sim.run(main())


def test_keys_locked_at_once_have_no_newer_version() -> None:
    sim = Simulation(41)

    async def main() -> None:
        async with running_store(sim) as store:
            late, first = (store.begin(isolation=Isolation.REPEATABLE_READ) for _ in range(2))
            await first.lock([A, B])
            waiting = asyncio.create_task(late.lock([C, B]))
            await asyncio.sleep(0)
            assert not waiting.done(), "one of its keys is held"
            await first.put([B], [b"1"])
            await first.commit()
            with pytest.raises(WriteConflict):
                await waiting
            await late.rollback()
            again = store.begin(isolation=Isolation.REPEATABLE_READ)
            await put(store, {B: b"2"})
            with pytest.raises(WriteConflict):
                await again.lock([A, B])
            await again.rollback()

    sim.run(main())


def test_locking_of_many_keys_is_no_one_step() -> None:
    """Whoever aborts the transaction between two of its steps finds that it holds nothing."""
    sim = Simulation(42, shuffled=False)
    names = [key(f"{number:05}") for number in range(2 * PORTION_KEYS)]

    async def main() -> None:
        async with running_store(sim) as store:
            holder = store.begin()
            locking = asyncio.create_task(holder.lock(names))
            while not store._ranges.locks.locks:
                await asyncio.sleep(0)
            assert not locking.done()
            urgent = store.begin(priority=Priority.HIGH)
            await urgent.lock([names[0]])
            with pytest.raises(TransactionAborted):
                await locking
            assert store._ranges.locks.holder(names[0]) is urgent._record
            assert not any(map(store._ranges.locks.holder, names[1:]))
            await urgent.rollback()
            again = store.begin()
            assert await again.lock(names) == names
            await again.rollback()

    sim.run(main())


@pytest.mark.parametrize("mode", LockMode)
@pytest.mark.parametrize("commits", [True, False])
def test_the_end_frees_all_keys_and_forgets_them_in_portions(
    mode: LockMode, commits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits has its turn at once, and takes a key that is not forgotten yet."""
    monkeypatch.setattr(locked_keys, "PORTION_KEYS", 7)
    monkeypatch.setattr(locking, "PORTION_KEYS", 7)
    sim = Simulation(43)
    names = [key(f"{number:03}") for number in range(100)]

    async def main() -> None:
        async with running_store(sim) as store:
            locks = store._ranges.locks
            holder, waiter, late = store.begin(), store.begin(), store.begin()
            await holder.lock(names, mode=mode)
            waiting = asyncio.create_task(waiter.lock(names[50:52]))
            while not locks._queues:
                await asyncio.sleep(0)
            await (holder.commit() if commits else holder.rollback())
            left = len(locks.locks) + len(locks.shares)
            assert left > 80
            assert await late.lock(names[60:]) == names[60:]
            await waiting
            store.check_invariants()
            while len(locks.locks) + len(locks.shares) > 42:
                await asyncio.sleep(0)
            assert all(locks.holder(name) is late._record for name in names[60:])
            assert all(locks.holder(name) is waiter._record for name in names[50:52])
            store.check_invariants()
            await waiter.rollback()
            await late.rollback()

    sim.run(main())


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("mode", LockMode)
@pytest.mark.parametrize("buffered", [True, False])
def test_who_waited_for_a_lock_writes_above_the_holders_commit(
    mode: LockMode, count: int, buffered: bool
) -> None:
    """Else there would be a time at which the later write was there, and the earlier was not."""
    sim = Simulation(44)
    names = [key(f"{number:03}") for number in range(count)]

    async def main() -> None:
        async with running_store(sim, settings=None if buffered else unbuffered()) as store:
            holder = store.begin(isolation=Isolation.READ_COMMITTED)
            await holder.lock(names, mode=mode)
            waiter = store.begin()
            waiting = asyncio.create_task(waiter.put([names[-1]], [b"later"]))
            while not store._ranges.locks._queues:
                await asyncio.sleep(0)
            await holder.begin_statement()
            await holder.put([key("written")], [b"earlier"])
            earlier = await holder.commit()
            await waiting
            assert await waiter.commit() > earlier

    sim.run(main())
