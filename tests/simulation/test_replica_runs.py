"""A replica under random load and misfortune: some dozen short seeds."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests.simulation.replica_run import run_replica

HAPPENINGS = (
    "checkpoints",
    "collections",
    "cut anew",
    "cuts",
    "known entries",
    "late requests",
    "main died",
    "progress with entries",
    "promotions",
    "recovery died",
    "reshaped",
    "settled",
    "stale epochs",
    "unanswered",
    "writes",
)

run_once = cache(run_replica)


@pytest.mark.parametrize("seed", range(1, 25))
def test_a_replica_equals_the_model_at_every_checkpoint(seed: int) -> None:
    run_once(seed)


def test_everything_happens_in_some_run() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, 25):
        counts += run_once(seed)
    assert [name for name in HAPPENINGS if not counts[name]] == []
