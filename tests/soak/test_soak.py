"""The soak's short form: nobody's error, and every mirror exact. `make soak` is the long one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from .soak import soak

SECONDS = 40.0
STRETCH_SECONDS = 20.0


@pytest.mark.system
def test_good_clients_hear_no_error_beside_abusers(tmp_path: Path) -> None:
    found = asyncio.run(soak(tmp_path, seconds=SECONDS, stretch_seconds=STRETCH_SECONDS))
    print(f"{found.slower:.1f} times slower beside abusers")
    assert found.errors == []
