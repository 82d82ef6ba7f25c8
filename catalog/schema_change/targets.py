"""Targets: which elements of a table a schema change is about, and where each is to be.

ALTER TABLE t ADD COLUMN w INT8 DEFAULT 5          column w          -> public
ALTER TABLE t ADD COLUMN u UUID DEFAULT random     column u          -> public
                                                   primary index 2   -> public
CREATE UNIQUE INDEX ON t (v)                       index 3           -> public
ALTER TABLE t DROP COLUMN v CASCADE                column v          -> absent
                                                   index 3           -> absent
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..descriptors.descriptor import Column
from ..descriptors.elements import CheckConstraint, Constraint, Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnElement:
    """A column as it is when public.

    `filled` says that existing rows are given a value, in a new primary index. `replaces` is the
    column whose name and place it takes at the swap (a retype), and until then it is computed from
    that one by `interim`. Of a column that goes, `interim` computes what writers under the version
    after the swap leave for readers under the version before.
    """

    column: Column
    filled: bool = False
    replaces: int | None = None
    replaced: bool = False
    interim: str | None = None

    @property
    def label(self) -> str:
        return f"column {self.column.name} ({self.column.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexElement:
    """A secondary index. An `empty` one begins without entries: the table is being truncated."""

    index: Index
    empty: bool = False

    @property
    def label(self) -> str:
        return f"index {self.index.name} ({self.index.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryElement:
    """A new primary index, which takes the place of the old one at one timestamp."""

    index: Index
    empty: bool = False

    @property
    def label(self) -> str:
        return f"primary index {self.index.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintElement:
    """A check, a NOT NULL (a check that names its column) or a foreign key.

    `unproven` says that a NOT VALID one is to stay so, `known` that an unproven one is there and
    is to be proven; where it cannot be, it stays what it was. `interim` is the expression of a
    check while columns that it names come with it, by the names that they have until then.
    """

    constraint: Constraint
    unproven: bool = False
    known: bool = False
    interim: str | None = None

    @property
    def enforced(self) -> Constraint:
        """The constraint as writers enforce it until it is public."""
        if self.interim is None:
            return self.constraint
        assert isinstance(self.constraint, CheckConstraint), self
        return replace(self.constraint, expression=self.interim)

    @property
    def label(self) -> str:
        if isinstance(self.constraint, CheckConstraint):
            if self.constraint.not_null_column is not None:
                return f"NOT NULL of column {self.constraint.not_null_column}"
            return f"check {self.constraint.name}"
        return f"foreign key {self.constraint.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsElement:
    """A fact that changes from one version to the next, without any state in between.

    Columns, indexes and constraints are replaced by id or by the name that `constraints` maps from.
    What is `dropped` is a raw `keyspace`, or else a table.
    """

    label: str
    columns: tuple[Column, ...] = ()
    indexes: tuple[Index, ...] = ()
    constraints: tuple[tuple[str, Constraint], ...] = ()
    name: str | None = None
    primary_name: str | None = None
    parameters: Mapping[str, str] | None = None
    dropped: bool = False
    keyspace: bool = False


Element = ColumnElement | IndexElement | PrimaryElement | ConstraintElement | FactsElement


@dataclass(frozen=True, slots=True)
class Target:
    """An element, and whether it is to be there in the end."""

    element: Element
    present: bool = True

    @property
    def label(self) -> str:
        return self.element.label

    @property
    def renames(self) -> bool:
        """Whether the target is the table's name, which changes at once and for good: later
        statements of the same transaction find the table by it."""
        return isinstance(self.element, FactsElement) and self.element.name is not None
