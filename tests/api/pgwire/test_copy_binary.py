"""Binary COPY reads whole columns; what it reads is what reading value by value gives."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random
from uuid import UUID

import pyarrow as pa
import pytest

from tailrace.api.pgwire.copy_formats.batches import BatchBuilder
from tailrace.api.pgwire.copy_formats.binary import HEADER, TRAILER, BinaryReader
from tailrace.api.pgwire.wire_types import wire_type
from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.type_kinds import TypeKind

SAMPLES: dict[TypeKind, list[Datum]] = {
    TypeKind.BOOL: [True, False],
    TypeKind.INT2: [-(1 << 15), 0, (1 << 15) - 1],
    TypeKind.INT4: [-(1 << 31), 7, (1 << 31) - 1],
    TypeKind.INT8: [-(1 << 63), 7, (1 << 63) - 1],
    TypeKind.FLOAT4: [0.5, -2.0],
    TypeKind.FLOAT8: [0.1, -1e300, float("inf")],
    TypeKind.DECIMAL: [Decimal("1.50"), Decimal("-7.00")],
    TypeKind.STRING: ["", "ü", "a\nb"],
    TypeKind.BYTES: [b"", b"\0\xff"],
    TypeKind.DATE: [date.min, date(1999, 12, 31), date.max],
    TypeKind.TIMESTAMP: [datetime.min, datetime(2000, 1, 1, 0, 0, 0, 1), datetime.max],
    TypeKind.UUID: [UUID(int=7)],
}


def column(kind: TypeKind, *, nullable: bool = True, width: int | None = None) -> Column:
    type = ColumnType(kind, width=width)
    if kind is TypeKind.DECIMAL:
        type = ColumnType(kind, precision=10, scale=2)
    return Column(id=1, name="v", type=type, nullable=nullable)


def field(raw: bytes | None) -> bytes:
    count = b"\0\1"
    return count + b"\xff\xff\xff\xff" if raw is None else count + len(raw).to_bytes(4) + raw


def read(column: Column, raws: list[bytes | None], pieces: int = 1000) -> pa.Table:
    reader = BinaryReader(BatchBuilder("t", (column,)))
    data = HEADER + b"".join(map(field, raws)) + TRAILER
    batches = [b for at in range(0, len(data), pieces) for b in reader.feed(data[at : at + pieces])]
    batches += reader.end()
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("kind", SAMPLES)
def test_columns_are_what_was_written(kind: TypeKind) -> None:
    """With NULLs among them and in pieces, by both ways of reading them."""
    chosen = column(kind)
    values = [*SAMPLES[kind], None] * 3
    Random(1).shuffle(values)
    wire = wire_type(chosen.type)
    raws = [None if value is None else wire.binary(value) for value in values]
    for pieces in (1000, 7):
        found = read(chosen, raws, pieces)
        assert found.schema.field(0).type == chosen.type.arrow_type
        assert found.column(0).to_pylist() == values


@pytest.mark.parametrize(
    ("chosen", "raw", "sqlstate"),
    [
        (column(TypeKind.INT4), bytes(8), "22P03"),
        (column(TypeKind.STRING), b"\xff", "22021"),
        (column(TypeKind.STRING), b"a\0b", "22021"),
        (column(TypeKind.VARCHAR, width=2), b"abc", "22001"),
        (column(TypeKind.DATE), b"\x7f\xff\xff\xff", "22P03"),
        (column(TypeKind.TIMESTAMP), b"\x7f" + b"\xff" * 7, "22P03"),
        (column(TypeKind.INT8, nullable=False), None, "23502"),
    ],
)
def test_one_bad_value_is_named(chosen: Column, raw: bytes | None, sqlstate: str) -> None:
    """Behind two good ones, of the same column."""
    good = {TypeKind.DATE: 4, TypeKind.INT4: 4, TypeKind.TIMESTAMP: 8, TypeKind.INT8: 8}
    fine = bytes(good[chosen.type.kind]) if chosen.type.kind in good else b"ok"
    with pytest.raises(SQLError) as caught:
        read(chosen, [fine, fine, raw])
    assert caught.value.sqlstate == sqlstate
    assert caught.value.detail is not None
    assert caught.value.detail.startswith("COPY t, line 3, column v")
