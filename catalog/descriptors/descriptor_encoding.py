"""Descriptors as bytes: msgpack maps that describe themselves.

Each begins with its kind and the number of its format, so that a reader tells what it cannot read
from what is broken. Values of columns (defaults, missing values) travel as the row codec's physical
values. The modification time is not among the bytes: it is their commit timestamp.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from ...kvlayer.clock import Timestamp
from ..values.column_types import ColumnType
from ..values.enum_type import EnumMember, EnumType
from ..values.identifiers import quote_identifier
from ..values.physical import from_physical, to_physical
from ..values.type_kinds import TypeKind
from .descriptor import (
    Column,
    DatabaseDescriptor,
    Descriptor,
    DescriptorState,
    SchemaDescriptor,
    TableDescriptor,
)
from .element_encoding import (
    ConstraintWire,
    IndexWire,
    Wire,
    WirePhysical,
    constraint_from_wire,
    constraint_to_wire,
    index_from_wire,
)
from .elements import ElementState, Identity
from .keyspace import Keyspace
from .named_objects import SequenceDescriptor, SequenceOptions, TypeDescriptor
from .view_query import ViewDependency, ViewQuery

FORMAT = 1


class DescriptorUnreadable(Exception):
    """Stored bytes that are no descriptor, or one of a format that this version does not know."""


class MemberWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    label: str
    mark: bytes
    writable: bool


class EnumWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    members: list[MemberWire]


class TypeWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A type that is part of another."""

    kind: TypeKind
    precision: int | None
    scale: int | None
    width: int | None
    enum: EnumWire | None = None


class ColumnWire(Wire, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    kind: TypeKind
    precision: int | None
    scale: int | None
    nullable: bool
    has_default: bool
    default: WirePhysical
    missing: WirePhysical
    state: ElementState = ElementState.PUBLIC
    default_expression: str | None = None
    computed: str | None = None
    comment: str | None = None
    width: int | None = None
    element: TypeWire | None = None
    hidden: bool = False
    enum: EnumWire | None = None
    identity: Identity | None = None


class ViewWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`reads` are pairs: a table's id, and the ids of its columns. `renames` was said by older
    versions where the view's columns are called otherwise than the query's."""

    text: str
    reads: list[tuple[int, tuple[int, ...]]]
    renames: bool = False


class KeyspaceWire(Wire, frozen=True, forbid_unknown_fields=True):
    ttl_seconds: int | None = None
    replica: bool = False


class _DescriptorWire(Wire, frozen=True, tag_field="kind"):
    format: int
    id: int
    name: str
    version: int
    state: DescriptorState


class _DatabaseWire(_DescriptorWire, frozen=True, tag="database"):
    pass


class _SchemaWire(_DescriptorWire, frozen=True, tag="schema"):
    database_id: int


class _TableWire(_DescriptorWire, frozen=True, tag="table"):
    database_id: int
    schema_id: int
    columns: tuple[ColumnWire, ...]
    primary_key: tuple[int, ...]
    primary_index_id: int
    locked: bool
    parameters: dict[str, str]
    next_column_id: int
    next_index_id: int
    indexes: tuple[IndexWire, ...] = ()
    new_primary: IndexWire | None = None
    old_primary: IndexWire | None = None
    constraints: tuple[ConstraintWire, ...] = ()
    referenced_by: tuple[int, ...] = ()
    schema_change_job: int | None = None
    drop_time: int | None = None
    comment: str | None = None
    view: ViewWire | None = None
    primary_name: str | None = None
    keyspace: KeyspaceWire | None = None
    temporary: bool = False


class _TypeDescriptorWire(_DescriptorWire, frozen=True, tag="type"):
    database_id: int
    schema_id: int
    enum: EnumWire


class _SequenceWire(_DescriptorWire, frozen=True, tag="sequence"):
    database_id: int
    schema_id: int
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    cache: int
    owner: tuple[int, int] | None = None


_OF_SEQUENCES = [each.name for each in fields(SequenceOptions)]

_Wire = _DatabaseWire | _SchemaWire | _TableWire | _TypeDescriptorWire | _SequenceWire

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Wire] = msgspec.msgpack.Decoder(_Wire)


def encode_descriptor(descriptor: Descriptor) -> bytes:
    return _encode(_to_wire(descriptor))


def decode_descriptor(data: bytes, modification_time: Timestamp) -> Descriptor:
    """Raises DescriptorUnreadable."""
    try:
        wire = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise DescriptorUnreadable(f"not a descriptor: {error}") from error
    if wire.format != FORMAT:
        raise DescriptorUnreadable(
            f"descriptor {wire.id} has format {wire.format}; this version reads {FORMAT}"
        )
    values = wire.values("format")
    values["modification_time"] = modification_time
    match wire:
        case _DatabaseWire():
            return DatabaseDescriptor(**values)
        case _SchemaWire():
            return SchemaDescriptor(**values)
        case _TableWire():
            return TableDescriptor(**values | _parts_of_table(wire))
        case _TypeDescriptorWire():
            return TypeDescriptor(**values | {"enum": _enum(wire.enum)})
        case _SequenceWire():
            options = {name: values.pop(name) for name in _OF_SEQUENCES}
            return SequenceDescriptor(**values, options=SequenceOptions(**options))


def _to_wire(descriptor: Descriptor) -> _Wire:
    match descriptor:
        case DatabaseDescriptor():
            return _DatabaseWire.of(descriptor, format=FORMAT)
        case SchemaDescriptor():
            return _SchemaWire.of(descriptor, format=FORMAT)
        case SequenceDescriptor(options=options):
            told = {name: getattr(options, name) for name in _OF_SEQUENCES}
            return _SequenceWire.of(descriptor, format=FORMAT, **told)
        case TypeDescriptor(enum=enum):
            return _TypeDescriptorWire.of(descriptor, format=FORMAT, enum=_enum_to_wire(enum))
        case TableDescriptor(new_primary=new, old_primary=old, keyspace=keyspace):
            return _TableWire.of(
                descriptor,
                format=FORMAT,
                columns=tuple(map(column_to_wire, descriptor.columns)),
                parameters=dict(descriptor.parameters),
                indexes=tuple(map(IndexWire.of, descriptor.indexes)),
                new_primary=None if new is None else IndexWire.of(new),
                old_primary=None if old is None else IndexWire.of(old),
                constraints=tuple(map(constraint_to_wire, descriptor.constraints)),
                view=_view_to_wire(descriptor.view),
                keyspace=None if keyspace is None else KeyspaceWire.of(keyspace),
            )


def _parts_of_table(wire: _TableWire) -> dict[str, object]:
    """The fields of a table that are stored otherwise than it has them."""
    new, old, keyspace = wire.new_primary, wire.old_primary, wire.keyspace
    return {
        "columns": tuple(map(column_from_wire, wire.columns)),
        "indexes": tuple(map(index_from_wire, wire.indexes)),
        "new_primary": None if new is None else index_from_wire(new),
        "old_primary": None if old is None else index_from_wire(old),
        "constraints": tuple(map(constraint_from_wire, wire.constraints)),
        "view": None if wire.view is None else _view(wire, wire.view),
        "keyspace": None if keyspace is None else Keyspace(**keyspace.values()),
    }


def _view_to_wire(view: ViewQuery | None) -> ViewWire | None:
    if view is None:
        return None
    reads = [(dependency.table_id, dependency.columns) for dependency in view.reads]
    return ViewWire(view.text, reads)


def _view(table: _TableWire, wire: ViewWire) -> ViewQuery:
    reads = tuple(ViewDependency(table_id, columns) for table_id, columns in wire.reads)
    text = wire.text
    if wire.renames:
        names = ", ".join(quote_identifier(column.name) for column in table.columns)
        text = f"SELECT {names} FROM ({text}) AS {quote_identifier(table.name)} ({names})"
    return ViewQuery(text, reads)


def _enum_to_wire(enum: EnumType | None) -> EnumWire | None:
    if enum is None:
        return None
    members = [MemberWire(member.label, member.mark, member.writable) for member in enum.members]
    return EnumWire(enum.id, enum.name, members)


def _enum(wire: EnumWire | None) -> EnumType | None:
    if wire is None:
        return None
    members = [EnumMember(member.label, member.mark, member.writable) for member in wire.members]
    return EnumType(wire.id, wire.name, tuple(members))


def _type_values(type: ColumnType) -> dict[str, Any]:
    """Precision and scale as they were declared: a bare DECIMAL has none."""
    return {
        "kind": type.kind,
        "precision": None if type.bare else type.precision,
        "scale": None if type.bare else type.scale,
        "width": type.width,
        "enum": _enum_to_wire(type.enum),
    }


def _type(wire: TypeWire | ColumnWire, element: ColumnType | None = None) -> ColumnType:
    return ColumnType(wire.kind, wire.precision, wire.scale, wire.width, element, _enum(wire.enum))


def column_to_wire(column: Column) -> ColumnWire:
    type = column.type
    return ColumnWire.of(
        column,
        **_type_values(type),
        element=None if type.element is None else TypeWire(**_type_values(type.element)),
        default=to_physical(type, column.default),
        missing=to_physical(type, column.missing),
    )


def column_from_wire(wire: ColumnWire) -> Column:
    type = _type(wire, None if wire.element is None else _type(wire.element))
    return Column(
        **wire.values(*_OF_TYPES, "default", "missing"),
        type=type,
        default=from_physical(type, wire.default),
        missing=from_physical(type, wire.missing),
    )


_OF_TYPES = ("kind", "precision", "scale", "width", "element", "enum")
"""The fields of a column that are its type's."""
