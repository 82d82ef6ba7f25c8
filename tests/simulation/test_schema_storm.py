"""Schema changes on several nodes, under rows, feeds and misfortune, seed by seed.

`make sim ARGS='--kind schemas'` runs as many seeds as one likes; this is the short form.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.schema_storm import StormOutcome, run_storm

FIRST_SEED = 3000
SEEDS = 12
ROUGH_SEEDS = 4

MISFORTUNES = {
    "crashes of the store",
    "feeds away",
    "flushes refused",
    "schema changes",
    "tables dropped",
    "tables truncated",
    "targets: AddTarget",
    "targets: DropTarget",
    "targets: PAUSE",
    "targets: RESCAN",
    "targets: RESUME",
}
"""What feeds have to bear. Nodes die too, in fewer seeds."""


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_every_row_is_shown_under_its_schema(seed: int) -> None:
    run_storm(seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUGH_SEEDS))
def test_rows_are_shown_whatever_the_clock_says(seed: int) -> None:
    """A clock that jumps, and versions of locked tables that change nothing."""
    assert run_storm(seed, rough=True).misfortunes["clock jumps"] > 0


def test_a_storm_has_everything_in_it() -> None:
    """A run in which nothing happens proves nothing: a dozen have everything, and three may."""
    outcomes: list[StormOutcome] = []
    for seed in range(50046, 50058):
        outcomes.append(run_storm(seed))
        seen = {name for outcome in outcomes for name in outcome.misfortunes}
        if len(outcomes) >= 3 and seen >= MISFORTUNES and any(each.crashes for each in outcomes):
            break
    assert sum(outcome.changes for outcome in outcomes) > 10
    assert sum(outcome.commits for outcome in outcomes) > 30
    assert sum(outcome.shown for outcome in outcomes) > 50
    assert sum(outcome.crashes for outcome in outcomes) > 0
    assert sum(outcome.reads for outcome in outcomes) > 0
    assert sum(outcome.pauses for outcome in outcomes) > 0
    assert sum(outcome.alterations for outcome in outcomes) > 10
    assert seen >= MISFORTUNES, MISFORTUNES - seen
    assert sum(outcome.transactions for outcome in outcomes) > 50
    assert sum(outcome.mirrored for outcome in outcomes) > 20


def test_a_seed_is_one_run_wherever_it_is_run() -> None:
    """In another process, in which strings hash otherwise and nothing has run before."""
    seed = FIRST_SEED + 3
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.simulation.schema_storm import run_storm;"
            f"print(run_storm({seed}).fingerprint)",
        ],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == run_storm(seed).fingerprint
