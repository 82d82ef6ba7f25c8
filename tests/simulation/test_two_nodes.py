"""The two-version invariant under everything that can happen to two nodes."""

from __future__ import annotations

import pytest

from tests.simulation.two_nodes import run_two_nodes


@pytest.mark.parametrize("seed", range(1, 9))
def test_no_claim_outlives_the_version_after_next(seed: int) -> None:
    outcome = run_two_nodes(seed)
    assert outcome.versions > 3
    assert outcome.refusals > 0
    assert outcome.leases > 0
