"""The stages of a schema change in words, for SHOW JOBS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .payload import SchemaChange, SchemaChangeProgress
from .planner import plan_rollback
from .stages import Stage, VersionStage
from .targets import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStatus:
    """`stage` of `stage_count` is under way, counted from one; `doing` is what it does.

    `stage_count` is 0 and `doing` empty of a change that is over. A change that is being undone has
    other stages. `row_count` are rows that the backfill or validation at hand has seen to.
    """

    stage: int
    stage_count: int
    doing: str
    undoing: bool
    row_count: int

    def __str__(self) -> str:
        if not self.stage_count:
            return "done"
        undoing = "undoing, " if self.undoing else ""
        rows = f" ({self.row_count:,} rows)" if self.row_count else ""
        return f"{undoing}stage {self.stage} of {self.stage_count}: {self.doing}{rows}"


def status_of(change: SchemaChange, progress: SchemaChangeProgress) -> ChangeStatus:
    targets, stages, done = change.targets, change.stages(), progress.stage
    undoing = progress.failure is not None
    if undoing:
        stages = plan_rollback(targets, stages[: progress.stage], locked=change.locked)
        done = progress.undone
    over = done >= len(stages)
    return ChangeStatus(
        stage=0 if over else done + 1,
        stage_count=0 if over else len(stages),
        doing="" if over else describe_stage(targets, stages[done]),
        undoing=undoing,
        row_count=progress.row_count,
    )


def describe_stage(targets: Sequence[Target], stage: Stage) -> str:
    """The text of a stage: `version: column w -> public`."""
    if isinstance(stage, VersionStage) and stage.lock is not None:
        return "lock the table" if stage.lock else "unlock the table"
    parts = [f"{targets[move.target].label} -> {move.to.value}" for move in stage.moves]
    kind = "version" if isinstance(stage, VersionStage) else "work"
    return f"{kind}: {'; '.join(parts)}"
