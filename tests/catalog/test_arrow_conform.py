"""Batches of any schema, made to fit a table."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.rows.arrow_conform import conform
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tests.harness.descriptors import KEY, table

NEW_YEAR = datetime(2013, 1, 1, tzinfo=UTC)
NAIVE = datetime(2013, 1, 1)


def _conformed(type_name: str, values: object) -> list[object]:
    name, _, digits = type_name.partition(" ")
    value = Column(id=2, name="v", type=ColumnType.from_sql(name, [int(n) for n in digits.split()]))
    batch = conform(table(columns=(KEY, value)), pa.record_batch({"v": values, "k": [1]}))
    assert batch.schema.names == ["k", "v"]
    assert batch.schema.field("v").type == value.type.arrow_type
    found: list[object] = batch.column("v").to_pylist()
    return found


@pytest.mark.parametrize(
    ("type_name", "given", "wanted"),
    [
        ("int8", pa.array([5], pa.int16()), 5),
        ("int8", pa.array([5.0]), 5),
        ("int8", pa.array(["5"]), 5),
        ("float8", pa.array([1.5], pa.float32()), 1.5),
        ("float8", pa.array([1]), 1.0),
        ("decimal", pa.array([1]), Decimal("1.000000000")),
        ("decimal 38 9", pa.array(["0.0000000005"]), Decimal("0.000000001")),
        ("decimal 38 9", pa.array([Decimal("0.00000000049")]), Decimal("0E-9")),
        ("string", pa.array(["a"], pa.large_string()), "a"),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("bytes", pa.array([b"ab"], pa.binary(2)), b"ab"),
        ("bytes", pa.array(["\\x00"]), b"\0"),
        ("date", pa.array([date(2013, 1, 1)], pa.date64()), date(2013, 1, 1)),
        ("date", pa.array(["2013-01-01"]), date(2013, 1, 1)),
        ("timestamptz", pa.array(["2013-01-01T00:00:00Z"]), NEW_YEAR),
        ("timestamptz", pa.array([NEW_YEAR], pa.timestamp("ns", "UTC")), NEW_YEAR),
        ("timestamptz", pa.array([NEW_YEAR], pa.timestamp("s")), NEW_YEAR),
        ("timestamp", pa.array([NEW_YEAR], pa.timestamp("us", "UTC")), NAIVE),
        ("int2", pa.array([7]), 7),
        ("float4", pa.array([0.1]), 0.10000000149011612),
        ("char", pa.array(["a "]), "a"),
        ("int8", pa.nulls(1), None),
        ("timestamptz", pa.array([None], pa.string()), None),
    ],
)  # fmt: skip
def test_column_is_cast(type_name: str, given: object, wanted: object) -> None:
    assert _conformed(type_name, given) == [wanted]


@pytest.mark.parametrize(
    ("type_name", "given", "sqlstate"),
    [
        ("int8", pa.array([1 << 63], pa.uint64()), "22003"),
        ("int8", pa.array([1.5]), "22P02"),
        ("int2", pa.array([40_000]), "22003"),
        ("float4", pa.array([1e39]), "22003"),
        ("char", pa.array(["ab"]), "22001"),
        ("bool", pa.array([1]), "42804"),
        ("string", pa.array([1]), "42804"),
        ("timestamptz", pa.array([1], pa.timestamp("ns")), "22007"),
        ("date", pa.array([1], pa.timestamp("ns")), "22007"),
        ("decimal", pa.array([Decimal(10**30)]), "22003"),
        ("decimal", pa.array(["0.0000000005"]), "22003"),
        ("decimal", pa.array([Decimal("0.00000000049")]), "22003"),
    ],
)
def test_column_that_does_not_fit_is_refused(type_name: str, given: object, sqlstate: str) -> None:
    with pytest.raises(SQLError, match='column "v"') as caught:
        _conformed(type_name, given)
    assert caught.value.sqlstate == sqlstate


def test_lacking_column_takes_its_default() -> None:
    value = Column(id=2, name="v", type=KEY.type, nullable=False, has_default=True, default=3)
    batch = conform(table(columns=(KEY, value)), pa.record_batch({"k": [1, 2]}))
    assert batch.column("v").to_pylist() == [3, 3]


def test_lacking_required_column_is_refused() -> None:
    with pytest.raises(SQLError, match='"k" of relation "orders" violates not-null'):
        conform(table(), pa.record_batch({"v": ["a"]}))


def test_unknown_column_is_refused() -> None:
    with pytest.raises(SQLError, match='column "z" of relation "orders" does not exist') as caught:
        conform(table(), pa.record_batch({"k": [1], "z": [1]}))
    assert caught.value.sqlstate == "42703"


def test_column_given_twice_is_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["k", "k"])
    with pytest.raises(SQLError, match="more than once"):
        conform(table(), twice)
