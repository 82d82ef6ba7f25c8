"""Descriptors as values and as bytes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.descriptors import descriptor_encoding, element_encoding
from tailrace.catalog.descriptors.descriptor import (
    Column,
    DatabaseDescriptor,
    Descriptor,
    DescriptorState,
    SchemaDescriptor,
    TableDescriptor,
    logically_equal,
)
from tailrace.catalog.descriptors.descriptor_encoding import (
    DescriptorUnreadable,
    decode_descriptor,
    encode_descriptor,
)
from tailrace.catalog.descriptors.element_encoding import Wire
from tailrace.catalog.descriptors.elements import CheckConstraint, ForeignKey, Index
from tailrace.catalog.descriptors.keyspace import Keyspace
from tailrace.catalog.descriptors.system_tables import INITIAL_DESCRIPTORS
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp
from tests.harness.datums import column_types, datums
from tests.harness.descriptors import KEY, table

AT = Timestamp(120)


@st.composite
def columns(draw: st.DrawFn) -> Column:
    type: ColumnType = draw(column_types)
    return Column(
        id=2,
        name=draw(st.text(min_size=1)),
        type=type,
        nullable=draw(st.booleans()),
        has_default=True,
        default=draw(st.none() | datums(type)),
        missing=draw(st.none() | datums(type)),
    )


@given(columns(), st.booleans(), st.sampled_from(DescriptorState))
def test_table_comes_back(column: Column, locked: bool, state: DescriptorState) -> None:
    descriptor = replace(
        table(7, AT, columns=(KEY, column), locked=locked),
        state=state,
        parameters={"gc.ttlseconds": "600"},
    )
    assert decode_descriptor(encode_descriptor(descriptor), AT) == descriptor


@pytest.mark.parametrize("descriptor", INITIAL_DESCRIPTORS, ids=lambda d: f"{d.id}-{d.name}")
def test_initial_descriptors_come_back(descriptor: Descriptor) -> None:
    decoded = decode_descriptor(encode_descriptor(descriptor), AT)
    assert decoded == replace(descriptor, modification_time=AT)


def test_bytes_say_what_they_are() -> None:
    wire = msgspec.msgpack.decode(encode_descriptor(DatabaseDescriptor(id=50, name="d")))
    assert wire == {
        "kind": "database",
        "format": 1,
        "id": 50,
        "name": "d",
        "version": 1,
        "state": "public",
    }


def test_other_format_is_unreadable() -> None:
    wire = msgspec.msgpack.decode(encode_descriptor(table()))
    for change in ({"format": 2}, {"kind": "view"}, {"id": "x"}):
        with pytest.raises(DescriptorUnreadable):
            decode_descriptor(msgspec.msgpack.encode({**wire, **change}), AT)


def test_unknown_kinds_of_parts_are_unreadable() -> None:
    """A part that a later version stores is not taken for something else."""
    wire = msgspec.msgpack.decode(encode_descriptor(table()))
    for change in ({"kind": "VECTOR"}, {"state": "resting"}, {"compressed": True}):
        columns = [{**wire["columns"][0], **change}, *wire["columns"][1:]]
        with pytest.raises(DescriptorUnreadable):
            decode_descriptor(msgspec.msgpack.encode({**wire, "columns": columns}), AT)


@pytest.mark.parametrize(
    ("kind", "wire", "stored_otherwise"),
    [
        (TableDescriptor, descriptor_encoding._TableWire, {"modification_time"}),
        (Column, descriptor_encoding.ColumnWire, {"type"}),
        (Index, element_encoding.IndexWire, set()),
        (CheckConstraint, element_encoding.CheckWire, set()),
        (ForeignKey, element_encoding.ForeignKeyWire, set()),
        (Keyspace, descriptor_encoding.KeyspaceWire, set()),
    ],
)
def test_each_field_is_stored(
    kind: type[Any], wire: type[Wire], stored_otherwise: set[str]
) -> None:
    """A field without a place in the bytes would be forgotten by the next reader."""
    assert {each.name for each in fields(kind)} - {*wire.__struct_fields__} == stored_otherwise


def test_unique_indexes_of_before_are_constraints() -> None:
    index = Index(id=2, name="by_v", columns=(2,), unique=True)
    wire = msgspec.msgpack.decode(
        encode_descriptor(replace(table(), indexes=(index,), next_index_id=3))
    )
    del wire["indexes"][0]["constraint"]
    found = decode_descriptor(msgspec.msgpack.encode(wire), AT)
    assert isinstance(found, TableDescriptor)
    assert [each.constraint for each in found.indexes] == [True]


def test_logical_equality_ignores_version_time_and_lock() -> None:
    before, after = table(1, 100), table(2, 200, locked=True)
    assert logically_equal(before, after)
    assert logically_equal(before, replace(after, schema_change_job=7, comment="of a job"))
    assert not logically_equal(before, table(2, 200, name="other"))
    assert not logically_equal(before, replace(after, parameters={"gc.ttlseconds": "1"}))
    assert not logically_equal(before, SchemaDescriptor(id=104, name="orders", database_id=2))


def test_unknown_column_is_an_error() -> None:
    with pytest.raises(SQLError, match='column "z" of relation "orders" does not exist') as caught:
        table().column("z")
    assert caught.value.sqlstate == "42703"
    assert table().column("k") is KEY


def test_descriptor_promises_are_checked() -> None:
    with pytest.raises(AssertionError):
        table(columns=(KEY, replace(KEY, name="again")))
    with pytest.raises(AssertionError):
        table(columns=(replace(KEY, nullable=True),))
    with pytest.raises(AssertionError):
        replace(table(), primary_key=(5,))
    with pytest.raises(AssertionError):
        replace(table(), next_column_id=2)
