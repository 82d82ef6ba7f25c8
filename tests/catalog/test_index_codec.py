"""Entries of indexes: their order, their uniqueness, and what they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.elements import Index, IndexKind
from tailrace.catalog.rows.index_codec import IndexCodec
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import Datum
from tailrace.catalog.values.errors import SQLError
from tests.harness.descriptors import KEY, VALUE, table

BY_VALUE = Index(id=2, name="by_v", columns=(2,))


def orders(index: Index) -> TableDescriptor:
    return replace(table(columns=(KEY, VALUE)), indexes=(index,), next_index_id=9)


def body_of(*row: Datum) -> bytes:
    return codec_for(orders(BY_VALUE)).encode_row(row)[1]


def keys(index: Index, *rows: tuple[Datum, ...]) -> list[bytes]:
    codec = IndexCodec(orders(index), index)
    return [key for key, _ in codec.entries([body_of(*row) for row in rows])]


def test_entries_sort_as_their_values_null_first() -> None:
    found = keys(BY_VALUE, (9, None), (1, ""), (2, "a"), (3, "a"), (1, "b"))
    assert found == sorted(found)
    assert len(set(found)) == 5


def test_unique_index_has_room_for_one_row_of_a_value() -> None:
    first, second = keys(replace(BY_VALUE, unique=True), (1, "a"), (2, "a"))
    assert first == second


def test_nulls_are_never_equal() -> None:
    first, second = keys(replace(BY_VALUE, unique=True), (1, None), (2, None))
    assert first != second


def test_entry_holds_what_the_index_covers() -> None:
    descriptor = orders(BY_VALUE)
    codec = IndexCodec(descriptor, BY_VALUE)
    key, body = codec.entry(body_of(7, "x"))
    assert codec.span.contains(key)
    assert codec.values(body) == ("x",)
    assert codec_for(descriptor).decode_row(b"", body) == (7, "x")


def test_new_primary_holds_whole_rows_under_its_own_key() -> None:
    index = Index(id=3, name="pk", kind=IndexKind.PRIMARY, columns=(2,), unique=True)
    codec = IndexCodec(orders(index), index)
    body = body_of(7, "x")
    assert codec.entry(body)[1] == body
    with pytest.raises(SQLError) as caught:
        codec.entry(body_of(7, None))
    assert caught.value.sqlstate == "23502"
