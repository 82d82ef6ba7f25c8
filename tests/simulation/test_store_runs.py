"""Stores alone under random load and misfortune: a few hundred short seeds."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tailrace.kvlayer.settings import Settings
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put
from tests.simulation.kv_machine import Machine
from tests.simulation.kv_run import run_store

HAPPENINGS = (
    "abandoned",
    "clock jumps",
    "clock stood still",
    "collections",
    "commits of one who is alone",
    "disk filled",
    "engine stalls",
    "explicit commits",
    "feed ended: range merged",
    "feed ended: range split",
    "feed ended: slow consumer",
    "flushes prolonged",
    "inserts in one step",
    "keys locked",
    "kv_lock_waits_total",
    "kv_transactions_abandoned_total",
    "locks refused",
    "locks skipped",
    "log hung",
    "one-phase commits",
    "merges",
    "names unlocked",
    "protected",
    "range deletions",
    "rangefeed_pushes_total",
    "refused: BatchTimestampBeforeGC",
    "refused: StoreFull",
    "refused: RetryableTransaction",
    "rollbacks",
    "savepoint rollbacks",
    "savepoints released",
    "split or merge in a stall",
    "split or merge on a full disk",
    "splits",
    "statements begun anew",
    "versions collected",
)


@pytest.mark.parametrize("seed", range(1, 201))
def test_store_equals_the_model(seed: int) -> None:
    run_store(seed)


def test_log_outlives_a_flush_that_does_not_cover_it() -> None:
    """What became durable while the engine flushed is in the log alone."""
    sim = Simulation(1)
    machine = Machine(sim)
    settings = {"kv.engine.flush_bytes": "1"}

    async def before() -> None:
        store = await machine.start(Settings(settings))
        machine.prolong_flushes(prolong=True)
        for _ in range(200):
            await put(store, {key("a"): b"." * 1000})
        machine.prolong_flushes(prolong=False)
        await asyncio.sleep(1)
        machine.crash()

    async def after() -> None:
        store = await machine.start(Settings(settings))
        assert len(machine.versions([])) == 200
        await store.close()

    sim.run(before())
    machine.bring_back()
    sim.run(after())


def test_one_seed_is_one_history() -> None:
    assert run_store(11) == run_store(11)


def test_every_misfortune_strikes() -> None:
    """A run in which nothing happens proves nothing."""
    counts: Counter[str] = Counter()
    crashes = 0
    for seed in range(1001, 1061):
        outcome = run_store(seed)
        counts += outcome.counts
        crashes += outcome.crashes
    missing = [name for name in HAPPENINGS if not counts[name]]
    assert not missing, (missing, counts)
    assert crashes > 30
