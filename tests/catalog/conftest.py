from __future__ import annotations

import pytest

from tests.harness.simulation import Simulation


@pytest.fixture
def sim() -> Simulation:
    """A simulated machine."""
    return Simulation(seed=7)
