"""What is still read stays in the log, within a bound."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.log import CommandLog, LogTruncated
from tests.harness.simulation import Simulation

SEGMENT = 4096
ENTRY = b"e" * 1000


async def filled(sim: Simulation, entries: int) -> CommandLog:
    """A log of small segments, each of a few durable entries."""
    log = await CommandLog.open(
        sim.disk, sim.offload, flushed_index=0, on_failure=_fail, segment_bytes=SEGMENT
    )
    for _ in range(entries):
        await log.wait_durable(log.append(ENTRY))
    return log


def _fail(error: BaseException) -> None:
    raise AssertionError(error)


def test_retained_entries_survive_truncation() -> None:
    async def run() -> None:
        log = await filled(sim, 20)
        held = log.retain(5)
        await log.truncate(20, retained_bytes_max=1_000_000)
        assert log.first_retained_index <= 5
        assert [index for index, _ in log.read(5, 8)] == [5, 6, 7, 8]
        held.advance(12)
        await log.truncate(20, retained_bytes_max=1_000_000)
        assert 5 < log.first_retained_index <= 12
        held.release()
        await log.truncate(20, retained_bytes_max=1_000_000)
        assert log.first_retained_index > 12
        await log.close()

    sim = Simulation(1)
    sim.run(run())


def test_too_much_retained_revokes_the_oldest() -> None:
    async def run() -> None:
        log = await filled(sim, 30)
        oldest, newest = log.retain(2), log.retain(24)
        await log.truncate(30, retained_bytes_max=3 * SEGMENT)
        assert oldest.revoked
        assert not newest.revoked
        with pytest.raises(LogTruncated):
            list(log.read(2, 3))
        assert [index for index, _ in log.read(24, 25)] == [24, 25]
        await log.close()

    sim = Simulation(2)
    sim.run(run())
