"""Columns of binary values as Arrow, where all of a column can be read at once.

    INT4   00 00 00 07, NULL, 00 00 00 09    one unpacking of 8 bytes: 7, 9; then 7, NULL, 9

A column that has anything unusual (a value of another size, a date out of range, text that is none)
is None here: whoever asks reads it value by value, and says which one is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import unpack
from typing import cast

import pyarrow as pa

from ....catalog.rows.text_columns import cast_texts
from ....catalog.values.arrow_columns import AnyArray
from ....catalog.values.column_types import ColumnType
from ....catalog.values.physical import DAYS_MAX, DAYS_MIN, MICROSECONDS_MAX, MICROSECONDS_MIN
from ....catalog.values.type_kinds import TEXTS, TypeKind

_DAYS_TO_2000 = 10_957
_MICROSECONDS_TO_2000 = _DAYS_TO_2000 * 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The packing of a type's values, their conversion into Arrow's numbers, and the bounds of
    those."""

    code: str
    size: int
    storage: pa.DataType
    shift: int = 0
    bounds: tuple[int, int] | None = None


_INSTANT = _Fixed("q", 8, pa.int64(), _MICROSECONDS_TO_2000, (MICROSECONDS_MIN, MICROSECONDS_MAX))

_FIXED: dict[TypeKind, _Fixed] = {
    TypeKind.BOOL: _Fixed("?", 1, pa.bool_()),
    TypeKind.INT2: _Fixed("h", 2, pa.int16()),
    TypeKind.INT4: _Fixed("i", 4, pa.int32()),
    TypeKind.INT8: _Fixed("q", 8, pa.int64()),
    TypeKind.FLOAT8: _Fixed("d", 8, pa.float64()),
    TypeKind.DATE: _Fixed("i", 4, pa.int32(), _DAYS_TO_2000, (DAYS_MIN, DAYS_MAX)),
    TypeKind.TIMESTAMP: _INSTANT,
    TypeKind.TIMESTAMPTZ: _INSTANT,
}


def column_at_once(type: ColumnType, values: Sequence[bytes | None]) -> AnyArray | None:
    """The column, or None where it must be read value by value. NULLs may be in it."""
    if type.element is not None or type.enum is not None:
        return None
    if type.kind in TEXTS:
        return _texts(type, values)
    if type.kind is TypeKind.BYTES:
        return pa.array(values, pa.binary())
    fixed = _FIXED.get(type.kind)
    return None if fixed is None else _numbers(type, fixed, values)


def _numbers(type: ColumnType, fixed: _Fixed, values: Sequence[bytes | None]) -> AnyArray | None:
    given = cast("list[bytes]", list(values))
    nulls = None in values
    if nulls:
        given = [value for value in values if value is not None]
    if given and set(map(len, given)) != {fixed.size}:
        return None
    numbers = unpack(f"!{len(given)}{fixed.code}", b"".join(given))
    if fixed.shift:
        numbers = tuple([number + fixed.shift for number in numbers])
    if fixed.bounds is not None and numbers:
        least, greatest = fixed.bounds
        if min(numbers) < least or max(numbers) > greatest:
            return None
    if nulls:
        following = iter(numbers)
        numbers = tuple([None if value is None else next(following) for value in values])
    array: AnyArray = pa.array(numbers, fixed.storage)
    return array if array.type == type.arrow_type else array.view(type.arrow_type)


def _texts(type: ColumnType, values: Sequence[bytes | None]) -> AnyArray | None:
    if any(value is not None and 0 in value for value in values):
        return None
    try:
        texts = cast(pa.StringArray, pa.array(values, pa.binary()).cast(pa.string()))
    except pa.ArrowInvalid:
        return None
    return cast_texts(type, texts)
