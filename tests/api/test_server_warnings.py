"""Warnings in the log of a server that starts."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
from pathlib import Path

import pytest

from tailrace.api.cli.serve import check_memory, start_warnings
from tailrace.api.node import Node
from tailrace.api.refusal import NodeRefused
from tailrace.api.tls import invalid_now
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.files.data_folder import ClockBoundFile
from tailrace.kvlayer.files.disk import RealDisk
from tailrace.kvlayer.process.memory import MemoryLimit
from tests.harness.certificates import certificate


@pytest.mark.parametrize(
    ("year", "told"),
    [
        (2019, "is not valid before 2020-01-01 00:00:00 UTC"),
        (2050, None),
        (2091, "has expired at 2090-01-01 00:00:00 UTC"),
    ],
)
def test_certificate_that_is_not_valid(tmp_path: Path, year: int, told: str | None) -> None:
    cert, _ = certificate(tmp_path)
    found = invalid_now(cert, dt.datetime(year, 1, 2, tzinfo=dt.UTC))
    assert found is None if told is None else told in (found or "")


def test_store_that_is_far_ahead_of_the_machines_clock(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    async def warnings() -> list[str]:
        node = await Node.open(folder)
        try:
            return list(start_warnings(node, None))
        finally:
            await node.close()

    assert asyncio.run(warnings()) == []
    bounds = ClockBoundFile(RealDisk(folder), str(folder))
    bounds.save(Timestamp(bounds.load() + duration(seconds=86_400)))
    (warning,) = asyncio.run(warnings())
    assert "seconds ahead of the machine's clock" in warning


def test_a_server_with_too_little_memory_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(NodeRefused, match=r"needs 320 MiB of memory, .* 128 MiB .*by a test"):
        check_memory(MemoryLimit(128 << 20, "by a test"))
    with caplog.at_level(logging.INFO):
        check_memory(MemoryLimit(384 << 20, "by a test"))
    assert caplog.messages == ["may use 384 MiB of memory (by a test)"]
