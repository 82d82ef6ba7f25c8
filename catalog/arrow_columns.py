"""Columns between Arrow and the lists of physical values that rows are made of.

Arrow holds a DATE as days and a TIMESTAMP as microseconds, as rows do, so most of this is a view of
the same buffer and one pass of `to_pylist` or `pa.array`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .column_types import ColumnType
from .errors import SQLError
from .physical import DAYS_MAX, DAYS_MIN, MICROSECONDS_MAX, MICROSECONDS_MIN, Physical
from .type_kinds import TypeKind

AnyArray: TypeAlias = "pa.Array[Any]"

_PHYSICAL_ARROW: dict[TypeKind, pa.DataType] = {
    TypeKind.BOOL: pa.bool_(),
    TypeKind.INT2: pa.int16(),
    TypeKind.INT4: pa.int32(),
    TypeKind.INT8: pa.int64(),
    TypeKind.FLOAT4: pa.float32(),
    TypeKind.FLOAT8: pa.float64(),
    TypeKind.DECIMAL: pa.string(),
    TypeKind.STRING: pa.string(),
    TypeKind.VARCHAR: pa.string(),
    TypeKind.CHAR: pa.string(),
    TypeKind.BYTES: pa.binary(),
    TypeKind.DATE: pa.int32(),
    TypeKind.TIMESTAMP: pa.int64(),
    TypeKind.TIMESTAMPTZ: pa.int64(),
    TypeKind.UUID: pa.binary(16),
}

_RANGES = {
    TypeKind.DATE: (DAYS_MIN, DAYS_MAX),
    TypeKind.TIMESTAMP: (MICROSECONDS_MIN, MICROSECONDS_MAX),
    TypeKind.TIMESTAMPTZ: (MICROSECONDS_MIN, MICROSECONDS_MAX),
}


def column_array(type: ColumnType, values: Sequence[Any]) -> AnyArray:
    """The Arrow column of physical values."""
    array: AnyArray = pa.array(values, type=_PHYSICAL_ARROW[type.kind])
    match type.kind:
        case TypeKind.DATE | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return array.view(type.arrow_type)
        case TypeKind.DECIMAL:
            return array.cast(type.arrow_type)
        case TypeKind.UUID:
            return pa.ExtensionArray.from_storage(pa.uuid(), array)
        case _:
            return array


def constant_array(type: ColumnType, value: Physical, length: int) -> AnyArray:
    """The Arrow column of one physical value, `length` times."""
    if value is None:
        return pa.array([None] * length, type=type.arrow_type)
    return column_array(type, [value] * length)


def column_values(type: ColumnType, array: AnyArray, *, column: str) -> list[Any]:
    """The physical values of an Arrow column that has the type's Arrow type.

    Raises SQLError where Arrow holds what the type does not: 22021 for NUL or invalid text, 22008
    for a year outside 0001 to 9999.
    """
    assert array.type == type.arrow_type, (column, array.type)
    match type.kind:
        case TypeKind.STRING | TypeKind.VARCHAR | TypeKind.CHAR:
            return _text_values(array, column)
        case TypeKind.DATE | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            numbers: AnyArray = array.view(_PHYSICAL_ARROW[type.kind])
            _check_years(type, numbers, column)
            return _values(numbers)
        case TypeKind.DECIMAL:
            return _values(array.cast(pa.string()))
        case TypeKind.UUID:
            assert isinstance(array, pa.ExtensionArray), array.type
            return _values(array.storage)
        case _:
            return _values(array)


def _values(array: Any) -> list[Any]:
    # The stubs bind `to_pylist` to arrays whose element type is known, which no column's is here.
    values: list[Any] = array.to_pylist()
    return values


def _text_values(array: AnyArray, column: str) -> list[Any]:
    try:
        values = _values(array)
    except UnicodeDecodeError as error:
        raise SQLError("22021", f'column "{column}": invalid text: {error.reason}') from None
    if _may_hold_nul(array) and any(value is not None and "\x00" in value for value in values):
        raise SQLError("22021", f'column "{column}": invalid byte sequence for encoding UTF8: 0x00')
    return values


def _may_hold_nul(array: AnyArray) -> bool:
    """Looks at the bytes of all texts at once; those behind NULLs may mislead it."""
    _, offsets, data = array.buffers()
    if offsets is None or data is None or not len(array):
        return False
    ends = memoryview(offsets).cast("i")
    start, end = ends[array.offset], ends[array.offset + len(array)]
    return b"\x00" in bytes(memoryview(data)[start:end])


def _check_years(type: ColumnType, numbers: AnyArray, column: str) -> None:
    least, greatest = _RANGES[type.kind]
    lowest, highest = pc.min(numbers).as_py(), pc.max(numbers).as_py()
    if lowest is not None and not least <= lowest <= highest <= greatest:
        raise SQLError(
            "22008",
            f'column "{column}": {type.sql_name} out of range',
            detail="Dates and timestamps lie in the years 0001 to 9999.",
        )
