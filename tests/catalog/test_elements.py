"""Elements of a table: what is visible, what is written, and the bytes of it all."""

from __future__ import annotations

from dataclasses import replace

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.descriptors.descriptor_encoding import decode_descriptor, encode_descriptor
from tailrace.catalog.descriptors.elements import (
    CheckConstraint,
    ElementState,
    ForeignKey,
    Index,
    IndexKind,
    ReferentialAction,
    Validity,
)
from tailrace.catalog.descriptors.view_query import ViewQuery
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.kvlayer.clock import Timestamp
from tests.harness.descriptors import INT8, KEY, VALUE, table

COMING = Column(
    id=3, name="w", type=INT8, state=ElementState.WRITE_ONLY, has_default=True, default=5
)
GOING = Column(id=4, name="x", type=INT8, state=ElementState.DELETE_ONLY)


def changing(state: ElementState = ElementState.WRITE_ONLY) -> TableDescriptor:
    """`orders` with a column in each state, and a column that stands before public ones."""
    return table(columns=(replace(COMING, state=state), KEY, GOING, VALUE))


def test_elements_come_back() -> None:
    descriptor = replace(
        changing(),
        indexes=(Index(id=2, name="by_v", columns=(2,), unique=True, storing=(3,)),),
        new_primary=Index(id=3, name="pk", kind=IndexKind.PRIMARY, columns=(1,)),
        old_primary=Index(id=4, name="pk", kind=IndexKind.PRIMARY, columns=(1,)),
        next_index_id=5,
        constraints=(
            CheckConstraint(
                name="c", expression="v > 'a'", columns=(2,), validity=Validity.VALIDATING
            ),
            ForeignKey(
                name="f",
                columns=(2,),
                referenced_id=104,
                referenced_columns=(1,),
                on_delete=ReferentialAction.CASCADE,
            ),
        ),
        referenced_by=(104,),
        schema_change_job=9,
        drop_time=Timestamp(50),
        comment="c",
    )
    assert decode_descriptor(encode_descriptor(descriptor), Timestamp(100)) == descriptor


def test_a_stored_set_default_refuses() -> None:
    key = ForeignKey(name="f", columns=(2,), referenced_id=104, referenced_columns=(1,))
    body = encode_descriptor(replace(changing(), constraints=(key,)))
    stored = body.replace(b"\xa9NO ACTION", b"\xabSET DEFAULT")
    assert stored != body
    found = decode_descriptor(stored, Timestamp(100))
    assert isinstance(found, TableDescriptor)
    assert [key.on_delete for key in found.foreign_keys] == [ReferentialAction.RESTRICT]


def test_a_stored_view_keeps_the_names_of_its_columns() -> None:
    query = ViewQuery("SELECT 1 AS a, 2 AS b", ())
    body = encode_descriptor(replace(table(), primary_key=(), view=query))
    stored = body.replace(b"\xa7renames\xc2", b"\xa7renames\xc3")
    assert stored != body
    found = decode_descriptor(stored, Timestamp(100))
    assert isinstance(found, TableDescriptor) and found.view is not None
    assert found.view.text == "SELECT k, v FROM (SELECT 1 AS a, 2 AS b) AS orders (k, v)"


def test_only_public_columns_are_visible() -> None:
    descriptor = changing()
    assert [column.name for column in descriptor.visible_columns] == ["k", "v"]
    assert [column.name for column in descriptor.written_columns] == ["k", "v", "w"]
    assert descriptor.find_column("w") is None


def test_writers_write_what_readers_do_not_see() -> None:
    descriptor = changing()
    key, body = codec_for(descriptor.writable).encode_row((1, "a", 7))
    assert codec_for(descriptor).decode_row(key, body) == (1, "a")
    public = changing(ElementState.PUBLIC)
    assert codec_for(public).decode_row(key, body) == (7, 1, "a")


def test_delete_only_column_is_not_written() -> None:
    descriptor = changing(ElementState.DELETE_ONLY)
    assert descriptor.writable is descriptor
    _, body = codec_for(descriptor).encode_row((1, "a"))
    assert codec_for(descriptor).decode_columns([body]).schema.names == ["k", "v"]
