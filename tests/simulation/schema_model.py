"""The oracle of one table whose schema changes under its rows: what clients were told, and no more.

A table `(k INT8 PRIMARY KEY, j INT8 NOT NULL, w INT8 NOT NULL, ...)`: `j` is `k + KEY_GAP`, so that
the primary key can move from one to the other, and `w` is a number that no two writes share. A
column is known by its number, and its name is never given again, so that a statement which names
`c7` can only ever mean the one column.

    change = model.begin_change("ALTER ...", (Add(column),), at)      # outcome: in doubt
    model.end_change(change, Outcome.DONE, at)
    write = model.begin_write()
    write.insert(1, {7: 5}); model.end_write(write, committed_at)     # None: refused

When everything rests, `explain` is given the steps that the published versions show, each with its
timestamp, and finds for each the change that asked for it; a step that nobody asked for is an
error, and so is a change that was acknowledged and shows no step. Only the timestamps are the
store's own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tailrace.kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from tests.simulation.schema_explanation import explain
from tests.simulation.schema_steps import (
    Change,
    Drop,
    Era,
    Fill,
    ModelColumn,
    Outcome,
    Schema,
    SeenStep,
    Shape,
    Step,
    Truncate,
)

KEY_GAP = 1000


class _Anything:
    """Equals whatever the store made of it."""

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final = _Anything()
Value = int | str | _Anything | None


@dataclass(frozen=True, slots=True)
class RowVersion:
    """A row as one write left it: what was written by column number; `unsure` may be anything."""

    at: Timestamp
    token: int
    values: Mapping[int, int | None]
    unsure: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class Write:
    """One transaction's rows: for each key what became of it, in order."""

    begun_at: Timestamp
    at: Timestamp | None = None
    until: Timestamp | None = None
    """The timestamp at or below which it has committed, where no other is told."""
    items: list[tuple[int, int | None, Mapping[int, int | None], bool]] = field(
        default_factory=list
    )
    """(k, token or None for a deletion, values, whether it is an update)"""

    def insert(self, key: int, token: int, values: Mapping[int, int | None]) -> None:
        self.items.append((key, token, values, False))

    def update(self, key: int, token: int, values: Mapping[int, int | None]) -> None:
        self.items.append((key, token, values, True))

    def delete(self, key: int) -> None:
        self.items.append((key, None, {}, False))

    @property
    def tokens(self) -> dict[int, int | None]:
        """What the transaction leaves under each key."""
        return {key: token for key, token, _, _ in self.items}

    def may_be_of(self, at: Timestamp) -> bool:
        """Whether it may have committed at `at`."""
        return self.begun_at < at and (self.until is None or at <= self.until)


class TableModel:
    """Everything that one table was and is."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.table_id = 0
        self.dropped = False
        """Somebody drops it, or has dropped it: nobody else asks for anything more of it."""
        self.frozen = False
        """The process has died: what its tasks still hear, nobody hears."""
        self.changes: list[Change] = []
        self.writes: list[Write] = []
        self.eras: list[Era] = [Era(ZERO, Schema(), ())]
        self.history: dict[int, list[tuple[Timestamp, RowVersion | None]]] = {}
        self._drawn: dict[tuple[int, Timestamp, int], object] = {}
        self._emptied: set[Timestamp] = set()
        self._ids: dict[int, tuple[str, str]] = {}

    # What clients say.

    def begin_change(self, text: str, steps: Sequence[Step], at: Timestamp) -> Change:
        change = Change(text, tuple(steps), at)
        if not self.frozen:
            self.changes.append(change)
        return change

    def end_change(self, change: Change, outcome: Outcome, at: Timestamp) -> None:
        if not self.frozen:
            change.outcome, change.ended_at = outcome, at

    def begin_write(self, at: Timestamp) -> Write:
        write = Write(at)
        if not self.frozen:
            self.writes.append(write)
        return write

    def end_write(self, write: Write, at: Timestamp | None, *, exactly: bool = True) -> None:
        """It committed at `at`, and not below where that is told `exactly`; or was refused."""
        if self.frozen:
            return
        if exactly:
            write.at = at
        write.until = at
        if at is None or not write.items:
            self.writes.remove(write)

    def guess(self) -> Schema:
        """The schema as it would be if all that was not refused had been done."""
        schema = Schema()
        for change in self.changes:
            if change.outcome is not Outcome.REFUSED:
                for step in change.steps:
                    schema = step.on(schema) or schema
        return schema

    # What rests.

    def explain(
        self,
        seen: Sequence[SeenStep],
        found: Mapping[Timestamp, Mapping[int, int | None]],
    ) -> None:
        """Takes the timestamps of steps, and of the writes that are in doubt. `found` are the
        tokens by timestamp and key. Raises AssertionError where the store did what nobody asked
        for, or has lost what it had acknowledged."""
        self._explain_writes(found)
        explanation = explain(self.name, self.changes, seen)
        self.eras = explanation.eras
        for change, applied in zip(self.changes, explanation.applied, strict=True):
            change.applied = applied
        self._replay(seen)

    def _explain_writes(self, found: Mapping[Timestamp, Mapping[int, int | None]]) -> None:
        known = {write.at: write for write in self.writes if write.at is not None}
        doubtful = [write for write in self.writes if write.at is None]
        for at, write in known.items():
            tokens = found.get(at, {})
            assert tokens == write.tokens, f"{self.name} at {at}: {write.tokens}, found {tokens}"
        for at, tokens in sorted(found.items()):
            if at in known:
                continue
            match = [w for w in doubtful if w.tokens == tokens and w.may_be_of(at)]
            match.sort(
                key=lambda w: w.until or MAX_TIMESTAMP
            )  # those that must be found come first
            if not match and self.dropped and set(tokens.values()) == {None}:
                continue  # the data of a table that was dropped is removed
            assert match, f"nobody wrote {tokens} at {at} into {self.name}"
            match[0].at = at
            doubtful.remove(match[0])
        lost = [write for write in doubtful if write.until is not None]
        assert not lost, f"{self.name}: {lost[0].tokens} is lost, at or below {lost[0].until}"

    def _replay(self, seen: Sequence[SeenStep]) -> None:
        """Every version of every row."""
        self.history = {}
        self._emptied = {step.at for step in seen if step.emptied}
        swaps = [step for step in seen if step.kept is not None]
        for write in sorted(self.writes, key=lambda w: w.at or MAX_TIMESTAMP):
            if write.at is None:
                continue
            while swaps and swaps[0].at < write.at:
                self._swap(swaps.pop(0))
            self._apply(write, write.at)
        for swap in swaps:
            self._swap(swap)

    def _apply(self, write: Write, at: Timestamp) -> None:
        for key, token, values, update in write.items:
            versions = self.history.setdefault(key, [])
            if token is None:
                versions.append((at, None))
                continue
            former = versions[-1][1] if versions else None
            if update and former is None and versions and versions[-1][0] in self._emptied:
                # Its writer used the version before: there the row was, and so it stays.
                former = versions[-2][1]
            if update:
                assert former is not None, f"{self.name}: {key} was updated at {at}, and not there"
                row = RowVersion(at, token, {**former.values, **values}, former.unsure)
            else:
                assert former is None, f"{self.name}: {key} was inserted at {at}, and there"
                row = RowVersion(at, token, values)
            row = replace(row, unsure=row.unsure - values.keys() | self._unsure(at))
            versions.append((at, row))

    def _unsure(self, at: Timestamp) -> frozenset[int]:
        """Columns that were gone for a while and came back, when their drop was undone."""
        return frozenset(
            step.number
            for change in self.changes
            if change.outcome is not Outcome.DONE and change.begun_at < at
            for step in change.steps
            if isinstance(step, Drop)
        )

    def _swap(self, step: SeenStep) -> None:
        """Another primary index holds just the rows that there were, or that outlast it."""
        assert step.kept is not None
        begun_at = min(
            (c.begun_at for c in self.changes if Truncate() in c.applied and c.ended_at > step.at),
            default=step.at,
        )
        for key, versions in self.history.items():
            row = versions[-1][1]
            if row is None:
                continue
            if step.emptied and key not in step.kept:
                versions.append((step.at, None))
                continue
            assert not step.emptied or row.at > begun_at, f"{key} outlasted a truncation: {row}"
            assert step.kept.get(key) == row.token, (
                f"{self.name}: the index from {step.at} on holds {step.kept.get(key)}, not {row}"
            )
        rows = {key for key, versions in self.history.items() if versions[-1][1] is not None}
        assert step.kept.keys() <= rows, f"{step.kept.keys() - rows} came back at {step.at}"

    # Questions.

    def era_at(self, at: Timestamp) -> Era:
        return self.eras[bisect_right(self.eras, at, key=lambda era: era.at) - 1]

    def row_at(self, key: int, at: Timestamp) -> RowVersion | None:
        versions = self.history.get(key, [])
        place = bisect_right(versions, at, key=lambda version: version[0])
        return versions[place - 1][1] if place else None

    def rows_at(self, at: Timestamp) -> dict[int, RowVersion]:
        found = {key: self.row_at(key, at) for key in self.history}
        return {key: row for key, row in found.items() if row is not None}

    def written(self, key: int, at: Timestamp) -> bool:
        return any(write.at == at and key in write.tokens for write in self.writes)

    def check_row(
        self,
        key: int,
        at: Timestamp,
        shown: Sequence[object] | None,
        schema: Schema | None = None,
        *,
        unsettled: frozenset[int] = frozenset(),
    ) -> None:
        """`shown` is the row of `key` as of `at`, by default in the schema that held then.

        Columns of the numbers `unsettled` may be NULL.
        """
        row = self.row_at(key, at)
        if row is None or shown is None:
            assert row is None and shown is None, f"{self.name} {key} at {at}: {shown}, not {row}"
            return
        schema = schema or self.era_at(at).schema
        expected: list[Value] = [key, key + KEY_GAP, row.token]
        expected += [_value(row, column) for column in schema.columns]
        assert len(shown) == len(expected), (shown, expected)
        for place, (value, due) in enumerate(zip(shown, expected, strict=True)):
            if value is None and place >= 3 and schema.columns[place - 3].number in unsettled:
                continue
            if due is ANYTHING:
                number = schema.columns[place - 3].number
                drawn = self._drawn.setdefault((key, row.at, number), _text(value))
                assert drawn == _text(value), f"{self.name} {key} at {at}: {value}, not {drawn}"
                continue
            assert value == due, f"{self.name} {key} at {at}: {shown}, not {expected}"

    def check_shape(self, at: Timestamp, shape: Shape) -> None:
        assert shape == self.era_at(at).schema.shape, (self.name, at, shape, self.era_at(at))

    def note_ids(self, ids: Mapping[int, str]) -> None:
        """Column ids with their names, as one version has them. An id is one column for ever."""
        for id, name in ids.items():
            numbers = [c.number for era in self.eras for c in era.schema.columns if c.name == name]
            if numbers:
                known = self._ids.setdefault(id, (str(numbers[0]), name))
                assert known[0] == str(numbers[0]), (id, name, known)


def _text(value: object) -> str | None:
    """A value as it reads whatever its column's type is."""
    return None if value is None else str(value)


def _value(row: RowVersion, column: ModelColumn) -> Value:
    match column.fill:
        case Fill.DRAWN:
            return ANYTHING
        case Fill.COMPUTED:
            value: int | None = 2 * row.token
        case _:
            if column.number in row.unsure:
                return ANYTHING
            value = row.values.get(column.number, column.constant)
    return str(value) if column.type == "STRING" and value is not None else value
