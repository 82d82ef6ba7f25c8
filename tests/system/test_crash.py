"""kill -9 of a real server. `python -m tests.system.crash` does more of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.crash import crash_at_moments

pytestmark = pytest.mark.system


def test_nothing_acknowledged_is_lost_by_kill(tmp_path: Path) -> None:
    crash_at_moments(tmp_path / "data", moments=3, seed=20)
