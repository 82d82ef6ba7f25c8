"""Garbage collection takes a deletion with the row, and a transaction may be older than both."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.errors import WriteConflict
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.transaction_modes import Isolation
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store, unbuffered

A, B = key("a"), key("b")


@pytest.mark.parametrize("isolation", [Isolation.SERIALIZABLE, Isolation.REPEATABLE_READ])
def test_nothing_is_written_below_a_deletion_that_was_collected(isolation: Isolation) -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await put(store, {A: b"old"})
            writer = store.begin(isolation=isolation)
            await writer.put([B], [b"mine"])
            _, deleted = await store.one_phase(lambda evaluation: evaluation.delete([A]))
            await store.collect_garbage(table_span(7), deleted)
            if isolation is not Isolation.SERIALIZABLE:
                with pytest.raises(WriteConflict):
                    await writer.put([A], [b"mine"])
                await writer.rollback()
                return
            await writer.put([A], [b"mine"])
            assert await writer.commit() > deleted

    sim.run(main())
