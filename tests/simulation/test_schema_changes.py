"""Schema changes that are stopped and canceled at any stage leave no trace but what they say."""

from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation
from tests.simulation.schema_changes import run, run_beside_a_writer


@pytest.mark.parametrize("seed", range(6))
def test_schema_changes_happen_wholly_or_not_at_all(seed: int) -> None:
    sim = Simulation(seed)
    sim.run(run(sim, seed))


@pytest.mark.parametrize("seed", range(3))
def test_backfills_lose_no_write(seed: int) -> None:
    sim = Simulation(seed)
    sim.run(run_beside_a_writer(sim, seed))
