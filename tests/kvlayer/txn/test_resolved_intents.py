"""A reader asks the engine for intents where they may be, not where they have been resolved."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.txn import resolution
from tailrace.kvlayer.txn.record import TransactionRecord
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, put, release_log, running_store, unbuffered

TABLE = table_span(7)
KEYS = [key(letter) for letter in "bcdefgh"]


def noted(*written: list[bytes]) -> TransactionRecord:
    """A transaction with intents that were written so."""
    record = TransactionRecord(bytes(16), Timestamp(1), heartbeat_at=0.0)
    for keys in written:
        record.intents.append(1, keys)
    return record


def test_intents_in_order_lie_behind_those_that_are_resolved() -> None:
    record = noted(KEYS[:3], KEYS[3:])
    record.intents.drop_first(KEYS[:4])
    assert record.intents.held_in(TABLE) == Span(KEYS[4], KEYS[-1] + b"\x00")
    assert record.intents.held_in(Span(KEYS[0], KEYS[3])) is None


@pytest.mark.parametrize("written", [(KEYS[3:], KEYS[:3]), (KEYS[::-1],), (KEYS[1:], KEYS[:1])])
def test_others_lie_anywhere_between_the_least_and_the_greatest(
    written: tuple[list[bytes], ...],
) -> None:
    record = noted(*written)
    record.intents.drop_first(written[0][:1])
    assert record.intents.held_in(TABLE) == Span(KEYS[0], KEYS[-1] + b"\x00")


@pytest.mark.parametrize("keys", [KEYS, KEYS[::-1]])
def test_a_reader_finds_what_is_not_resolved_yet(
    keys: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "COMMAND_ROWS_MAX", 1)
    sim = Simulation(5)

    async def main() -> None:
        async with running_store(sim) as store:
            writer = store.begin()
            for each in keys:
                await writer.put([each], [b"new"])
            hold_log(store)
            committing = asyncio.create_task(writer.commit())
            await asyncio.sleep(0.001)
            release_log(store)
            await committing
            for _ in range(len(keys)):
                reader = store.begin()
                assert await reader.scan(TABLE) == [(each, b"new") for each in KEYS]
                await reader.rollback()
                await asyncio.sleep(0)

    sim.run(main())


@pytest.mark.parametrize("commits", [True, False])
def test_a_reader_waits_for_the_decision_and_not_for_the_resolution(
    commits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolution, "COMMAND_ROWS_MAX", 1)
    sim, keys = Simulation(6), [key(f"{number:03}") for number in range(100)]

    async def main() -> None:
        async with running_store(sim, settings=unbuffered()) as store:
            await put(store, dict.fromkeys(keys, b"old"))
            writer = store.begin()
            await writer.put(keys, [b"new"] * len(keys))
            late = store.begin(read_only=True)
            reads = [asyncio.create_task(late.get(each)) for each in keys]
            await asyncio.sleep(0.1)
            assert not any(read.done() for read in reads)
            await (writer.commit() if commits else writer.rollback())
            await asyncio.wait(reads)
            assert store._ranges.locks.intents, (
                "all intents are resolved: the readers may have waited"
            )
            assert {await read for read in reads} == {b"new" if commits else b"old"}

    sim.run(main())
