"""Batches made to fit a table: columns by name, in order, each of its type's Arrow type.

What Arrow casts exactly (narrower integers, other string layouts, coarser units of time) is cast;
everything else, text above all, goes value by value through `coerce`, so that a bulk load takes
just what an INSERT takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from ..descriptors.descriptor import Column, TableDescriptor
from ..values.arrow_columns import AnyArray, column_array, constant_array
from ..values.column_types import ColumnType
from ..values.errors import SQLError, null_value
from ..values.physical import physical_of, physical_writer
from ..values.session_zone import UTC_NAME, zone_name
from ..values.type_kinds import TEXTS, TypeKind


def conform(descriptor: TableDescriptor, batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with the table's schema. A column that it lacks takes the default, or NULL.

    Raises SQLError: 42703 for a column that the table lacks, 42701 for one that comes twice,
    23502 for a lacking column that has no default and may not be NULL, and what `coerce` raises.
    """
    names = list(batch.schema.names)
    for name in names:
        descriptor.column(name)
        if names.count(name) > 1:
            raise SQLError("42701", f'column "{name}" specified more than once')
    arrays = []
    for column in descriptor.visible_columns:
        if column.name in names:
            arrays.append(_conform_array(column, batch.column(names.index(column.name))))
        else:
            arrays.append(_default_array(descriptor, column, batch.num_rows))
    schema = pa.schema(
        [
            pa.field(column.name, column.type.arrow_type, nullable=column.nullable)
            for column in descriptor.visible_columns
        ]
    )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _default_array(descriptor: TableDescriptor, column: Column, count: int) -> AnyArray:
    if column.default is None and not column.nullable and column.computed is None:
        missing = "The batch has no such column, and the column has no default."
        raise null_value(descriptor.name, column.name, detail=missing)
    return constant_array(column.type, physical_of(column.type, column.default), count)


def _conform_array(column: Column, array: AnyArray) -> AnyArray:
    target = column.type.arrow_type
    if array.type == target and (not _limited(column.type) or fits_width(column.type, array)):
        return array
    if pt.is_dictionary(array.type):
        return _conform_array(column, array.cast(array.type.value_type))
    if _exact(column.type, array.type):
        try:
            if pt.is_timestamp(array.type):
                # Microseconds of the same clock; where there is another zone, coerce converts.
                return array.cast(pa.timestamp("us", tz=array.type.tz)).view(target)
            return array.cast(target)
        except pa.ArrowInvalid:
            pass  # some value does not fit: find it below, and name it
    write = physical_writer(column.type, column.name)
    values: list[Any] = [write(value) for value in _python_values(column, array)]
    return column_array(column.type, values)


def fits_width(type: ColumnType, texts: Any) -> bool:
    """Whether the column takes a column of texts as they are."""
    if type.width is None:
        return type.kind in TEXTS
    if type.kind is not TypeKind.VARCHAR:
        return False
    return (pc.max(pc.utf8_length(texts)).as_py() or 0) <= type.width


def _python_values(column: Column, array: Any) -> list[object]:
    if pt.is_timestamp(array.type) and array.type.unit == "ns":
        array = _without_nanoseconds(column, array)
    values: list[object] = array.to_pylist()
    return values


def _without_nanoseconds(column: Column, array: Any) -> Any:
    try:
        return array.cast(pa.timestamp("us", tz=array.type.tz))
    except pa.ArrowInvalid:
        raise SQLError(
            "22007", f'column "{column.name}": a timestamp is finer than a microsecond'
        ) from None


def _limited(type: ColumnType) -> bool:
    """Whether a value of the Arrow type may be another one, or none, of the column's."""
    type = type.element or type
    rounded = type.kind is not TypeKind.DECIMAL and type.precision is not None
    return rounded or type.width is not None


def _exact(type: ColumnType, given: pa.DataType) -> bool:
    """Whether Arrow's safe cast does what `coerce` does, or refuses."""
    if _limited(type):
        return False
    match type.kind:
        case TypeKind.INT2 | TypeKind.INT4 | TypeKind.INT8:
            return pt.is_integer(given)
        case TypeKind.FLOAT4:
            return False  # Arrow makes an infinity of what is too great
        case TypeKind.FLOAT8:
            return pt.is_floating(given)
        case TypeKind.DECIMAL:
            return pt.is_integer(given) or pt.is_decimal(given)
        case TypeKind.STRING | TypeKind.VARCHAR | TypeKind.CHAR:
            return pt.is_large_string(given) or pt.is_string_view(given)
        case TypeKind.BYTES:
            return pt.is_large_binary(given) or pt.is_fixed_size_binary(given)
        case TypeKind.DATE:
            return pt.is_date64(given)
        case TypeKind.TIMESTAMP | TypeKind.TIMESTAMPTZ:
            zoned = type.kind is TypeKind.TIMESTAMPTZ
            alike = pt.is_timestamp(given) and zoned is (given.tz is not None)
            return alike or (pt.is_timestamp(given) and zone_name() == UTC_NAME)
        case TypeKind.TIME:
            return pt.is_time(given)
        case TypeKind.JSONB:
            return False  # a text, which may be no document
        case TypeKind.ENUM:
            return False
        case TypeKind.BOOL | TypeKind.UUID | TypeKind.ARRAY | TypeKind.INTERVAL:
            return False


def broad_schema(descriptor: TableDescriptor, places: Sequence[int]) -> pa.Schema:
    """The columns at `places`, in the broad types that expressions are computed in."""
    columns = [descriptor.visible_columns[place] for place in places]
    return pa.schema(
        [
            pa.field(column.name, column.type.broad.arrow_type, nullable=column.nullable)
            for column in columns
        ]
    )
