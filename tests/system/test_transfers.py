"""TRANSFER between two real servers, and kill -9. `make transfers` does more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.transfers import transfer_at_moments

pytestmark = pytest.mark.system


def test_one_server_leads_whoever_is_killed(tmp_path: Path) -> None:
    transfer_at_moments(tmp_path, moments=1, seed=1)
