"""Columns between Arrow and the lists of physical values that rows are made of.

Arrow holds a DATE as days and a TIMESTAMP as microseconds, as rows do, so most of this is a view of
the same buffer and one pass of `to_pylist` or `pa.array`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .column_types import ColumnType, Datum
from .errors import SQLError
from .interval import Interval, interval_of
from .json_text import normal_json
from .physical import (
    DAYS_MAX,
    DAYS_MIN,
    MICROSECONDS_MAX,
    MICROSECONDS_MIN,
    TIME_MAX,
    Physical,
    physical_of,
)  # fmt: skip
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
    TypeKind.TIME: pa.int64(),
    TypeKind.INTERVAL: pa.binary(16),
    TypeKind.UUID: pa.binary(16),
    TypeKind.JSONB: pa.string(),
}

_RANGES = {
    TypeKind.DATE: (DAYS_MIN, DAYS_MAX),
    TypeKind.TIMESTAMP: (MICROSECONDS_MIN, MICROSECONDS_MAX),
    TypeKind.TIMESTAMPTZ: (MICROSECONDS_MIN, MICROSECONDS_MAX),
    TypeKind.TIME: (0, TIME_MAX),
}


def column_array(type: ColumnType, values: Sequence[Any]) -> AnyArray:
    """The Arrow column of physical values."""
    if type.element is not None:
        return _list_array(type.element, values)
    if type.enum is not None:
        labels = type.enum.label_by_mark
        return pa.array([None if v is None else labels[v] for v in values], pa.string())
    array: AnyArray = pa.array(values, type=_PHYSICAL_ARROW[type.kind])
    match type.kind:
        case TypeKind.DATE | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            return array.view(type.arrow_type)
        case TypeKind.TIME | TypeKind.INTERVAL:
            return array.view(type.arrow_type)
        case TypeKind.DECIMAL:
            return array.cast(type.arrow_type)
        case TypeKind.UUID:
            return pa.ExtensionArray.from_storage(pa.uuid(), array)
        case TypeKind.JSONB:
            return pa.ExtensionArray.from_storage(pa.json_(), array)
        case _:
            return array


_BY_PHYSICAL = (TypeKind.INTERVAL, TypeKind.UUID, TypeKind.JSONB, TypeKind.ARRAY)
"""Kinds whose datums Arrow does not take as they are."""


def datum_array(type: ColumnType, values: Sequence[Datum]) -> AnyArray:
    """The Arrow column of canonical datums."""
    if type.kind not in _BY_PHYSICAL:
        return pa.array(values, type.arrow_type)
    return column_array(type, [physical_of(type, value) for value in values])


def column_datums(type: ColumnType, array: Any) -> list[Datum]:
    """The canonical datums of an Arrow column, chunked or not, that holds canonical values."""
    values: list[Any] = array.to_pylist()
    convert = _arrow_reader(type)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def _arrow_reader(type: ColumnType) -> Callable[[Any], Datum] | None:
    """Makes a datum of what Arrow gives for one; None where it is one."""
    if type.element is not None:
        element = _arrow_reader(type.element)
        if element is None:
            return None
        return lambda items: [None if item is None else element(item) for item in items]
    match type.kind:
        case TypeKind.TIMESTAMPTZ:
            return lambda moment: moment.replace(tzinfo=UTC)  # Arrow's UTC is a zone of its own
        case TypeKind.INTERVAL:
            return interval_of
    return None


def _list_array(element: ColumnType, values: Sequence[list[Any] | None]) -> AnyArray:
    """Lists: all elements as one column, and where each list begins in it."""
    items: list[Any] = []
    starts: list[int | None] = []
    for value in values:
        starts.append(None if value is None else len(items))
        items += value or ()
    offsets: AnyArray = pa.array([*starts, len(items)], pa.int32())
    lists: AnyArray = pa.ListArray.from_arrays(offsets, column_array(element, items))  # type: ignore[call-overload]
    return lists


def constant_array(type: ColumnType, value: Physical, length: int) -> AnyArray:
    """The Arrow column of one physical value, `length` times."""
    if value is None:
        # Of lists of UUIDs and documents pa.array can make none.
        missing: AnyArray = pa.nulls(length, type.arrow_type)  # type: ignore[call-overload]
        return missing
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
        case TypeKind.DATE | TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ | TypeKind.TIME:
            numbers: AnyArray = array.view(_PHYSICAL_ARROW[type.kind])
            _check_years(type, numbers, column)
            return _values(numbers)
        case TypeKind.DECIMAL:
            return _values(array.cast(pa.string()))
        case TypeKind.UUID:
            assert isinstance(array, pa.ExtensionArray), array.type
            return _values(array.storage)
        case TypeKind.INTERVAL:
            return [Interval.of_physical(value).physical if value is not None else None
                    for value in _values(array.view(pa.binary(16)))]  # fmt: skip
        case TypeKind.JSONB:
            return _json_values(array, column)
        case TypeKind.ENUM:
            return _marks(type, array, column)
        case TypeKind.ARRAY:
            return _list_values(type, array, column)
        case _:
            return _values(array)


def _json_values(array: AnyArray, column: str) -> list[Any]:
    """Documents in their normal form, in which a batch from elsewhere need not have them."""
    assert isinstance(array, pa.ExtensionArray), array.type
    texts = _text_values(array.storage, column)
    try:
        return [None if text is None else normal_json(text) for text in texts]
    except SQLError as error:
        raise SQLError(
            error.sqlstate, f'column "{column}": {error.message}', detail=error.detail
        ) from None


def _marks(type: ColumnType, array: AnyArray, column: str) -> list[Any]:
    assert type.enum is not None, type
    checked, marks = type.enum.checked, type.enum.mark_by_label
    try:
        return [
            None if label is None else marks[checked(label)]
            for label in _text_values(array, column)
        ]
    except SQLError as error:
        raise SQLError(error.sqlstate, f'column "{column}": {error.message}') from None


def _list_values(type: ColumnType, array: AnyArray, column: str) -> list[Any]:
    assert type.element is not None, type
    assert isinstance(array, pa.ListArray), array.type
    # `flatten` leaves out what stands behind NULLs, and `value_lengths` is NULL there.
    items = column_values(type.element, array.flatten(), column=column)
    lists: list[Any] = []
    start = 0
    for length in _values(array.value_lengths()):
        if length is None:
            lists.append(None)
            continue
        lists.append(items[start : start + length])
        start += length
    return lists


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
