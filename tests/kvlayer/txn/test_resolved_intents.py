"""A reader asks the engine for intents where they may be, not where they have been resolved."""

from __future__ import annotations

import asyncio
from random import Random

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


def test_intents_lie_in_the_runs_that_are_left() -> None:
    record = noted(KEYS[4:], KEYS[2:4], KEYS[:2])
    record.intents.drop_first(KEYS[4:])
    assert record.intents.held_in(TABLE) == Span(KEYS[0], KEYS[3] + b"\x00")
    record.intents.drop_first(KEYS[2:3])
    assert record.intents.held_in(TABLE) == Span(KEYS[0], KEYS[3] + b"\x00"), "a run counts whole"
    record.intents.drop_first(KEYS[3:4])
    assert record.intents.held_in(TABLE) == Span(KEYS[0], KEYS[1] + b"\x00")
    assert record.intents.held_in(Span(KEYS[2], KEYS[4])) is None


@pytest.mark.parametrize("seed", range(20))
def test_no_intent_lies_outside_of_its_bounds(seed: int) -> None:
    """Whatever is written, resolved and undone."""
    random = Random(seed)
    record, runs = noted(), list[list[bytes]]()
    for sequence in range(200):
        match random.choice(("write", "write", "resolve", "undo")):
            case "write":
                keys = [key(f"{random.random()}") for _ in range(random.randint(1, 5))]
                record.intents.append(sequence, keys)
                runs.append(keys)
            case "resolve" if runs:
                record.intents.drop_first(runs.pop(0))
            case "undo" if runs:
                record.intents.drop_last(runs.pop())
        left = [each for run in runs for each in run]
        held = record.intents.held_in(TABLE)
        assert list(record.intents) == left
        assert all(held is not None and held.contains(each) for each in left)
    record.intents.append(sequence, [KEYS[0]])
    least, greatest = min([KEYS[0], *left]), max([KEYS[0], *left])
    assert record.intents.held_in(TABLE) == Span(least, greatest + b"\x00")


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
