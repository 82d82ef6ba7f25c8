"""What is seen leaves when it is durable, and waits for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import Evaluation
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, put, release_log, running_store, submit

A, B = key("b"), key("c")
ELSEWHERE = key("a", table_id=8)
SPAN = table_span(7)

Read = Callable[[Store], Awaitable[object]]


async def get(store: Store) -> object:
    return await store.begin().get(A)


async def get_as_of(store: Store) -> object:
    return await store.snapshot(store.clock.now()).get(A)


async def scan(store: Store) -> object:
    return await store.begin().scan(SPAN)


async def look(store: Store) -> object:
    return await store.begin().first_existing([A, B])


async def evaluate(store: Store) -> object:
    return (await store.one_phase(lambda evaluation: evaluation.get(A)))[0]


def write(evaluation: Evaluation) -> None:
    evaluation.put([A], [b"2"])


def delete(evaluation: Evaluation) -> None:
    evaluation.delete([A])


def delete_span(evaluation: Evaluation) -> None:
    evaluation.delete_range(SPAN)


@pytest.mark.parametrize("change", [write, delete, delete_span])
@pytest.mark.parametrize("read", [get, get_as_of, scan, look, evaluate])
def test_what_is_not_durable_does_not_leave(
    read: Read, change: Callable[[Evaluation], None]
) -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            hold_log(store)
            pending = await store.submit_one_phase(change)
            reading = asyncio.ensure_future(read(store))
            await asyncio.sleep(1)
            assert not reading.done()
            release_log(store)
            await reading
            await pending.wait()

    sim.run(main())


def test_a_commit_by_intents_does_not_leave_before_it_is_durable() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await writer.put([A], [b"1"])
            hold_log(store)
            committing = asyncio.ensure_future(writer.commit())
            await asyncio.sleep(0)
            reading = asyncio.ensure_future(get(store))
            await asyncio.sleep(1)
            assert not reading.done()
            release_log(store)
            assert await reading == b"1"
            await committing

    sim.run(main())


@pytest.mark.parametrize("read", [get, get_as_of])
def test_a_point_read_waits_for_no_other_key(read: Read) -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            hold_log(store)
            pending = await submit(store, B, b"1")
            assert await read(store) == b"1"
            release_log(store)
            await pending.wait()

    sim.run(main())


@pytest.mark.parametrize("read", [get, get_as_of, scan, evaluate])
def test_no_read_waits_for_intents(read: Read) -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            hold_log(store)
            writer = store.begin()
            await writer.put([ELSEWHERE], [b"1"])
            assert await writer.get(ELSEWHERE) == b"1", "nor does its own transaction"
            assert await read(store)
            release_log(store)
            await writer.rollback()

    sim.run(main())


def test_a_transaction_syncs_once() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"1"})
            before = sim.disk.sync_count
            writer = store.begin()
            for number in range(20):
                await writer.put([key(f"k{number}")], [b"x"])
            await writer.commit()
            assert sim.disk.sync_count - before == 1

    sim.run(main())
