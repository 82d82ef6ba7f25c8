"""Columns as fields of Avro records, in CockroachDB's mapping of types.

    BOOL                          boolean
    INT2, INT4, INT8              long
    FLOAT4, FLOAT8                double
    DECIMAL                       bytes, decimal of the column's precision and scale; or string
    STRING, VARCHAR, CHAR, ENUM   string
    UUID, JSONB                   string
    INTERVAL                      string, as ISO 8601 has it
    BYTES                         bytes
    DATE                          int, date
    TIME                          long, time-micros
    TIMESTAMP, TIMESTAMPTZ        long, timestamp-micros
    ARRAY                         array of what its elements are

Each field is a union with null, whether its column may be NULL or not: so that a registry takes the
schemas before and behind any column that comes or goes for compatible. What the column is stands in
the field's `__crdb__`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from ...catalog.descriptors.descriptor import Column
from ...catalog.values.column_types import ColumnType, Datum, shortest_float4
from ...catalog.values.interval import Interval
from ...catalog.values.type_kinds import FLOATS, INTEGERS, TypeKind

Schema = dict[str, Any]
Writer = Callable[[Any], object]
"""Makes what the library takes of a value that is there."""

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)


def field_of(column: Column) -> Schema:
    """The field of a column."""
    null = "" if column.nullable else " NOT NULL"
    return {
        "type": ["null", *_branches(column.type)],
        "name": avro_name(column.name),
        "default": None,
        "__crdb__": f"{column.name} {column.type.sql_name}{null}",
    }


def writer_of(type: ColumnType) -> Writer | None:
    """Returns the conversion of values of this type to Avro's; None where none is needed."""
    if type.element is None:
        return _WRITERS.get(type.kind)
    element = writer_of(type.element)
    if element is None:
        return None
    return lambda items: [None if item is None else element(item) for item in items]


def avro_name(name: str) -> str:
    """The name with what an Avro name cannot hold by its number: `a-b` is `a_u002d_b`."""
    return "".join(
        letter if _stands(letter, first=not place) else f"_u{ord(letter):04x}_"
        for place, letter in enumerate(name)
    )


def _stands(letter: str, *, first: bool) -> bool:
    return letter == "_" or (
        letter.isascii() and letter.isalnum() and not (first and letter.isdigit())
    )


def _branches(type: ColumnType) -> list[object]:
    """The branches of the column's union behind null."""
    if type.element is not None:
        return [{"type": "array", "items": ["null", *_branches(type.element)]}]
    if type.kind in INTEGERS:
        return ["long"]
    if type.kind in FLOATS:
        return ["double"]
    if type.kind is TypeKind.DECIMAL:
        digits = {"precision": type.precision, "scale": type.scale}
        return [{"type": "bytes", "logicalType": "decimal", **digits}, "string"]
    return [_TYPES.get(type.kind, "string")]


_TYPES: dict[TypeKind, object] = {
    TypeKind.BOOL: "boolean",
    TypeKind.BYTES: "bytes",
    TypeKind.DATE: {"type": "int", "logicalType": "date"},
    TypeKind.TIME: {"type": "long", "logicalType": "time-micros"},
    TypeKind.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
    TypeKind.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
}


def _timestamp(value: datetime) -> int:
    at = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return (at - _EPOCH) // _MICROSECOND


def _date(value: date) -> int:
    return value.toordinal() - _EPOCH_DAY


def _time(value: time) -> int:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return seconds * 1_000_000 + value.microsecond


def _interval(value: Interval) -> str:
    """ISO 8601: P1Y2M3DT4H5M6.5S. Each part has a sign of its own."""
    years, months = _parts(value.months, 12)
    minutes, left = _parts(value.microseconds, 60_000_000)
    hours, minutes = _parts(minutes, 60)
    seconds, fraction = _parts(left, 1_000_000)
    day = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (value.days, "D")) if n)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if left:
        digits = f".{abs(fraction):06d}".rstrip("0") if fraction else ""
        clock += f"{'-' if left < 0 else ''}{abs(seconds)}{digits}S"
    if not day and not clock:
        return "PT0S"
    return f"P{day}{f'T{clock}' if clock else ''}"


def _parts(value: int, size: int) -> tuple[int, int]:
    """The quotient of the value by `size`, towards zero, and the remainder."""
    whole = abs(value) // size * (1 if value >= 0 else -1)
    return whole, value - whole * size


def _float4(value: float) -> Datum:
    return shortest_float4(value)


_WRITERS: dict[TypeKind, Writer] = {
    TypeKind.FLOAT4: _float4,
    TypeKind.DATE: _date,
    TypeKind.TIME: _time,
    TypeKind.TIMESTAMP: _timestamp,
    TypeKind.TIMESTAMPTZ: _timestamp,
    TypeKind.INTERVAL: _interval,
    TypeKind.UUID: str,
}
