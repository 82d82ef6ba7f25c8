"""Which change was each published step? A search, because several may have asked for the same.

    asked     A: ADD c5, DROP c4 (refused)      B: DROP c4 (in doubt)
    seen      c4 is gone                        so it was B: half of A is never done

Each step is read as some part of one change, begun before it and not yet answered, or as the
undoing of one; at the end every change has to be accounted for. The first reading of the whole
history that accounts for all is taken. There is none where the store did what nobody asked for, did
half of what somebody asked for, or lost what it had acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tailrace.kvlayer.clock import MAX_TIMESTAMP, ZERO
from tests.simulation.schema_steps import (
    Change,
    Era,
    Outcome,
    Schema,
    SeenStep,
    Step,
    Truncate,
)

READINGS_MAX = 100_000
"""Of one history. A right one is found within a few dozens; only a wrong one is searched whole."""

_LIKELIEST_FIRST = (Outcome.DONE, Outcome.IN_DOUBT, Outcome.REFUSED)


@dataclass(frozen=True, slots=True)
class Explanation:
    """`applied` are each change's steps that were done and not undone."""

    eras: list[Era]
    applied: list[tuple[Step, ...]]


def explain(table: str, changes: Sequence[Change], seen: Sequence[SeenStep]) -> Explanation:
    """Raises AssertionError where there is none."""
    search = _Search(table, changes, seen)
    found = search.read_on(_Reading((Era(ZERO, Schema(), ()),), ()))
    assert found is not None, search.complaint
    applied = [tuple(s for owner, s in found.standing if owner == n) for n in range(len(changes))]
    return Explanation(list(found.eras), applied)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the steps up to here were. `standing` are those in force, with their change's place."""

    eras: tuple[Era, ...]
    standing: tuple[tuple[int, Step], ...]

    @property
    def schema(self) -> Schema:
        return self.eras[-1].schema


class _Search:
    def __init__(self, table: str, changes: Sequence[Change], seen: Sequence[SeenStep]) -> None:
        self._table = table
        self._changes = changes
        self._seen = seen
        self._likeliest = sorted(
            range(len(changes)), key=lambda place: _LIKELIEST_FIRST.index(changes[place].outcome)
        )
        self._readings = 0
        self._deepest = -1
        self.complaint = ""

    def read_on(self, reading: _Reading) -> _Reading | None:
        """The reading to its end, if it has a good one."""
        place = len(reading.eras) - 1
        if place == len(self._seen):
            complaint = self._unaccounted(reading)
            if complaint is not None:
                self._complain(place, complaint)
            return reading if complaint is None else None
        step = self._seen[place]
        for further in self._ways(reading, step):
            self._readings += 1
            assert self._readings < READINGS_MAX, f"too many readings: {self.complaint}"
            found = self.read_on(further)
            if found is not None:
                return found
        self._complain(place, f"nobody asked for {step}, {reading.schema} before")
        return None

    def _complain(self, place: int, complaint: str) -> None:
        """The reading that came furthest says best what is wrong."""
        if place > self._deepest:
            self._deepest = place
            self.complaint = f"{self._table}: {complaint}; {self._changes}"

    def _ways(self, reading: _Reading, seen: SeenStep) -> Iterator[_Reading]:
        for owner in self._likeliest:
            change = self._changes[owner]
            if change.begun_at < seen.at < change.ended_at:
                yield from self._done(reading, seen, owner)
        for owner in self._likeliest:
            if self._changes[owner].outcome is not Outcome.DONE:
                yield from self._undone(reading, seen, owner)

    def _done(self, reading: _Reading, seen: SeenStep, owner: int) -> Iterator[_Reading]:
        """The change did all of what was left of it, or one step."""
        standing = [step for place, step in reading.standing if place == owner]
        left = [step for step in self._changes[owner].steps if step not in standing]
        for steps in ([left] if len(left) > 1 else []) + [[step] for step in left]:
            schema = _behind(reading.schema, steps, seen)
            if schema is not None:
                yield _Reading(
                    (*reading.eras, Era(seen.at, schema, tuple(steps))),
                    (*reading.standing, *((owner, step) for step in steps)),
                )

    def _undone(self, reading: _Reading, seen: SeenStep, owner: int) -> Iterator[_Reading]:
        """What the change had done was undone: a column that comes back is where it was."""
        others = tuple((place, step) for place, step in reading.standing if place != owner)
        if len(others) == len(reading.standing):
            return
        schema = Schema()
        for _, step in others:
            schema = step.on(schema) or schema
        if schema.key != seen.shape.key or set(schema.shape.columns) != set(seen.shape.columns):
            return
        order = [name for name, _ in seen.shape.columns[3:]]
        columns = sorted(schema.columns, key=lambda column: order.index(column.name))
        back = replace(schema, columns=tuple(columns))
        yield _Reading((*reading.eras, Era(seen.at, back, ())), others)

    def _unaccounted(self, reading: _Reading) -> str | None:
        """What became of some change that may not become of one; None if there is no such."""
        for owner, change in enumerate(self._changes):
            done = [step for place, step in reading.standing if place == owner]
            missing = [step for step in change.steps if step not in done]
            if change.outcome is Outcome.DONE:
                missing = [step for step in missing if not self._moot(reading, change, step)]
                if missing:
                    return f"{change.text} was done, and {missing} is not to be seen"
            elif done and missing:
                return f"half of {change.text} was done"
        return None

    def _moot(self, reading: _Reading, change: Change, step: Step) -> bool:
        """Whether there was nothing to do, at some time while the change was made."""
        if isinstance(step, Truncate):
            return True  # of an empty table
        ends = [after.at for _, after in pairwise(reading.eras)] + [MAX_TIMESTAMP]
        return any(
            step.on(era.schema) is None
            for era, end in zip(reading.eras, ends, strict=True)
            if era.at < change.ended_at and change.begun_at < end
        )


def _behind(schema: Schema, steps: Sequence[Step], seen: SeenStep) -> Schema | None:
    """The schema behind the steps, if that is what was seen."""
    if seen.emptied != any(isinstance(step, Truncate) for step in steps):
        return None
    for step in steps:
        behind = step.on(schema)
        if behind is None:
            return None
        schema = behind
    return schema if schema.shape == seen.shape else None
