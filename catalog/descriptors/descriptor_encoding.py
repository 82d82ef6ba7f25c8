"""Descriptors as bytes: msgpack maps that describe themselves.

Each begins with its kind and the number of its format, so that a reader tells what it cannot read
from what is broken. Values of columns (defaults, missing values) travel as the row codec's physical
values. The modification time is not among the bytes: it is their commit timestamp.
"""

from __future__ import annotations

import msgspec

from ...kvlayer.clock import Timestamp
from ..values.column_types import ColumnType
from ..values.enum_type import EnumMember, EnumType
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
    WirePhysical,
    constraint_from_wire,
    constraint_to_wire,
    index_from_wire,
    index_to_wire,
)
from .elements import ElementState, Identity, Index
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

    kind: str
    precision: int | None
    scale: int | None
    width: int | None
    enum: EnumWire | None = None


class ColumnWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: int
    name: str
    kind: str
    precision: int | None
    scale: int | None
    nullable: bool
    has_default: bool
    default: WirePhysical
    missing: WirePhysical
    state: str = ElementState.PUBLIC.value
    default_expression: str | None = None
    computed: str | None = None
    comment: str | None = None
    width: int | None = None
    element: TypeWire | None = None
    hidden: bool = False
    enum: EnumWire | None = None
    identity: str | None = None


class _DatabaseWire(msgspec.Struct, frozen=True, tag_field="kind", tag="database"):
    format: int
    id: int
    name: str
    version: int
    state: str


class _SchemaWire(msgspec.Struct, frozen=True, tag_field="kind", tag="schema"):
    format: int
    id: int
    name: str
    version: int
    state: str
    database_id: int


class ViewWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`reads` are pairs: a table's id, and the ids of its columns."""

    text: str
    reads: list[tuple[int, list[int]]]
    renames: bool


class KeyspaceWire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ttl_seconds: int | None = None
    replica: bool = False


class _TableWire(msgspec.Struct, frozen=True, tag_field="kind", tag="table"):
    format: int
    id: int
    name: str
    version: int
    state: str
    database_id: int
    schema_id: int
    columns: list[ColumnWire]
    primary_key: list[int]
    primary_index_id: int
    locked: bool
    parameters: dict[str, str]
    next_column_id: int
    next_index_id: int
    indexes: list[IndexWire] = []
    new_primary: IndexWire | None = None
    old_primary: IndexWire | None = None
    constraints: list[ConstraintWire] = []
    referenced_by: list[int] = []
    schema_change_job: int | None = None
    drop_time: int | None = None
    comment: str | None = None
    view: ViewWire | None = None
    primary_name: str | None = None
    keyspace: KeyspaceWire | None = None
    temporary: bool = False


class _TypeDescriptorWire(msgspec.Struct, frozen=True, tag_field="kind", tag="type"):
    format: int
    id: int
    name: str
    version: int
    state: str
    database_id: int
    schema_id: int
    enum: EnumWire


class _SequenceWire(msgspec.Struct, frozen=True, tag_field="kind", tag="sequence"):
    format: int
    id: int
    name: str
    version: int
    state: str
    database_id: int
    schema_id: int
    start: int
    increment: int
    minimum: int
    maximum: int
    cycle: bool
    cache: int
    owner: tuple[int, int] | None = None


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
    state = DescriptorState(wire.state)
    match wire:
        case _DatabaseWire():
            return DatabaseDescriptor(
                id=wire.id,
                name=wire.name,
                version=wire.version,
                modification_time=modification_time,
                state=state,
            )
        case _SchemaWire():
            return SchemaDescriptor(
                id=wire.id,
                name=wire.name,
                database_id=wire.database_id,
                version=wire.version,
                modification_time=modification_time,
                state=state,
            )
        case _TableWire():
            return _table_from_wire(wire, state, modification_time)
        case _TypeDescriptorWire():
            enum = _enum(wire.enum)
            assert enum is not None, wire
            return TypeDescriptor(
                id=wire.id,
                name=wire.name,
                database_id=wire.database_id,
                schema_id=wire.schema_id,
                enum=enum,
                version=wire.version,
                modification_time=modification_time,
                state=state,
            )
        case _SequenceWire():
            return _sequence_from_wire(wire, state, modification_time)


def _sequence_from_wire(
    wire: _SequenceWire, state: DescriptorState, modification_time: Timestamp
) -> SequenceDescriptor:
    options = SequenceOptions(
        start=wire.start,
        increment=wire.increment,
        minimum=wire.minimum,
        maximum=wire.maximum,
        cycle=wire.cycle,
        cache=wire.cache,
    )
    return SequenceDescriptor(
        id=wire.id,
        name=wire.name,
        database_id=wire.database_id,
        schema_id=wire.schema_id,
        options=options,
        owner=wire.owner,
        version=wire.version,
        modification_time=modification_time,
        state=state,
    )


def _sequence_to_wire(found: SequenceDescriptor, state: str) -> _SequenceWire:
    options = found.options
    return _SequenceWire(
        format=FORMAT,
        id=found.id,
        name=found.name,
        version=found.version,
        state=state,
        database_id=found.database_id,
        schema_id=found.schema_id,
        start=options.start,
        increment=options.increment,
        minimum=options.minimum,
        maximum=options.maximum,
        cycle=options.cycle,
        cache=options.cache,
        owner=found.owner,
    )


def _to_wire(descriptor: Descriptor) -> _Wire:
    state = str(descriptor.state.value)
    match descriptor:
        case DatabaseDescriptor(id=id, name=name, version=version):
            return _DatabaseWire(FORMAT, id, name, version, state)
        case SchemaDescriptor(id=id, name=name, version=version):
            return _SchemaWire(FORMAT, id, name, version, state, descriptor.database_id)
        case SequenceDescriptor():
            return _sequence_to_wire(descriptor, state)
        case TypeDescriptor(id=id, name=name, version=version):
            enum = _enum_to_wire(descriptor.enum)
            assert enum is not None, descriptor
            return _TypeDescriptorWire(
                FORMAT, id, name, version, state, descriptor.database_id, descriptor.schema_id, enum
            )
        case TableDescriptor():
            return _TableWire(
                format=FORMAT,
                id=descriptor.id,
                name=descriptor.name,
                version=descriptor.version,
                state=state,
                database_id=descriptor.database_id,
                schema_id=descriptor.schema_id,
                columns=[column_to_wire(column) for column in descriptor.columns],
                primary_key=list(descriptor.primary_key),
                primary_index_id=descriptor.primary_index_id,
                locked=descriptor.locked,
                parameters=dict(descriptor.parameters),
                next_column_id=descriptor.next_column_id,
                next_index_id=descriptor.next_index_id,
                indexes=[index_to_wire(index) for index in descriptor.indexes],
                new_primary=_optional_index_to_wire(descriptor.new_primary),
                old_primary=_optional_index_to_wire(descriptor.old_primary),
                constraints=[constraint_to_wire(found) for found in descriptor.constraints],
                referenced_by=list(descriptor.referenced_by),
                schema_change_job=descriptor.schema_change_job,
                drop_time=descriptor.drop_time,
                comment=descriptor.comment,
                view=_view_to_wire(descriptor.view),
                primary_name=descriptor.primary_name,
                keyspace=None
                if descriptor.keyspace is None
                else KeyspaceWire(descriptor.keyspace.ttl_seconds, descriptor.keyspace.replica),
                temporary=descriptor.temporary,
            )


def _optional_index_to_wire(index: Index | None) -> IndexWire | None:
    return None if index is None else index_to_wire(index)


def _optional_index(wire: IndexWire | None) -> Index | None:
    return None if wire is None else index_from_wire(wire)


def _view_to_wire(view: ViewQuery | None) -> ViewWire | None:
    if view is None:
        return None
    reads = [(dependency.table_id, list(dependency.columns)) for dependency in view.reads]
    return ViewWire(view.text, reads, view.renames)


def _view(wire: ViewWire | None) -> ViewQuery | None:
    if wire is None:
        return None
    reads = tuple(ViewDependency(table_id, tuple(columns)) for table_id, columns in wire.reads)
    return ViewQuery(wire.text, reads, wire.renames)


def _type_to_wire(type: ColumnType) -> TypeWire:
    precision, scale = _digits(type)
    return TypeWire(str(type.kind.value), precision, scale, type.width, _enum_to_wire(type.enum))


def _digits(type: ColumnType) -> tuple[int | None, int | None]:
    """Precision and scale as they were declared: a bare DECIMAL has none."""
    return (None, None) if type.bare else (type.precision, type.scale)


def _type_from_wire(wire: TypeWire) -> ColumnType:
    enum = _enum(wire.enum)
    return ColumnType(TypeKind(wire.kind), wire.precision, wire.scale, wire.width, enum=enum)


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


def column_to_wire(column: Column) -> ColumnWire:
    return ColumnWire(
        id=column.id,
        name=column.name,
        kind=str(column.type.kind.value),
        precision=_digits(column.type)[0],
        width=column.type.width,
        element=None if column.type.element is None else _type_to_wire(column.type.element),
        enum=_enum_to_wire(column.type.enum),
        scale=_digits(column.type)[1],
        nullable=column.nullable,
        has_default=column.has_default,
        default=to_physical(column.type, column.default),
        missing=to_physical(column.type, column.missing),
        state=column.state.value,
        default_expression=column.default_expression,
        computed=column.computed,
        comment=column.comment,
        hidden=column.hidden,
        identity=None if column.identity is None else column.identity.value,
    )


def _table_from_wire(
    wire: _TableWire, state: DescriptorState, modification_time: Timestamp
) -> TableDescriptor:
    return TableDescriptor(
        id=wire.id,
        name=wire.name,
        database_id=wire.database_id,
        schema_id=wire.schema_id,
        version=wire.version,
        modification_time=modification_time,
        state=state,
        columns=tuple(column_from_wire(column) for column in wire.columns),
        primary_key=tuple(wire.primary_key),
        primary_index_id=wire.primary_index_id,
        locked=wire.locked,
        parameters=wire.parameters,
        next_column_id=wire.next_column_id,
        next_index_id=wire.next_index_id,
        indexes=tuple(index_from_wire(index) for index in wire.indexes),
        new_primary=_optional_index(wire.new_primary),
        old_primary=_optional_index(wire.old_primary),
        constraints=tuple(constraint_from_wire(found) for found in wire.constraints),
        referenced_by=tuple(wire.referenced_by),
        schema_change_job=wire.schema_change_job,
        drop_time=None if wire.drop_time is None else Timestamp(wire.drop_time),
        comment=wire.comment,
        view=_view(wire.view),
        primary_name=wire.primary_name,
        keyspace=None
        if wire.keyspace is None
        else Keyspace(ttl_seconds=wire.keyspace.ttl_seconds, replica=wire.keyspace.replica),
        temporary=wire.temporary,
    )


def column_from_wire(wire: ColumnWire) -> Column:
    element = None if wire.element is None else _type_from_wire(wire.element)
    type = ColumnType(
        TypeKind(wire.kind), wire.precision, wire.scale, wire.width, element, _enum(wire.enum)
    )
    return Column(
        id=wire.id,
        name=wire.name,
        type=type,
        nullable=wire.nullable,
        has_default=wire.has_default,
        default=from_physical(type, wire.default),
        missing=from_physical(type, wire.missing),
        state=ElementState(wire.state),
        default_expression=wire.default_expression,
        computed=wire.computed,
        comment=wire.comment,
        hidden=wire.hidden,
        identity=None if wire.identity is None else Identity(wire.identity),
    )
