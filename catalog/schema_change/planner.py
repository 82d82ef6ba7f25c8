"""The planner: from targets to stages, by rules.

Each stage makes one step with every target that the rules let go, so that a change of many
elements takes no more versions than one of a single element. Versions come before work. The lock
of a locked table is an element that is *transient*: the first stage clears it, the last version
sets it, and it is set for as long as a backfill runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..descriptors.elements import ForeignKey
from .rules import RULES, Position, way, way_back
from .stages import Move, Stage, Status, VersionStage, WorkStage
from .targets import ConstraintElement, FactsElement, Target


def plan(
    targets: Sequence[Target], *, locked: bool, beside_locked: bool = False
) -> tuple[Stage, ...]:
    """The stages of a change of a table, which is locked or not.

    A table that is dropped in one statement with a locked one has that one's first stage too: its
    job is begun by a version without a change, which may stand beside an unlocking.
    """
    drops = any(isinstance(t.element, FactsElement) and t.element.dropped for t in targets)
    ways = [
        [] if drops and _goes_with_its_table(target) else list(way(target)) for target in targets
    ]
    position = [_start(target) for target in targets]
    stages = _stages(targets, ways, position)
    if drops and (locked or beside_locked):  # there is nothing to lock again
        return _marked([VersionStage(lock=False), *stages])
    return _with_lock(stages, locked)


def _goes_with_its_table(target: Target) -> bool:
    """Whether what goes needs no steps of its own where the table is dropped, which has no later
    version and leaves no data. A foreign key is taken from the table that it refers to."""
    element = target.element
    foreign = isinstance(element, ConstraintElement) and isinstance(element.constraint, ForeignKey)
    return not target.present and not foreign


def plan_rollback(
    targets: Sequence[Target], done: Sequence[Stage], *, locked: bool
) -> tuple[Stage, ...]:
    """The stages that undo those that are done. `locked` says whether the table is to be locked
    in the end; whether it is now follows from what is done."""
    position = [_start(target) for target in targets]
    locked_now = locked
    for stage in done:
        for move in stage.moves:
            position[move.target] = move.to
        if isinstance(stage, VersionStage) and stage.lock is not None:
            locked_now = stage.lock
    ways = [
        list(way_back(target, at)) if target.present else []
        for target, at in zip(targets, position, strict=True)
    ]
    # What was to come goes, and what was to go is still there: the rules are the same.
    turned = [replace(target, present=not target.present) for target in targets]
    stages = _stages(turned, ways, position)
    if not locked:
        # A drop beside a locked table's has done nothing yet but begin its job.
        return _marked(stages) or (VersionStage(lock=False, last=True),)
    if any(isinstance(stage, VersionStage) for stage in stages):
        return _with_lock(stages, True)[not locked_now :]
    return stages if locked_now else (VersionStage(lock=True, last=True), *stages)


def revertible(targets: Sequence[Target], stages: Sequence[Stage], done: int) -> bool:
    """Whether the change can still be undone: nothing is public that was not, or gone. A new name
    of the table stays where the rest is undone."""
    return not any(
        move.to in (Status.PUBLIC, Status.SETTLED, Status.ABSENT)
        or (not targets[move.target].present and move.to is Status.WRITE_ONLY)
        for stage in stages[:done]
        for move in stage.moves
        if not targets[move.target].renames
    )


def _start(target: Target) -> Status:
    return Status.ABSENT if target.present else Status.PUBLIC


def _stages(
    targets: Sequence[Target], ways: list[list[Status]], at: list[Status]
) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    while any(ways):
        moves = _next_moves(targets, ways, at)
        assert moves, (targets, ways, at)
        for move in moves:
            at[move.target] = move.to
            ways[move.target].pop(0)
        if moves[0].to.by_work:
            stages.append(WorkStage(moves=tuple(moves)))
        else:
            stages.append(VersionStage(moves=tuple(moves)))
    return tuple(stages)


def _next_moves(
    targets: Sequence[Target], ways: list[list[Status]], at: list[Status]
) -> list[Move]:
    """As many steps as may be made at once: versions if there are any, else work.

    Data is removed at the very end, when nothing else is left to do.
    """
    next_steps = {place: steps[0] for place, steps in enumerate(ways) if steps}
    for kinds in (_VERSIONS, (Status.READY,), (Status.REMOVED,)):
        moving = {place: to for place, to in next_steps.items() if to in kinds}
        while moving:
            after = [moving.get(place, status) for place, status in enumerate(at)]
            position = Position(targets, at, after)
            refused = [
                place for place in moving if not all(rule.holds(position, place) for rule in RULES)
            ]
            if not refused:
                break
            for place in refused:
                del moving[place]
        if moving:
            return [Move(place, to) for place, to in moving.items()]
    return []


_VERSIONS = tuple(status for status in Status if not status.by_work)


def _with_lock(stages: Sequence[Stage], locked: bool) -> tuple[Stage, ...]:
    if not locked:
        return _marked(stages)
    unlock, lock = VersionStage(lock=False), VersionStage(lock=True)
    found: list[Stage] = [unlock]
    versions = [place for place, stage in enumerate(stages) if isinstance(stage, VersionStage)]
    last = versions[-1] if versions else -1
    for place, stage in enumerate(stages):
        if isinstance(stage, WorkStage) and place < last:
            found += [lock, stage, unlock]
        else:
            found.append(stage)
            if place == last:
                found.append(lock)
    return _marked(found)


def _marked(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Says of the last version that it is the last."""
    marked = list(stages)
    for place in range(len(marked) - 1, -1, -1):
        stage = marked[place]
        if isinstance(stage, VersionStage):
            marked[place] = replace(stage, last=True)
            break
    return tuple(marked)
