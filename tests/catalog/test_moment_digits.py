"""TIMESTAMP(3) and its kin: what is stored has the digits of the type."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pyarrow as pa
import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.rows.arrow_conform import conform
from tailrace.catalog.values.column_types import ColumnType, coerce
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.physical import from_physical, physical_writer
from tests.harness.descriptors import table

WHOLE = datetime(2000, 1, 1)


@pytest.mark.parametrize(
    ("name", "digits", "value", "datum"),
    [
        ("timestamp", 3, "2024-02-29 23:59:59.9995", datetime(2024, 3, 1)),
        ("timestamp", 3, "2024-02-29 23:59:59.999499", datetime(2024, 2, 29, 23, 59, 59, 999_000)),
        ("timestamp", 0, "1999-12-31 23:59:59.5", datetime(1999, 12, 31, 23, 59, 59)),
        ("timestamp", 0, datetime(2000, 1, 1, 0, 0, 0, 500_000), datetime(2000, 1, 1, 0, 0, 1)),
        ("timestamptz", 1, "1969-07-20 20:17:40.25+00",
         datetime(1969, 7, 20, 20, 17, 40, 200_000, tzinfo=UTC)),
        ("time", 2, "04:05:06.785", time(4, 5, 6, 790_000)),
        ("timestamp", 6, "2024-01-01 00:00:00.000001", datetime(2024, 1, 1, microsecond=1)),
    ],
)  # fmt: skip
def test_moment_is_rounded(name: str, digits: int, value: object, datum: object) -> None:
    type = ColumnType.from_sql(name, (digits,))
    assert coerce(type, value) == datum
    assert from_physical(type, physical_writer(type, "c")(value)) == datum


@pytest.mark.parametrize(
    ("name", "value"), [("time", "23:59:59.96"), ("timestamp", "9999-12-31 23:59:59.96")]
)
def test_moment_beyond_the_last_is_refused(name: str, value: str) -> None:
    with pytest.raises(SQLError) as caught:
        coerce(ColumnType.from_sql(name, (1,)), value)
    assert caught.value.sqlstate == "22008"


def test_expressions_have_all_digits() -> None:
    assert ColumnType.from_sql("timestamp", (3,)).broad == ColumnType.from_sql("timestamp")


@pytest.mark.parametrize("brackets", ["", "[]"])
def test_batches_are_rounded(brackets: str) -> None:
    type = ColumnType.from_sql(f"timestamp{brackets}", (3,))
    key = Column(id=1, name="k", type=ColumnType.from_sql("int8"), nullable=False)
    given = datetime(2000, 1, 1, microsecond=499)
    values = pa.array([[given] if brackets else given], type.arrow_type)
    batch = pa.record_batch({"k": [1], "v": values})
    conformed = conform(table(columns=(key, Column(id=2, name="v", type=type))), batch)
    assert conformed.column("v").to_pylist() == [[WHOLE] if brackets else WHOLE]
