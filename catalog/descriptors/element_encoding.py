"""Indexes and constraints as msgspec knows them: parts of stored descriptors and of jobs."""

from __future__ import annotations

from typing import Any, TypeAlias

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


class IndexWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    columns: list[int]
    kind: str
    unique: bool
    storing: list[int]
    state: str
    suffix: list[int] | None = None
    empty: bool = False
    constraint: bool | None = None
    """Descriptors that are older than the field have None: each of their unique indexes is one."""


class CheckWire(msgspec.Struct, frozen=True, tag_field="kind", tag="check"):
    name: str
    expression: str
    columns: list[int]
    validity: str
    not_null_column: int | None


class ForeignKeyWire(msgspec.Struct, frozen=True, tag_field="kind", tag="foreign key"):
    name: str
    columns: list[int]
    referenced_id: int
    referenced_columns: list[int]
    on_delete: str
    on_update: str
    validity: str
    deferrable: bool = False
    initially_deferred: bool = False


ConstraintWire = CheckWire | ForeignKeyWire


def index_to_wire(index: Index) -> IndexWire:
    return IndexWire(
        id=index.id,
        name=index.name,
        columns=list(index.columns),
        kind=index.kind.value,
        unique=index.unique,
        storing=list(index.storing),
        state=index.state.value,
        suffix=None if index.suffix is None else list(index.suffix),
        empty=index.empty,
        constraint=index.constraint,
    )


def index_from_wire(wire: IndexWire) -> Index:
    return Index(
        id=wire.id,
        name=wire.name,
        columns=tuple(wire.columns),
        kind=IndexKind(wire.kind),
        unique=wire.unique,
        storing=tuple(wire.storing),
        state=ElementState(wire.state),
        suffix=None if wire.suffix is None else tuple(wire.suffix),
        empty=wire.empty,
        constraint=wire.unique if wire.constraint is None else wire.constraint,
    )


def constraint_to_wire(constraint: Constraint) -> ConstraintWire:
    match constraint:
        case CheckConstraint():
            return CheckWire(
                name=constraint.name,
                expression=constraint.expression,
                columns=list(constraint.columns),
                validity=constraint.validity.value,
                not_null_column=constraint.not_null_column,
            )
        case ForeignKey():
            return ForeignKeyWire(
                name=constraint.name,
                columns=list(constraint.columns),
                referenced_id=constraint.referenced_id,
                referenced_columns=list(constraint.referenced_columns),
                on_delete=constraint.on_delete.value,
                on_update=constraint.on_update.value,
                validity=constraint.validity.value,
                deferrable=constraint.deferrable,
                initially_deferred=constraint.initially_deferred,
            )


def constraint_from_wire(wire: ConstraintWire) -> Constraint:
    match wire:
        case CheckWire():
            return CheckConstraint(
                name=wire.name,
                expression=wire.expression,
                columns=tuple(wire.columns),
                validity=Validity(wire.validity),
                not_null_column=wire.not_null_column,
            )
        case ForeignKeyWire():
            return ForeignKey(
                name=wire.name,
                columns=tuple(wire.columns),
                referenced_id=wire.referenced_id,
                referenced_columns=tuple(wire.referenced_columns),
                on_delete=ReferentialAction(wire.on_delete),
                on_update=ReferentialAction(wire.on_update),
                validity=Validity(wire.validity),
                deferrable=wire.deferrable,
                initially_deferred=wire.initially_deferred,
            )
