"""A scan behind a large commit waits for its rows to be versions, as long as they become some."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.txn import Transaction, reading
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, release_log, running_store

SPAN = table_span(7)
ROWS = 50_000


@pytest.fixture(autouse=True)
def few_intents_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "ENDED_INTENTS_MAX", 600)


async def written(transaction: Transaction) -> None:
    for start in range(0, ROWS, 500):
        keys = [key(f"{number:05}") for number in range(start, start + 500)]
        await transaction.put(keys, [b"v"] * 500)


def test_a_scan_waits_for_rows_that_are_about_to_be_versions() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await written(writer)
            await writer.commit()
            assert len(writer._record.intents) > 600, "they follow behind the commit"
            slices = store.snapshot(await store.now()).scan_slices(SPAN)
            first = await anext(slices)
            assert len(writer._record.intents) <= 600
            rest = [row async for rows in slices for row in rows]
            assert len(first) + len(rest) == ROWS

    sim.run(main())


def test_a_scan_goes_on_where_nothing_moves() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            await written(writer)
            at = await store.now()
            await writer.rollback()
            hold_log(store)
            slices = store.snapshot(at).scan_slices(SPAN)
            reading_ = asyncio.ensure_future(anext(slices, None))
            await asyncio.sleep(5)
            assert not reading_.done(), "what was read is not durable"
            assert len(writer._record.intents) > 600, "nor are they gone"
            release_log(store)
            assert await reading_ is None

    sim.run(main())
