"""Whole stacks under random load and misfortune, seed by seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.random_run import run_seed


@pytest.mark.parametrize("seed", range(1, 19))
def test_mirror_equals_the_model(seed: int, tmp_path: Path) -> None:
    outcome = run_seed(seed, tmp_path)
    assert outcome.commits > 0
    assert outcome.crashes > 0


@pytest.mark.parametrize("seed", [4, 7], ids=["here", "apart"])
def test_one_seed_is_one_history(seed: int, tmp_path: Path) -> None:
    first = run_seed(seed, tmp_path / "first")
    assert run_seed(seed, tmp_path / "second") == first
    assert first.fast_answers > 0
    assert first.versions > 1
