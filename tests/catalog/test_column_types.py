"""Types by name, and values made canonical."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.catalog.values.column_types import ColumnType, Datum, coerce
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tests.harness.datums import SIMPLE_TYPES, all_types, datums

INT8 = ColumnType(TypeKind.INT8)
STRING = ColumnType(TypeKind.STRING)
MONEY = ColumnType(TypeKind.DECIMAL, 5, 2)
TIMESTAMP = ColumnType(TypeKind.TIMESTAMP)
TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)


@given(st.data())
def test_canonical_datums_stay_themselves(data: st.DataObject) -> None:
    type = data.draw(all_types)
    datum = data.draw(datums(type))
    coerced = coerce(type, datum)
    assert (coerced, coerced.__class__) == (datum, datum.__class__)


@pytest.mark.parametrize(
    ("name", "arguments", "sql_name"),
    [
        ("bigint", (), "INT8"),
        ("Double  Precision", (), "FLOAT8"),
        ("timestamp with time zone", (6,), "TIMESTAMPTZ"),
        ("numeric", (), "DECIMAL(38,9)"),
        ("decimal", (10,), "DECIMAL(10,0)"),
        ("dec", (10, 2), "DECIMAL(10,2)"),
        ("float", (53,), "FLOAT8"),
        ("text", (), "STRING"),
        ("smallint", (), "INT2"),
        ("int4", (), "INT4"),
        ("integer", (), "INT8"),
        ("character varying", (), "VARCHAR"),
        ("varchar", (10,), "VARCHAR(10)"),
        ("character", (), "CHAR(1)"),
        ("bpchar", (3,), "CHAR(3)"),
        ("time", (6,), "TIME"),
        ("timestamp without time zone", (3,), "TIMESTAMP(3)"),
        ("timestamptz", (9,), "TIMESTAMPTZ"),
        ("time[]", (0,), "TIME(0)[]"),
        ("Interval", (), "INTERVAL"),
        ("json", (), "JSONB"),
        ("decimal[]", (4, 1), "DECIMAL(4,1)[]"),
    ],
)
def test_type_is_found_by_name(name: str, arguments: tuple[int, ...], sql_name: str) -> None:
    assert ColumnType.from_sql(name, arguments).sql_name == sql_name


@pytest.mark.parametrize(
    ("name", "arguments", "sqlstate"),
    [
        ("geometry", (), "42704"),
        ("timetz", (), "0A000"),
        ("int8[][]", (), "0A000"),
        ("interval", (3,), "0A000"),
        ("varchar", (0,), "22023"),
        ("varchar", (10, 2), "0A000"),
        ("int4", (4,), "0A000"),
        ("decimal", (39, 0), "22023"),
        ("decimal", (10, 11), "22023"),
        ("decimal", (0,), "22023"),
    ],
)
def test_unknown_type_is_refused(name: str, arguments: tuple[int, ...], sqlstate: str) -> None:
    with pytest.raises(SQLError) as caught:
        ColumnType.from_sql(name, arguments)
    assert caught.value.sqlstate == sqlstate


NOON = datetime(2013, 11, 27, 12, tzinfo=UTC)
PLUS_TWO = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("type_name", "value", "datum"),
    [
        ("bool", "YES", True),
        ("bool", "f", False),
        ("int8", " -12 ", -12),
        ("int8", 3.0, 3),
        ("int8", Decimal("4.00"), 4),
        ("float8", 7, 7.0),
        ("float4", "0.1", 0.10000000149011612),
        ("real", 16_777_217, 16_777_216.0),
        ("float8", Decimal("0.1"), 0.1),
        ("float8", "-Infinity", float("-inf")),
        ("string", "µ", "µ"),
        ("bytes", "\\xDEADbeef", b"\xde\xad\xbe\xef"),
        ("bytes", "a\\\\b\\000c", b"a\\b\x00c"),
        ("bytes", bytearray(b"x"), b"x"),
        ("date", "2013-11-27", date(2013, 11, 27)),
        ("date", datetime(2013, 11, 27), date(2013, 11, 27)),
        ("timestamp", "2013-11-27 05:00", datetime(2013, 11, 27, 5)),
        ("timestamp", "2013-11-27T05:00:00Z", datetime(2013, 11, 27, 5)),
        ("timestamp", date(2013, 11, 27), datetime(2013, 11, 27)),
        ("timestamp", datetime(2013, 11, 27, 5, tzinfo=PLUS_TWO), datetime(2013, 11, 27, 3)),
        ("timestamptz", "2013-11-27 05:00+02", datetime(2013, 11, 27, 3, tzinfo=UTC)),
        ("timestamptz", "2013-11-27 05:00 UTC", datetime(2013, 11, 27, 5, tzinfo=UTC)),
        ("timestamptz", "2013-11-27 12:00:00.000000000", NOON),
        ("timestamptz", "2013-11-27 12:00:00.000000594Z", NOON.replace(microsecond=1)),
        ("timestamptz", "2013-11-27 11:59:59.9999995+00", NOON),
        ("timestamp", "2013-11-27 05:00:00.1234564", datetime(2013, 11, 27, 5, 0, 0, 123_456)),
        ("time", "04:05:06.9999999", time(4, 5, 7)),
        ("timestamptz", datetime(2013, 11, 27, 5), datetime(2013, 11, 27, 5, tzinfo=UTC)),
        ("time", "4:05", time(4, 5)),
        ("time", "23:59:59.5", time(23, 59, 59, 500_000)),
        ("interval", timedelta(days=-1, seconds=5), Interval(days=-1, microseconds=5_000_000)),
        ("jsonb", ' {"b":1, "aa":[1.50,true,null], "b": 2}', '{"b": 2, "aa": [1.50, true, null]}'),
        ("jsonb", '{"bb": 1, "a": 2, "µ": 3}', '{"a": 2, "bb": 1, "µ": 3}'),
        ("jsonb", {"a": [1, None]}, '{"a": [1, null]}'),
        ("int8[]", "{1,NULL,3}", [1, None, 3]),
        ("string[]", '{a,"b,c"}', ["a", "b,c"]),
        ("time", "05:56:55.928+00", time(5, 56, 55, 928_000)),  # Hibernate's LocalTime, by JDBC
        # node-postgres writes a Date so, whatever the type of the column is.
        ("date", "2013-02-27T01:00:00.125+02:00", date(2013, 2, 27)),
        ("timestamp", "2013-11-27T05:00:00.125+02:00", datetime(2013, 11, 27, 5, 0, 0, 125_000)),
        ("uuid", "{00000000-0000-0000-0000-00000000000A}", UUID(int=10)),
    ],
)  # fmt: skip
def test_value_becomes_canonical(type_name: str, value: object, datum: Datum) -> None:
    coerced = coerce(ColumnType.from_sql(type_name), value)
    assert (coerced, coerced.__class__) == (datum, datum.__class__)


@pytest.mark.parametrize(
    ("type_name", "value", "sqlstate"),
    [
        ("bool", 1, "42804"),
        ("int2", 32_768, "22003"),
        ("int4", "-2147483649", "22003"),
        ("int4", 2.0**31, "22003"),
        ("char", "ab", "22001"),
        ("bool", "o", "22P02"),
        ("int8", True, "42804"),
        ("int8", 1 << 63, "22003"),
        ("int8", "9223372036854775808", "22003"),
        ("int8", Decimal("1E+999999"), "22003"),
        ("int8", float("nan"), "22003"),
        ("int8", 1.5, "22P02"),
        ("int8", "1_000", "22P02"),
        ("int8", "١", "22P02"),
        ("float8", "abc", "22P02"),
        ("float4", 1e39, "22003"),
        ("float8", 10**400, "22003"),
        ("decimal", "NaN", "22003"),
        ("decimal", "1E+999999999", "22003"),
        ("string", 5, "42804"),
        ("string", "a\0b", "22021"),
        ("string", "\ud800", "22021"),
        ("bytes", "\\xabc", "22P02"),
        ("bytes", "\\9", "22P02"),
        ("bytes", 5, "42804"),
        ("date", "2013-02-29", "22007"),
        ("timestamp", "yesterday", "22007"),
        ("timestamp", "9999-12-31 23:59:59.9999996", "22008"),
        ("time", "23:59:59.9999996", "22008"),
        ("timestamptz", "0001-01-01 00:00+05", "22008"),
        ("timestamptz", 5, "42804"),
        ("uuid", "12", "22P02"),
        ("time", "noon", "22007"),
        ("time", "24:00:01", "22008"),
        ("time", 5, "42804"),
        ("interval", "soon", "22007"),
        ("interval", "1 parsec", "22007"),
        ("interval", "9999999999 months", "22015"),
        ("interval", "04:60", "22015"),
        ("interval", 5, "42804"),
        ("jsonb", "{a: 1}", "22P02"),
        ("jsonb", "NaN", "22P02"),
        ("jsonb", '"\\u0000"', "22P05"),
        ("jsonb", "[" * 100_000, "54001"),
        ("jsonb", b"{}", "42804"),
        ("int8[]", "{1,x}", "22P02"),
        ("int8[]", "1,2", "22P02"),
        ("int2[]", [32_768], "22003"),
    ],
)
def test_value_that_does_not_fit_is_refused(type_name: str, value: object, sqlstate: str) -> None:
    with pytest.raises(SQLError) as caught:
        coerce(ColumnType.from_sql(type_name), value, column="c")
    assert caught.value.sqlstate == sqlstate
    assert caught.value.message.startswith('column "c": ')


@pytest.mark.parametrize(
    ("value", "rounded"),
    [("1.005", "1.01"), ("-1.005", "-1.01"), ("1.004", "1.00"), ("-0.001", "0.00"), (2, "2.00")],
)
def test_decimal_rounds_half_away_from_zero(value: object, rounded: str) -> None:
    assert str(coerce(MONEY, value)) == rounded


@pytest.mark.parametrize(
    ("name", "text", "stored"),
    [("varchar", "abc ", "abc "), ("varchar", "abcd    ", "abcd"), ("char", "a ", "a")],
)
def test_only_blanks_may_go_beyond_the_width(name: str, text: str, stored: str) -> None:
    assert coerce(ColumnType.from_sql(name, (4,)), text) == stored


@pytest.mark.parametrize("value", ["999.995", "1000", "-1000"])
def test_decimal_overflow_is_refused(value: str) -> None:
    with pytest.raises(SQLError, match="decimal field overflow") as caught:
        coerce(MONEY, value)
    assert caught.value.detail is not None
    assert "less than 10^3" in caught.value.detail


def test_null_is_null_in_every_type() -> None:
    assert {coerce(type, None) for type in SIMPLE_TYPES} == {None}
