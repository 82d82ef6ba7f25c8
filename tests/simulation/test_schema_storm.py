"""Schema changes on several nodes, under rows, feeds and misfortune, seed by seed."""

from __future__ import annotations

import pytest

from tests.simulation.schema_storm import run_storm

SEEDS = 24


@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
def test_every_row_is_shown_under_its_schema(seed: int) -> None:
    run_storm(seed)


def test_a_storm_has_everything_in_it() -> None:
    """A run in which nothing happens proves nothing."""
    outcomes = [run_storm(seed) for seed in (5, 7, 11)]
    assert sum(outcome.changes for outcome in outcomes) > 10
    assert sum(outcome.commits for outcome in outcomes) > 30
    assert sum(outcome.shown for outcome in outcomes) > 50
    assert sum(outcome.crashes for outcome in outcomes) > 0
    assert sum(outcome.reads for outcome in outcomes) > 0
