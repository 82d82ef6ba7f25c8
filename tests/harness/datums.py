"""Hypothesis strategies for column types and their datums."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal

from hypothesis import strategies as st

from tailrace.catalog.values.column_types import INTEGER_RANGES, ColumnType, Datum, array_of
from tailrace.catalog.values.interval import MICROSECONDS_MAX, Interval
from tailrace.catalog.values.json_text import write_json
from tailrace.catalog.values.type_kinds import TypeKind

SIMPLE_TYPES = [
    ColumnType(kind)
    for kind in TypeKind
    if kind not in (TypeKind.DECIMAL, TypeKind.ARRAY, TypeKind.JSONB, TypeKind.ENUM)
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
"""Types that a key may hold."""
keyless_types = st.just(ColumnType(TypeKind.JSONB)) | column_types.map(array_of)
all_types = column_types | keyless_types


def decimals(type: ColumnType) -> st.SearchStrategy[Decimal]:
    precision, scale = type.decimal
    most = 10**precision - 1

    def scaled(coefficient: int) -> Decimal:
        digits = tuple(map(int, str(abs(coefficient))))
        return Decimal((int(coefficient < 0), digits, -scale))

    return st.integers(-most, most).map(scaled)


def intervals() -> st.SearchStrategy[Interval]:
    months = st.integers(-(1 << 31) + 1, (1 << 31) - 1)
    microseconds = st.integers(-MICROSECONDS_MAX, MICROSECONDS_MAX)
    return st.builds(Interval, months=months, days=months, microseconds=microseconds)


def documents() -> st.SearchStrategy[object]:
    """What JSON has: its numbers with all their digits."""
    text = st.text(
        max_size=8, alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"])
    )
    digits = st.decimals(allow_nan=False, allow_infinity=False, places=3)
    leaves = st.none() | st.booleans() | st.integers() | digits | text
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=8,
    )


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
        case TypeKind.TIME:
            return st.times()
        case TypeKind.INTERVAL:
            return intervals()
        case TypeKind.JSONB:
            return documents().map(write_json)
        case TypeKind.ENUM:
            assert type.enum is not None
            return st.sampled_from(type.enum.labels)
        case TypeKind.ARRAY:
            assert type.element is not None
            return st.lists(st.none() | datums(type.element), max_size=4)
