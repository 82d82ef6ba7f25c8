"""New rows in one step of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tailrace.kvlayer.errors import RetryableTransaction
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.transaction_modes import Isolation
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

A, B = key("a"), key("b")


@pytest.fixture(autouse=True)
def buffer_bytes() -> Iterator[None]:
    """Transactions that write intents from the first on have no such step: the last case alone."""
    yield


async def value(store: Store, where: bytes) -> bytes | None:
    return (await store.begin(read_only=True).get_each((where,)))[0]


def test_new_keys_are_read_locked_and_written() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            assert await writer.insert([A, B], [b"1", b"2"])
            assert store._ranges.locks.holder(A) is writer._record
            assert await writer.get(A) == b"1"
            await writer.commit()
            assert await value(store, B) == b"2"

    sim.run(main())


@pytest.mark.parametrize("isolation", Isolation)
def test_nothing_is_done_where_a_key_has_a_value(isolation: Isolation) -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            await put(store, {A: b"old"})
            writer = store.begin(isolation=isolation)
            assert not await writer.insert([B, A], [b"1", b"2"])
            assert store._ranges.locks.holder(B) is None
            assert not writer._record.buffer and not writer._record.read_spans
            assert writer.write_count == 0
            await writer.rollback()

    sim.run(main())


def test_nothing_is_done_where_somebody_is_in_the_way() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with running_store(sim) as store:
            late, first, second = store.begin(), store.begin(), store.begin()
            await first.put([A], [b"1"])
            assert not await second.insert([A], [b"2"])
            await first.delete([A])
            await first.commit()
            assert not await late.insert([A], [b"2"]), "its deletion is newer than what late reads"
            await second.rollback()
            await late.rollback()

    sim.run(main())


def test_own_values_are_there() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            writer = store.begin()
            await writer.put([A], [b"1"])
            assert not await writer.insert([A], [b"2"]), "an intent"
            await writer.rollback()
        async with running_store(sim) as store:
            writer = store.begin()
            await writer.put([A], [b"1"])
            assert not await writer.insert([A], [b"2"]), "buffered"
            await writer.rollback()

    sim.run(main())


def test_what_was_absent_is_a_read_after_a_savepoint_undid_the_write() -> None:
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            mark = await writer.savepoint()
            assert await writer.insert([A], [b"1"])
            await writer.rollback_to(mark)
            await put(store, {A: b"other"})
            await writer.put([B], [b"2"])
            blocking = store.begin()
            await blocking.get(B)  # moves the writer above the other's write
            with pytest.raises(RetryableTransaction):
                await writer.commit()
            await asyncio.sleep(0)

    sim.run(main())
