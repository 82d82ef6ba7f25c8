"""What a fuzzer sends ends its own connection at most. `make fuzz` is the long form."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path

import pytest

from .siege import STATES, siege

MESSAGES = 500


@pytest.mark.parametrize(
    ("door", "state"),
    [(door, state) for door, states in STATES.items() for state in states],
    ids=lambda value: value.value if isinstance(value, Enum) else value,
)
def test_damaged_messages_reach_nobody_else(door: str, state: Enum, tmp_path: Path) -> None:
    asyncio.run(siege(door, state, folder=tmp_path / "data", seed=1, messages=MESSAGES))
