"""The states of a target."""

from __future__ import annotations

from enum import Enum


class TargetState(Enum):
    """The states of a target of a feed. The value is the word of SHOW CHANGEFEED JOBS."""

    SCANNING = "scanning"  # its rows as of its start are shown
    CATCHING_UP = "catching up"  # it follows its changes, and is behind the feed's other targets
    BACKFILLING = "backfilling"  # its rows as of a schema change are shown, beside the live ones
    RUNNING = "running"  # it follows its changes, and counts for what the feed resolves
    PAUSED = "paused"  # by ALTER CHANGEFEED, until it is resumed
    FAILED = "failed"  # by an error that is its own; the others go on
    DROPPED = "dropped"  # its table was dropped, and the feed went on without it

    @property
    def followed(self) -> bool:
        """Whether the feed reads the target at present."""
        return self not in _LEFT

    @property
    def final(self) -> bool:
        """Whether the target will never be read again."""
        return self is TargetState.DROPPED


_LEFT = frozenset((TargetState.PAUSED, TargetState.FAILED, TargetState.DROPPED))
