"""Each test of this folder runs with the files in its own process, and in a worker."""

from __future__ import annotations

import pytest

from tests.harness.mirrors import Mirrors


@pytest.fixture(params=["here", "apart"], autouse=True)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where mirror files are."""
    monkeypatch.setattr(Mirrors, "apart", request.param == "apart")
    return str(request.param)
