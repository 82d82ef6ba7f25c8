"""Hypothesis strategies for column types and their datums."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from tailrace.catalog.column_types import INT8_MAX, INT8_MIN, ColumnType, Datum
from tailrace.catalog.type_kinds import TypeKind

SIMPLE_TYPES = [ColumnType(kind) for kind in TypeKind if kind is not TypeKind.DECIMAL]


@st.composite
def decimal_types(draw: st.DrawFn) -> ColumnType:
    precision = draw(st.integers(1, 38))
    return ColumnType(TypeKind.DECIMAL, precision, draw(st.integers(0, precision)))


column_types = st.one_of(st.sampled_from(SIMPLE_TYPES), decimal_types())


def decimals(type: ColumnType) -> st.SearchStrategy[Decimal]:
    precision, scale = type.decimal
    most = 10**precision - 1

    def scaled(coefficient: int) -> Decimal:
        digits = tuple(map(int, str(abs(coefficient))))
        return Decimal((int(coefficient < 0), digits, -scale))

    return st.integers(-most, most).map(scaled)


def datums(type: ColumnType) -> st.SearchStrategy[Datum]:
    """Canonical datums of a type, NULL and NaN excepted."""
    match type.kind:
        case TypeKind.BOOL:
            return st.booleans()
        case TypeKind.INT8:
            return st.integers(INT8_MIN, INT8_MAX)
        case TypeKind.FLOAT8:
            return st.floats(allow_nan=False)
        case TypeKind.DECIMAL:
            return decimals(type)
        case TypeKind.STRING:
            return st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
        case TypeKind.BYTES:
            return st.binary(max_size=40)
        case TypeKind.DATE:
            return st.dates()
        case TypeKind.TIMESTAMP:
            return st.datetimes()
        case TypeKind.TIMESTAMPTZ:
            return st.datetimes(timezones=st.just(UTC))
        case TypeKind.UUID:
            return st.uuids()
