"""Schema changes on several nodes, under rows, feeds and misfortune, seed by seed.

`make sim ARGS='--kind schemas'` runs as many seeds as one likes; this is the short form.
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.simulation.schema_storm import run_storm

FIRST_SEED = 3000
SEEDS = 12


def test_every_row_is_shown_under_its_schema() -> None:
    """In a process of its own, where strings hash alike each time: a run may depend on that."""
    command = [sys.executable, "-m", "tests.simulation", "--kind", "schemas"]
    ran = subprocess.run(
        [*command, "--seed", str(FIRST_SEED), "--seeds", str(SEEDS)],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{SEEDS} seeds ran" in ran.stdout


def test_a_storm_has_everything_in_it() -> None:
    """A run in which nothing happens proves nothing."""
    outcomes = [run_storm(seed) for seed in (5, 7, 11)]
    assert sum(outcome.changes for outcome in outcomes) > 10
    assert sum(outcome.commits for outcome in outcomes) > 30
    assert sum(outcome.shown for outcome in outcomes) > 50
    assert sum(outcome.crashes for outcome in outcomes) > 0
    assert sum(outcome.reads for outcome in outcomes) > 0
