"""What a fuzzer sends ends its own connection at most. `make fuzz` is the long form."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.pgwire.fuzz import run


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_messages_reach_nobody_else(seed: int) -> None:
    asyncio.run(run(seed, 3000))
