"""Payload and progress of a schema change's job."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..descriptors.descriptor import TableDescriptor
from ..descriptors.descriptor_encoding import ColumnWire, column_from_wire, column_to_wire
from ..descriptors.element_encoding import (
    ConstraintWire,
    IndexWire,
    Wire,
    constraint_from_wire,
    constraint_to_wire,
    index_from_wire,
)
from .planner import plan
from .stages import Stage
from .targets import (
    ColumnElement,
    ConstraintElement,
    Element,
    FactsElement,
    IndexElement,
    PrimaryElement,
    Target,
)

FORMAT = 1


class _ColumnTarget(Wire, frozen=True, tag="column"):
    column: ColumnWire
    filled: bool
    replaces: int | None
    replaced: bool
    interim: str | None


class _IndexTarget(Wire, frozen=True, tag="index"):
    index: IndexWire
    empty: bool


class _PrimaryTarget(Wire, frozen=True, tag="primary"):
    index: IndexWire
    empty: bool


class _ConstraintTarget(Wire, frozen=True, tag="constraint"):
    constraint: ConstraintWire
    unproven: bool
    known: bool
    interim: str | None = None


class _FactsTarget(Wire, frozen=True, tag="facts"):
    label: str
    columns: list[ColumnWire]
    indexes: list[IndexWire]
    constraints: list[tuple[str, ConstraintWire]]
    name: str | None
    parameters: dict[str, str] | None
    dropped: bool
    primary_name: str | None = None
    keyspace: bool = False


_ElementWire = _ColumnTarget | _IndexTarget | _PrimaryTarget | _ConstraintTarget | _FactsTarget


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True):
    """The payload of a job: the table, the targets, and whether the table is to be locked again.

    `first` counts the stages that the statement's own transaction carried out, and `old_primary` is
    the primary index of before. A table dropped `beside_locked` ones was not changed by it yet.
    """

    format: int = FORMAT
    table_id: int
    locked: bool
    first: int
    old_primary: int
    elements: list[_ElementWire]
    present: list[bool]
    beside_locked: bool = False

    @property
    def targets(self) -> tuple[Target, ...]:
        return tuple(
            Target(_element_from_wire(wire), present)
            for wire, present in zip(self.elements, self.present, strict=True)
        )

    def stages(self) -> tuple[Stage, ...]:
        return plan(self.targets, locked=self.locked, beside_locked=self.beside_locked)


class SchemaChangeProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a schema change among its stages.

    `stage` counts the stages that are done; `failure` is set when the change is being undone, whose
    stages `undone` counts. `resume_after` is the last key that the work at hand has seen to, and
    `row_count` how many rows it has done.
    """

    stage: int = 0
    failure: tuple[str, str] | None = None
    undone: int = 0
    resume_after: bytes = b""
    work_done: int = 0
    row_count: int = 0


_encoder = msgspec.msgpack.Encoder()
_changes = msgspec.msgpack.Decoder(SchemaChange)
_progress = msgspec.msgpack.Decoder(SchemaChangeProgress)


def schema_change(
    table: TableDescriptor, targets: Sequence[Target], *, first: int, beside_locked: bool = False
) -> SchemaChange:
    return SchemaChange(
        table_id=table.id,
        locked=table.locked,
        first=first,
        old_primary=table.primary_index_id,
        elements=[_element_to_wire(target.element) for target in targets],
        present=[target.present for target in targets],
        beside_locked=beside_locked,
    )


def encode(value: SchemaChange | SchemaChangeProgress) -> bytes:
    return _encoder.encode(value)


def decode_change(data: bytes) -> SchemaChange:
    change = _changes.decode(data)
    assert change.format == FORMAT, change.format
    return change


def decode_progress(data: bytes | None, change: SchemaChange) -> SchemaChangeProgress:
    """The saved progress of a change; without one, that of its statement."""
    return SchemaChangeProgress(stage=change.first) if data is None else _progress.decode(data)


def _element_to_wire(element: Element) -> _ElementWire:
    match element:
        case ColumnElement(column=column):
            return _ColumnTarget.of(element, column=column_to_wire(column))
        case IndexElement(index=index):
            return _IndexTarget.of(element, index=IndexWire.of(index))
        case PrimaryElement(index=index):
            return _PrimaryTarget.of(element, index=IndexWire.of(index))
        case ConstraintElement(constraint=constraint):
            return _ConstraintTarget.of(element, constraint=constraint_to_wire(constraint))
        case FactsElement(parameters=parameters):
            return _FactsTarget.of(
                element,
                columns=[column_to_wire(column) for column in element.columns],
                indexes=[IndexWire.of(index) for index in element.indexes],
                constraints=[(name, constraint_to_wire(c)) for name, c in element.constraints],
                parameters=None if parameters is None else dict(parameters),
            )


def _element_from_wire(wire: _ElementWire) -> Element:
    match wire:
        case _ColumnTarget(column=column):
            return ColumnElement(**wire.values("column"), column=column_from_wire(column))
        case _IndexTarget(index=index):
            return IndexElement(index=index_from_wire(index), empty=wire.empty)
        case _PrimaryTarget(index=index):
            return PrimaryElement(index=index_from_wire(index), empty=wire.empty)
        case _ConstraintTarget(constraint=constraint):
            given = wire.values("constraint")
            return ConstraintElement(**given, constraint=constraint_from_wire(constraint))
        case _FactsTarget():
            return FactsElement(
                **wire.values("columns", "indexes", "constraints"),
                columns=tuple(column_from_wire(column) for column in wire.columns),
                indexes=tuple(index_from_wire(index) for index in wire.indexes),
                constraints=tuple((name, constraint_from_wire(c)) for name, c in wire.constraints),
            )
