"""Stores alone under random load and misfortune: a few hundred short seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.kv_run import run_store

HAPPENINGS = (
    "abandoned",
    "clock jumps",
    "collections",
    "disk filled",
    "engine stalls",
    "explicit commits",
    "feed ended: range merged",
    "feed ended: range split",
    "feed ended: slow consumer",
    "kv_lock_waits_total",
    "kv_transactions_abandoned_total",
    "log hung",
    "one-phase commits",
    "merges",
    "protected",
    "range deletions",
    "rangefeed_pushes_total",
    "refused: BatchTimestampBeforeGC",
    "refused: LogFull",
    "refused: RetryableTransaction",
    "rollbacks",
    "savepoint rollbacks",
    "splits",
    "versions collected",
)


@pytest.mark.parametrize("seed", range(1, 201))
def test_store_equals_the_model(seed: int) -> None:
    run_store(seed)


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
