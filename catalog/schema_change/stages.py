"""Stages: the steps of a schema change, each of which happens wholly or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The status of an element. Members are in the order of an element that is added."""

    ABSENT = "absent"
    DELETE_ONLY = "delete-only"
    WRITE_ONLY = "write-only"
    READY = "backfilled and validated"  # by work, not by a version
    PUBLIC = "public"
    SETTLED = "settled"  # public, and what it replaced is no longer written
    REMOVED = "data removed"  # by work: of an absent element, or of what a settled one replaced

    @property
    def by_work(self) -> bool:
        return self in (Status.READY, Status.REMOVED)


@dataclass(frozen=True, slots=True)
class Move:
    """An element, by its place among the targets, goes to a status."""

    target: int
    to: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionStage:
    """One version of the descriptor. A stage with `lock` sets or clears the lock, and moves
    nothing."""

    moves: tuple[Move, ...] = ()
    lock: bool | None = None
    last: bool = False  # of its change: the table is free for the next one

    def __post_init__(self) -> None:
        assert self.lock is None or not self.moves, self
        assert self.lock is not None or self.moves, self


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStage:
    """Backfills, validations, removals."""

    moves: tuple[Move, ...]


Stage = VersionStage | WorkStage
