"""TRANSFER between two real servers, and kill -9. `make transfers` does more of it: at random
moments, and with `ARGS=--steps` before and behind each of the steps of both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.transfers import STEPS, transfer_at_moments, transfer_at_steps

pytestmark = pytest.mark.system


def test_one_server_leads_whoever_is_killed(tmp_path: Path) -> None:
    transfer_at_moments(tmp_path, moments=1, seed=1)


def test_a_step_may_be_the_last(tmp_path: Path) -> None:
    """Four of the twelve moments before and behind the steps of both sides."""
    assert len(STEPS) == 12
    transfer_at_steps(tmp_path, STEPS[:4])
