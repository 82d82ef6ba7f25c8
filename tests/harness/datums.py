"""Hypothesis strategies for column types and their datums."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from tailrace.catalog.column_types import INTEGER_RANGES, ColumnType, Datum
from tailrace.catalog.type_kinds import TypeKind

SIMPLE_TYPES = [
    ColumnType(kind) for kind in TypeKind if kind not in (TypeKind.DECIMAL, TypeKind.ARRAY)
]


@st.composite
def decimal_types(draw: st.DrawFn) -> ColumnType:
    precision = draw(st.integers(1, 38))
    return ColumnType(TypeKind.DECIMAL, precision, draw(st.integers(0, precision)))


@st.composite
def sized_types(draw: st.DrawFn) -> ColumnType:
    kind = draw(st.sampled_from([TypeKind.VARCHAR, TypeKind.CHAR]))
    return ColumnType(kind, width=draw(st.integers(1, 12)))


column_types = st.one_of(st.sampled_from(SIMPLE_TYPES), decimal_types(), sized_types())


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
        case TypeKind.INT2 | TypeKind.INT4 | TypeKind.INT8:
            return st.integers(*INTEGER_RANGES[type.kind])
        case TypeKind.FLOAT4:
            return st.floats(allow_nan=False, width=32)
        case TypeKind.FLOAT8:
            return st.floats(allow_nan=False)
        case TypeKind.DECIMAL:
            return decimals(type)
        case TypeKind.CHAR:
            return datums(ColumnType(TypeKind.VARCHAR, width=type.width)).map(
                lambda text: str(text).rstrip(" ")
            )
        case TypeKind.STRING | TypeKind.VARCHAR:
            return st.text(
                max_size=type.width,
                alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
            )
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
        case TypeKind.ARRAY:
            raise AssertionError(f"{type} is no type of a column")
