"""Values on the wire."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.api.pgwire.numeric import read_numeric, write_numeric
from tailrace.api.pgwire.wire_types import (
    BINARY,
    INPUT_TYPES,
    TEXT,
    WIRE_TYPES,
    decode_parameter,
    encoder,
    wire_type,
)
from tailrace.catalog.values.column_types import ColumnType, Datum, array_of, coerce, enum_of
from tailrace.catalog.values.enum_type import EnumType, new_members
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import CatalogName, TypeKind
from tailrace.sql.results.client_types import type_oid, user_type_of
from tests.harness.datums import column_types, datums

DATUMS: list[tuple[TypeKind, Datum, str, str]] = [
    (TypeKind.BOOL, True, "t", "01"),
    (TypeKind.INT8, -2, "-2", "fffffffffffffffe"),
    (TypeKind.FLOAT8, 1.5, "1.5", "3ff8000000000000"),
    (TypeKind.DECIMAL, Decimal("-0.50"), "-0.50", "0001ffff400000021388"),
    (TypeKind.STRING, "ü", "ü", "c3bc"),
    (TypeKind.BYTES, b"\x00\xff", "\\x00ff", "00ff"),
    (TypeKind.DATE, date(1999, 12, 31), "1999-12-31", "ffffffff"),
    (TypeKind.TIMESTAMP, datetime(2000, 1, 1, 0, 0, 1, 500_000), "2000-01-01 00:00:01.5",
     "000000000016e360"),
    (TypeKind.TIMESTAMPTZ, datetime(2000, 1, 1, tzinfo=UTC), "2000-01-01 00:00:00+00",
     "0000000000000000"),
    (TypeKind.TIME, time(10, 30, 0, 500_000), "10:30:00.5", "00000008cd15db20"),
    (TypeKind.INTERVAL, Interval(months=14, days=-3, microseconds=1), "1 year 2 mons -3 days "
     "+00:00:00.000001", "0000000000000001fffffffd0000000e"),
    (TypeKind.JSONB, '{"a": 1}', '{"a": 1}', "017b2261223a20317d"),
    (TypeKind.UUID, UUID(int=42), "00000000-0000-0000-0000-00000000002a",
     "0000000000000000000000000000002a"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "datum", "text", "binary"), DATUMS)
def test_each_type_is_written_and_read_as_postgres_does(
    kind: TypeKind, datum: Datum, text: str, binary: str
) -> None:
    wire = WIRE_TYPES[kind]
    assert wire.text(datum) == text.encode()
    assert wire.binary(datum).hex() == binary
    assert decode_parameter(text.encode(), wire.oid, TEXT, 1) == datum
    assert decode_parameter(bytes.fromhex(binary), wire.oid, BINARY, 1) == datum


def test_every_type_has_its_row() -> None:
    assert set(WIRE_TYPES) == set(TypeKind) - {TypeKind.ARRAY, TypeKind.ENUM}
    assert {wire.oid for wire in WIRE_TYPES.values()} <= set(INPUT_TYPES)


def test_an_enumeration_has_an_id_of_its_own_above_all_built_in_types() -> None:
    mood = enum_of(EnumType(114, "mood", new_members(["sad", "ok"])))
    wire, arrays = wire_type(mood), wire_type(array_of(mood))
    assert (wire.oid, arrays.oid) == (type_oid(mood), type_oid(array_of(mood)))
    assert user_type_of(wire.oid) == (114, False)
    assert user_type_of(arrays.oid) == (114, True)
    assert not {wire.oid, arrays.oid} & set(INPUT_TYPES)
    for form in (TEXT, BINARY):
        assert encoder(mood, form)("ok") == b"ok"
        assert decode_parameter(b"ok", wire.oid, form, 1) == "ok"
        raw = encoder(array_of(mood), form)(["ok", None])
        assert decode_parameter(raw, arrays.oid, form, 1) == ["ok", None]


def test_columns_of_the_catalog_have_its_types() -> None:
    oid = ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)
    letter = ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR)
    assert [wire_type(type).oid for type in (oid, array_of(oid), letter)] == [26, 1028, 18]
    assert encoder(oid, BINARY)(2**32 - 1) == b"\xff" * 4


@given(st.data(), st.sampled_from([TEXT, BINARY]))
def test_arrays_come_back(data: st.DataObject, form: int) -> None:
    element = data.draw(column_types | st.just(ColumnType(TypeKind.JSONB)))
    if element.kind is TypeKind.DECIMAL:
        element = ColumnType(TypeKind.DECIMAL)  # a declared numeric has no scale of its own
    if element.width is not None:
        element = ColumnType(TypeKind.VARCHAR)
    values = data.draw(st.lists(st.none() | datums(element), max_size=4))
    wire = wire_type(array_of(element))
    raw = (wire.text if form == TEXT else wire.binary)(values)
    assert decode_parameter(raw, wire.oid, form, 1) == values


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (1e15, "1e+15"), (123456789012345.0, "123456789012345"), (1e-5, "1e-05"),
     (1234567890123456.0, "1.234567890123456e+15"), (float("nan"), "NaN"), (-0.0, "-0"),
     (float("-inf"), "-Infinity"), (1e300, "1e+300"), (0.1, "0.1")],
)  # fmt: skip
def test_floats_are_written_with_the_digits_they_need(value: float, text: str) -> None:
    assert WIRE_TYPES[TypeKind.FLOAT8].text(value) == text.encode()


@pytest.mark.parametrize(
    ("given", "text"),
    [("0.1", "0.1"), ("1e6", "1e+06"), ("123456.7", "123456.7"), ("1234567", "1.234567e+06"),
     ("3.4028235e38", "3.4028235e+38"), ("NaN", "NaN"), ("1e-45", "1e-45")],
)  # fmt: skip
def test_float4_is_written_with_its_own_digits(given: str, text: str) -> None:
    datum = coerce(ColumnType(TypeKind.FLOAT4), given)
    assert WIRE_TYPES[TypeKind.FLOAT4].text(datum) == text.encode()


@given(st.datetimes(), st.integers(0, 6))
def test_moments_are_written_as_isoformat_writes_them(value: datetime, digits: int) -> None:
    value = value.replace(microsecond=value.microsecond // 10**digits * 10**digits)
    written = value.isoformat(" ")
    text = written.rstrip("0") if value.microsecond else written
    assert WIRE_TYPES[TypeKind.TIMESTAMP].text(value) == text.encode()
    assert WIRE_TYPES[TypeKind.TIMESTAMPTZ].text(value.replace(tzinfo=UTC)) == f"{text}+00".encode()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=9, min_value=-(10**28)))
def test_numeric_comes_back_with_all_its_digits(value: Decimal) -> None:
    back = read_numeric(write_numeric(value))
    assert back == value
    assert back.as_tuple().exponent == value.as_tuple().exponent


@given(st.sampled_from(sorted(INPUT_TYPES)), st.binary(max_size=40))
def test_any_bytes_are_a_value_or_an_error(oid: int, raw: bytes) -> None:
    try:
        decode_parameter(raw, oid, BINARY, 1)
    except SQLError as error:
        # What is no JSON is bad text, in its binary form too.
        assert error.sqlstate in ("22P03", "22021", "22P02", "22P05", "22008"), error
