"""Doors onto nodes in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.http_door import HttpDoor


@pytest.fixture
def door() -> Iterator[HttpDoor]:
    with HttpDoor() as opened:
        yield opened
