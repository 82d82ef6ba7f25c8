"""Columns are written as their values would be, one by one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from tailrace.api.pgwire.column_texts import column_texts
from tailrace.api.pgwire.wire_types import TEXT, encoder
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.sql import Result, ResultColumn

VALUES: list[tuple[ColumnType, list[Datum]]] = [
    (ColumnType(TypeKind.BOOL), [True, False]),
    (ColumnType(TypeKind.INT8), [-(2**63), 0, 2**63 - 1]),
    (ColumnType(TypeKind.INT2), [-1, 1]),
    (ColumnType(TypeKind.FLOAT8), [0.1, -0.0, 1e300, 1e15, 123456.0, float("nan")]),
    (ColumnType(TypeKind.FLOAT4), [0.5, 1e6]),
    (ColumnType(TypeKind.DECIMAL, 20, 9), [Decimal("1.000000000"), Decimal("0E-9")]),
    (ColumnType(TypeKind.STRING), ["", "é", "a\tb"]),
    (ColumnType(TypeKind.BYTES), [b"", b"\x00\xff"]),
    (ColumnType(TypeKind.DATE), [date(1, 1, 1), date(2020, 2, 29), date(9999, 12, 31)]),
    (
        ColumnType(TypeKind.TIMESTAMP),
        [
            datetime(1, 1, 1),
            datetime(2020, 1, 1, 10, 20, 30, 120000),
            datetime(1969, 1, 1, 0, 0, 10),
        ],
    ),
    (
        ColumnType(TypeKind.TIMESTAMPTZ),
        [datetime(2020, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 1, tzinfo=UTC)],
    ),
    (ColumnType(TypeKind.UUID), [UUID(int=7)]),
]


@pytest.mark.parametrize(("type", "values"), VALUES, ids=lambda part: f"{part}"[:20])
def test_columns_are_written_as_values_are(type: ColumnType, values: list[Datum]) -> None:
    rows = [(value,) for value in [None, *values, None]]
    table = Result(tag="", columns=(ResultColumn("c", type),), rows=rows).fetch_arrow()
    write = encoder(type, TEXT)
    wanted = [None if value is None else write(value).decode() for (value,) in rows]
    assert column_texts(type, table.column(0)).to_pylist() == wanted
    assert column_texts(type, table.slice(1, 1).column(0)).to_pylist() == wanted[1:2]
    assert column_texts(type, table.slice(0, 0).column(0)).to_pylist() == []
