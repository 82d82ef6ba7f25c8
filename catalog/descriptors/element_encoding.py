"""Indexes and constraints as msgspec knows them: parts of stored descriptors and of jobs."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import msgspec

from .elements import (
    CheckConstraint,
    Constraint,
    ElementState,
    ForeignKey,
    Index,
    IndexKind,
    ReferentialAction,
    Validity,
)

WirePhysical: TypeAlias = Any
"""A `Physical`, which msgspec takes for ambiguous: text or bytes, by the column's type."""


class Wire(msgspec.Struct, frozen=True):
    """The stored form of a value: its fields by their names, in the order in which they are stored.
    A field that came later has a default, which values stored before it are read with."""

    @classmethod
    def of(cls, value: object, **others: object) -> Self:
        """Returns the stored form of `value`, whose fields it takes but for those in `others`."""
        same = {name: getattr(value, name) for name in cls.__struct_fields__ if name not in others}
        return cls(**same, **others)

    def values(self, *left_out: str) -> dict[str, Any]:
        """Returns the fields by their names, for the class that they are of."""
        values = msgspec.structs.asdict(self)
        for name in left_out:
            del values[name]
        return values


class IndexWire(Wire, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    columns: tuple[int, ...]
    kind: IndexKind
    unique: bool
    storing: tuple[int, ...]
    state: ElementState
    suffix: tuple[int, ...] | None = None
    empty: bool = False
    constraint: bool | None = None
    """Descriptors that are older than the field have None: each of their unique indexes is one."""


class CheckWire(Wire, frozen=True, tag_field="kind", tag="check"):
    name: str
    expression: str
    columns: tuple[int, ...]
    validity: Validity
    not_null_column: int | None


class ForeignKeyWire(Wire, frozen=True, tag_field="kind", tag="foreign key"):
    name: str
    columns: tuple[int, ...]
    referenced_id: int
    referenced_columns: tuple[int, ...]
    on_delete: ReferentialAction
    on_update: ReferentialAction
    validity: Validity
    deferrable: bool = False
    initially_deferred: bool = False


ConstraintWire = CheckWire | ForeignKeyWire


def index_from_wire(wire: IndexWire) -> Index:
    constraint = wire.unique if wire.constraint is None else wire.constraint
    return Index(**wire.values("constraint"), constraint=constraint)


def constraint_to_wire(constraint: Constraint) -> ConstraintWire:
    return (CheckWire if isinstance(constraint, CheckConstraint) else ForeignKeyWire).of(constraint)


def constraint_from_wire(wire: ConstraintWire) -> Constraint:
    return (CheckConstraint if isinstance(wire, CheckWire) else ForeignKey)(**wire.values())
