"""What a schema change is to the oracle: steps from one schema to another, asked for and seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tailrace.kvlayer.clock import MAX_TIMESTAMP, Timestamp


class Fill(Enum):
    """What a row holds in a column that its writer did not name."""

    NULL = "null"
    CONSTANT = "constant"
    DRAWN = "drawn"  # a value of its own
    COMPUTED = "computed"  # twice `w`


@dataclass(frozen=True, slots=True)
class ModelColumn:
    """A column. A retype makes another number of the same name."""

    number: int
    name: str
    type: str
    fill: Fill = Fill.NULL
    constant: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a client sees of a schema: names and types in the order of SELECT *, and the key."""

    columns: tuple[tuple[str, str], ...]
    key: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns behind `k`, `j` and `w`, and which of the first two is the key."""

    columns: tuple[ModelColumn, ...] = ()
    key: str = "k"

    @property
    def shape(self) -> Shape:
        fixed = (("k", "INT8"), ("j", "INT8"), ("w", "INT8"))
        return Shape(fixed + tuple((c.name, c.type) for c in self.columns), self.key)

    def find(self, number: int) -> ModelColumn | None:
        return next((column for column in self.columns if column.number == number), None)


@dataclass(frozen=True, slots=True)
class Add:
    column: ModelColumn

    def on(self, schema: Schema) -> Schema | None:
        if schema.find(self.column.number):
            return None
        return replace(schema, columns=(*schema.columns, self.column))


@dataclass(frozen=True, slots=True)
class Drop:
    number: int

    def on(self, schema: Schema) -> Schema | None:
        left = tuple(c for c in schema.columns if c.number != self.number)
        return replace(schema, columns=left) if len(left) < len(schema.columns) else None


@dataclass(frozen=True, slots=True)
class Become:
    """The column takes another name, or another type."""

    number: int
    name: str | None = None
    type: str | None = None

    def on(self, schema: Schema) -> Schema | None:
        found = schema.find(self.number)
        if found is None:
            return None
        changed = replace(found, name=self.name or found.name, type=self.type or found.type)
        columns = tuple(changed if c is found else c for c in schema.columns)
        return replace(schema, columns=columns) if changed != found else None


@dataclass(frozen=True, slots=True)
class Rekey:
    key: str

    def on(self, schema: Schema) -> Schema | None:
        return replace(schema, key=self.key) if schema.key != self.key else None


@dataclass(frozen=True, slots=True)
class Truncate:
    def on(self, schema: Schema) -> Schema | None:
        return schema


Step = Add | Drop | Become | Rekey | Truncate


class Outcome(Enum):
    IN_DOUBT = "in doubt"  # the client never heard
    DONE = "done"
    REFUSED = "refused"  # failed, or was canceled: done wholly, or undone


@dataclass(slots=True, eq=False)
class Change:
    """One statement that changes the schema. `applied` are its steps that were seen."""

    text: str
    steps: tuple[Step, ...]
    begun_at: Timestamp
    ended_at: Timestamp = MAX_TIMESTAMP
    outcome: Outcome = Outcome.IN_DOUBT
    applied: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStep:
    """A published version that looks different from the one before.

    `emptied` tells a truncation. `kept` are the tokens of the rows in the primary index from here
    on, as of just below the step, where that is another index than before.
    """

    at: Timestamp
    shape: Shape
    emptied: bool
    kept: Mapping[int, int] | None


@dataclass(frozen=True, slots=True)
class Era:
    """A schema from its timestamp on, and the steps that led to it."""

    at: Timestamp
    schema: Schema
    steps: tuple[Step, ...]
