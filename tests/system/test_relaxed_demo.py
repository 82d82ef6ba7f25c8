"""`tailrace demo --relaxed` of docs/relaxed.md: the crash store mirrored while it is written."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from tailrace.api.demo.crashes import run
from tailrace.api.demo.crashes.run import run_crash_demo

pytestmark = pytest.mark.system


def test_every_state_of_the_mirror_existed(tmp_path: Path) -> None:
    console = Console(record=True)
    outcome = asyncio.run(run_crash_demo(tmp_path / "data", console, seconds=6))
    told = console.export_text()
    assert "is killed" in told and "Every one of them existed" in told
    assert (outcome.unknown_states, outcome.ends_that_differ) == (0, 0)
    assert outcome.progress.snapshots >= 2, "one at the beginning, one behind the death"
    assert 5 < outcome.states <= outcome.recorded


def test_mirror_that_shows_what_never_was_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo can fail: without what the store recorded, no state is known to have existed."""
    monkeypatch.setattr(run, "read_cuts", lambda folder: {})
    console = Console(record=True)
    outcome = asyncio.run(run_crash_demo(tmp_path / "data", console, seconds=1))
    assert outcome.unknown_states == outcome.states == outcome.differences > 0
    assert "never existed" in console.export_text()
