"""Looking for many keys at once."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.keys import index_prefix
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn.existing import READ_MAX
from tests.harness.simulation import Simulation
from tests.harness.stores import open_store

KEYS = [index_prefix(100, 1) + b"%04d" % number for number in range(0, 600, 2)]


async def _put(store: Store, *keys: bytes) -> None:
    await store.one_phase(lambda evaluation: evaluation.put(keys, [b"x"] * len(keys)))


def test_existing_keys_are_found_wherever_they_stand() -> None:
    async def run() -> None:
        store = await open_store(sim)
        for taken in (KEYS[0], KEYS[150], KEYS[-1], KEYS[255], KEYS[256]):
            transaction = store.begin()
            assert await transaction.first_existing(KEYS) is None
            await transaction.rollback()
            await _put(store, taken, index_prefix(100, 1) + b"0001", index_prefix(100, 1) + b"u")
            transaction = store.begin()
            assert await transaction.first_existing(KEYS) == KEYS.index(taken)
            await transaction.delete([taken])
            assert await transaction.first_existing(KEYS) is None
            await transaction.put([taken], [b"own"])
            assert await transaction.first_existing(KEYS) == KEYS.index(taken)
            await transaction.delete([taken])
            await transaction.commit()
        await store.close()

    sim = Simulation(1)
    sim.run(run())


def test_a_step_reads_few_of_the_keys_that_had_rows() -> None:
    async def run() -> None:
        store = await open_store(sim)
        await _put(store, *KEYS[:128])
        await store.one_phase(lambda evaluation: evaluation.delete(KEYS[:128]))
        transaction, turns = store.begin(), 0
        looking = asyncio.create_task(transaction.first_existing(KEYS[:128]))
        while not looking.done():
            await asyncio.sleep(0)
            turns += 1
        assert await looking is None
        assert turns >= 128 // READ_MAX
        await transaction.rollback()
        await store.close()

    sim = Simulation(1)
    sim.run(run())
