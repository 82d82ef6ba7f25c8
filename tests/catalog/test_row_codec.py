"""Rows as keys and bodies: round trips, order, versions, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import RowCodec, RowUnreadable, codec_for
from tailrace.catalog.values.arrow_columns import column_datums
from tailrace.catalog.values.column_types import ColumnType, Datum, array_of
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.type_kinds import TypeKind
from tests.harness.datums import all_types, column_types, datums
from tests.harness.descriptors import KEY, table

INT8 = ColumnType(TypeKind.INT8)
Row = tuple[Datum, ...]


def _table(types: list[ColumnType], key_length: int) -> TableDescriptor:
    columns = tuple(
        Column(id=place, name=f"c{place}", type=type, nullable=place > key_length)
        for place, type in enumerate(types, start=1)
    )
    return replace(
        table(columns=columns), primary_key=tuple(range(1, key_length + 1)), next_column_id=99
    )


@st.composite
def tables_with_rows(draw: st.DrawFn, *, most: int = 5) -> tuple[TableDescriptor, list[Row]]:
    types = draw(st.lists(column_types, min_size=1, max_size=5))
    key_length = draw(st.integers(1, min(3, len(types))))
    types += draw(st.lists(all_types, max_size=4))
    fields = [
        datums(type) if place < key_length else st.none() | datums(type)
        for place, type in enumerate(types)
    ]
    rows = draw(st.lists(st.tuples(*fields), min_size=1, max_size=most))
    return _table(types, key_length), rows


def _rows(columns: Sequence[Column], batch: pa.RecordBatch) -> list[Row]:
    found = [
        column_datums(column.type, array)
        for column, array in zip(columns, batch.columns, strict=True)
    ]
    return list(zip(*found, strict=True))


@given(tables_with_rows())
def test_row_comes_back(case: tuple[TableDescriptor, list[Row]]) -> None:
    descriptor, rows = case
    codec = RowCodec(descriptor)
    for row in rows:
        key, body = codec.encode_row(row)
        assert descriptor.primary_span.contains(key)
        assert codec.decode_row(key, body) == row
        assert codec.encode_key(row[: len(descriptor.primary_key)]) == key


@given(tables_with_rows())
def test_key_comes_back(case: tuple[TableDescriptor, list[Row]]) -> None:
    descriptor, rows = case
    codec = RowCodec(descriptor)
    key_length = len(descriptor.primary_key)
    keys = [codec.encode_row(row)[0] for row in rows]
    wanted = [row[:key_length] for row in rows]
    assert [codec.decode_key(key) for key in keys] == wanted
    columns = codec.decode_keys(keys)
    assert _rows(descriptor.key_columns, columns) == wanted


@given(st.data())
def test_keys_sort_as_tuples(data: st.DataObject) -> None:
    types = data.draw(st.lists(column_types, min_size=1, max_size=3))
    key = st.tuples(*[datums(type) for type in types])
    # Near neighbours are where an encoding goes wrong, so half of the pairs share a beginning.
    first, second = data.draw(key), data.draw(key)
    shared = data.draw(st.integers(0, len(types)))
    second = first[:shared] + second[shared:]
    codec = RowCodec(_table(types, len(types)))
    encoded = codec.encode_key(first), codec.encode_key(second)
    assert (encoded[0] < encoded[1]) == (first < second)
    assert (encoded[0] == encoded[1]) == (first == second)


@given(tables_with_rows())
def test_columns_and_rows_agree(case: tuple[TableDescriptor, list[Row]]) -> None:
    """The columnar paths write the same bytes and read the same values as the row paths."""
    descriptor, rows = case
    codec = RowCodec(descriptor)
    pairs = [codec.encode_row(row) for row in rows]
    batch = codec.decode_columns([body for _, body in pairs])
    assert batch.schema.equals(codec.arrow_schema)
    batch.validate(full=True)
    assert _rows(descriptor.visible_columns, batch) == rows
    assert list(zip(*codec.encode_columns(batch), strict=True)) == pairs


@given(tables_with_rows(most=20), st.data())
def test_slices_of_batches_encode_alike(
    case: tuple[TableDescriptor, list[Row]], data: st.DataObject
) -> None:
    descriptor, rows = case
    codec = RowCodec(descriptor)
    batch = codec.decode_columns([codec.encode_row(row)[1] for row in rows])
    start = data.draw(st.integers(0, len(rows)))
    length = data.draw(st.integers(0, len(rows) - start))
    pairs = [codec.encode_row(row) for row in rows[start : start + length]]
    assert list(zip(*codec.encode_columns(batch.slice(start, length)), strict=True)) == pairs


NAMED = Column(id=2, name="v", type=ColumnType(TypeKind.STRING))
ADDED = Column(id=3, name="w", type=INT8, has_default=True, default=9, missing=7)
BEFORE = table(1, columns=(KEY, NAMED))
AFTER = table(2, columns=(KEY, NAMED, ADDED))


def test_missing_column_reads_its_missing_value() -> None:
    key, body = codec_for(BEFORE).encode_row((1, "x"))
    assert codec_for(AFTER).decode_row(key, body) == (1, "x", 7)
    assert codec_for(AFTER).decode_columns([body, body]).column("w").to_pylist() == [7, 7]


def test_missing_arrays_are_null() -> None:
    """Also those of types that are extensions to Arrow."""
    _, body = codec_for(BEFORE).encode_row((1, "x"))
    for kind in set(TypeKind) - {TypeKind.ARRAY, TypeKind.ENUM, TypeKind.DECIMAL}:
        added = Column(id=3, name="w", type=array_of(ColumnType(kind)))
        after = codec_for(table(2, columns=(KEY, NAMED, added)))
        assert after.decode_columns([body, body]).column("w").to_pylist() == [None, None], kind


def test_unknown_column_is_left_out() -> None:
    key, body = codec_for(AFTER).encode_row((1, "x", 5))
    assert codec_for(BEFORE).decode_row(key, body) == (1, "x")
    assert codec_for(BEFORE).decode_columns([body]).to_pylist() == [{"k": 1, "v": "x"}]


def test_stored_null_is_not_missing() -> None:
    key, body = codec_for(AFTER).encode_row((1, None, None))
    assert codec_for(AFTER).decode_row(key, body) == (1, None, None)


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_rows_of_several_versions_mix(older: list[bool]) -> None:
    before, after = codec_for(BEFORE), codec_for(AFTER)
    bodies = [
        before.encode_row((n, "é"))[1] if old else after.encode_row((n, None, n))[1]
        for n, old in enumerate(older)
    ]
    rows = codec_for(AFTER).decode_columns(bodies).to_pylist()
    assert rows == [
        {"k": n, "v": "é" if old else None, "w": 7 if old else n} for n, old in enumerate(older)
    ]


def test_mixed_rows_of_compensating_lengths_are_told_apart() -> None:
    """Two and four columns make as many elements as three and three, and must not be dealt so."""
    four = table(3, columns=(*AFTER.columns, Column(id=4, name="x", type=INT8)))
    bodies = [
        codec_for(BEFORE).encode_row((1, "a"))[1],
        codec_for(four).encode_row((2, "b", 3, 4))[1],
        codec_for(AFTER).encode_row((5, "c", 6))[1],
    ]
    for order in ([0, 1], [2, 0, 1], [2, 1, 0], [1, 0], [0, 2, 1]):
        batch = codec_for(AFTER).decode_columns([bodies[place] for place in order])
        wanted = [(1, "a", 7), (2, "b", 3), (5, "c", 6)]
        assert [tuple(row.values()) for row in batch.to_pylist()] == [wanted[p] for p in order]


def test_column_order_is_the_descriptors() -> None:
    swapped = replace(BEFORE, columns=(NAMED, KEY))
    key, body = codec_for(swapped).encode_row(("x", 1))
    assert msgspec.msgpack.decode(body) == [1, 1, 2, "x"]
    assert codec_for(swapped).decode_row(key, body) == ("x", 1)
    assert codec_for(swapped).decode_columns([body]).to_pylist() == [{"v": "x", "k": 1}]
    batch = codec_for(swapped).decode_columns([body])
    assert codec_for(swapped).encode_columns(batch) == ([key], [body])


def test_no_rows_make_an_empty_batch() -> None:
    codec = codec_for(AFTER)
    assert codec.decode_columns([]).num_rows == 0
    assert codec.decode_keys([]).num_rows == 0
    assert codec.encode_columns(codec.decode_columns([])) == ([], [])


def test_negative_zero_survives_in_the_body() -> None:
    codec = RowCodec(_table([ColumnType(TypeKind.FLOAT8)], 1))
    key, body = codec.encode_row((-0.0,))
    assert str(codec.decode_row(key, body)[0]) == "-0.0"
    assert str(codec.decode_key(key)[0]) == "0.0"
    assert key == codec.encode_key((0.0,))


def test_nan_is_one_key_below_all() -> None:
    codec = RowCodec(_table([ColumnType(TypeKind.FLOAT8)], 1))
    assert codec.encode_key((float("nan"),)) == codec.encode_key((-float("nan"),))
    assert codec.encode_key((float("nan"),)) < codec.encode_key((float("-inf"),))


def test_null_in_key_is_refused() -> None:
    codec = codec_for(BEFORE)
    for refuse in (
        lambda: codec.encode_row((None, "x")),
        lambda: codec.encode_key((None,)),
        lambda: codec.encode_columns(pa.record_batch({"k": [1, None], "v": ["a", "b"]})),
    ):
        with pytest.raises(SQLError, match='"k" of relation "orders" violates not-null') as caught:
            refuse()
        assert caught.value.sqlstate == "23502"


def test_year_out_of_range_is_refused() -> None:
    codec = RowCodec(_table([INT8, ColumnType(TypeKind.TIMESTAMPTZ)], 1))
    far = pa.array([1 << 62], pa.int64()).cast(pa.timestamp("us", "UTC"))
    with pytest.raises(SQLError, match="TIMESTAMPTZ out of range") as caught:
        codec.encode_columns(pa.record_batch({"c1": [1], "c2": far}))
    assert caught.value.sqlstate == "22008"


def test_nul_in_a_column_of_text_is_refused() -> None:
    with pytest.raises(SQLError, match=r'column "v".*0x00') as caught:
        codec_for(BEFORE).encode_columns(pa.record_batch({"k": [1, 2], "v": ["a", "b\0"]}))
    assert caught.value.sqlstate == "22021"


def test_foreign_bytes_are_unreadable() -> None:
    codec = codec_for(BEFORE)
    key, body = codec.encode_row((1, "x"))
    for decode in (
        lambda: codec.decode_row(key, b"\xc1"),
        lambda: codec.decode_columns([body, b"\xc1"]),
        lambda: codec.decode_key(b"t123"),
        lambda: codec.decode_key(key[:-1]),
        lambda: codec.decode_key(key + b"\0"),
        lambda: codec.decode_keys([key, key[:-1]]),
    ):
        with pytest.raises(RowUnreadable):
            decode()


def test_codec_of_another_store_is_not_reused() -> None:
    other = table(1, columns=(KEY, replace(NAMED, name="other")))
    assert codec_for(BEFORE).arrow_schema.names == ["k", "v"]
    assert codec_for(other).arrow_schema.names == ["k", "other"]
    assert codec_for(replace(other)) is codec_for(other)


def test_decoded_datums_are_canonical() -> None:
    codec = RowCodec(_table([INT8, ColumnType(TypeKind.TIMESTAMPTZ)], 1))
    moment = datetime(2013, 11, 27, 5, tzinfo=UTC)
    key, body = codec.encode_row((1, "2013-11-27 05:00"))
    decoded = codec.decode_row(key, body)[1]
    assert decoded == moment
    assert isinstance(decoded, datetime)
    assert decoded.tzinfo is UTC
