"""The pace of checkpoints of feeds without other work: those of all feeds of a node cost a bounded
share.

A checkpoint without rows costs the same whether one feed makes it or another: the range feed wakes
the pipeline, the sink commits its progress, and each so often the job's row follows.

    idle feeds    10      50     200
    seconds      0.2     1.0     4.0     between the checkpoints of each

Below the default of `changefeed.contract.options` the period does not fall, so up to ten feeds keep
it. A feed leaves the idle ones with its next row, and whoever waits for a timestamp is served at
once.
"""

from __future__ import annotations

CHECKPOINT_CPU_SECONDS = 0.002
"""Processor time of one checkpoint in all threads: 1.4 ms of DuckDB's UPDATE and COMMIT, the rest
the loop's."""

IDLE_SHARE = 0.1
"""The share of one core that all idle feeds of a node may use together."""


class IdlePace:
    """Counts the idle feeds of a node."""

    def __init__(self) -> None:
        self._count = 0

    @property
    def seconds(self) -> float:
        """The period at which their checkpoints use their share."""
        return self._count * CHECKPOINT_CPU_SECONDS / IDLE_SHARE

    def enter(self) -> None:
        """Notes one more idle feed."""
        self._count += 1

    def leave(self) -> None:
        """A feed has work, or has ended."""
        assert self._count > 0, "nobody is idle"
        self._count -= 1
