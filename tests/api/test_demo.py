"""What README.md promises of `make demo`: what it says before it begins, and when it has ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from tailrace.api.demo.report import print_next, print_plan


def test_the_demo_says_what_it_will_do_and_how_long_it_takes() -> None:
    console = Console(record=True, width=200)
    print_plan(console, commits=1200, rate=60)
    said = console.export_text()
    assert "1,200 commits" in said and "about 50 s" in said and "Nothing is downloaded" in said


@pytest.mark.parametrize("folder", [Path("kept"), None])
def test_the_demo_says_what_to_try_next(folder: Path | None) -> None:
    console = Console(record=True, width=40)  # commands are lines of their own all the same
    print_next(console, folder)
    said = console.export_text()
    assert f"  tailrace serve {folder or './data'} --insecure" in said
    assert ("demo --folder" in said) is (folder is None)
