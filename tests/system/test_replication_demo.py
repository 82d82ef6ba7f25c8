"""The demo of replication, with shorter waits: nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from tailrace.api.demo.raw.run import run_replication_demo

pytestmark = pytest.mark.system


def test_nothing_acknowledged_is_lost_whatever_is_killed(tmp_path: Path) -> None:
    console = Console(record=True, width=200)
    outcome = asyncio.run(
        run_replication_demo(
            tmp_path / "demo", console, cut_seconds=1.0, load_seconds=1.0, clients=4, seed=3
        )
    )
    assert outcome.differences == 0, console.export_text()
    assert outcome.writes > 100
