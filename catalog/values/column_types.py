"""Column types, and the values that columns hold.

A *datum* is a value of SQL as a Python object. Each type has one canonical form of it, which
`coerce` produces and everything downstream may rely on:

    BOOL         bool
    INT2, INT4   int, 16-bit and 32-bit signed
    INT8         int, 64-bit signed
    FLOAT4       float that 32 bits hold exactly, the nearest one to what was given
    FLOAT8       float; NaN and the infinities are values, and -0.0 keeps its sign
    DECIMAL(p,s) Decimal with exactly s fractional digits and at most p digits; p is at most 38
    STRING       str: valid text without NUL
    VARCHAR(n)   the same, of at most n characters
    CHAR(n)      the same, and no blanks at its end: they mean nothing, and are not added either
    BYTES        bytes
    DATE         date, years 0001 to 9999 (Python's range, and all that a sink can be sure to hold)
    TIMESTAMP    naive datetime, microseconds, same years
    TIMESTAMPTZ  aware datetime in UTC, microseconds, same years
    TIME         naive time of day, microseconds, below 24:00
    INTERVAL     interval.Interval: months, days, microseconds
    UUID         uuid.UUID
    JSONB        str: the document's normal form (`json_text`)
    ENUM         str: the label of a member
    ARRAY        list of datums of its element's type, which is no array

and None for NULL in all of them. A bare DECIMAL is DECIMAL(38,9), because Arrow and DuckDB know no
decimal without a scale, but it rounds nothing: what has more digits is refused. A bare CHAR is
CHAR(1).

A type has a *broad* type, which holds all its values: INT8 for the narrower integers, STRING for
VARCHAR and CHAR, and itself for any other. Expressions are computed in broad types; only what is
stored, and a column as a result shows it, is of the narrow one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from math import inf
from operator import index
from struct import Struct
from typing import Any
from uuid import UUID

from . import literals
from .array_text import read_array
from .column_type import DECIMAL_PRECISION_MAX as DECIMAL_PRECISION_MAX
from .column_type import ColumnType as ColumnType
from .column_type import array_of as array_of
from .column_type import enum_of as enum_of
from .errors import SQLError
from .interval import Interval, interval_of
from .interval_text import read_interval
from .json_text import normal_json, write_json
from .moment_digits import rounded_time, rounded_timestamp
from .session_zone import clock_of, instant
from .type_kinds import TypeKind

BOOL = ColumnType(TypeKind.BOOL)
INT8 = ColumnType(TypeKind.INT8)
FLOAT4 = ColumnType(TypeKind.FLOAT4)
FLOAT8 = ColumnType(TypeKind.FLOAT8)
DECIMAL = ColumnType(TypeKind.DECIMAL)
STRING = ColumnType(TypeKind.STRING)
BYTES = ColumnType(TypeKind.BYTES)
DATE = ColumnType(TypeKind.DATE)
TIME = ColumnType(TypeKind.TIME)
TIMESTAMP = ColumnType(TypeKind.TIMESTAMP)
TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)
INTERVAL = ColumnType(TypeKind.INTERVAL)
JSONB = ColumnType(TypeKind.JSONB)
"""Types without arguments that are broad: expressions are of these."""

Datum = (
    bool | int | float | Decimal | str | bytes | date | datetime | time | Interval | UUID
    | list[Any] | None
)  # fmt: skip

INT8_MIN = -(1 << 63)
INT8_MAX = (1 << 63) - 1
INTEGER_RANGES = {
    TypeKind.INT2: (-(1 << 15), (1 << 15) - 1),
    TypeKind.INT4: (-(1 << 31), (1 << 31) - 1),
    TypeKind.INT8: (INT8_MIN, INT8_MAX),
}


def coerce(type: ColumnType, datum: object, *, column: str | None = None) -> Datum:
    """The canonical datum of `type` for a Python value, a JSON value or a text literal.

    What would lose something is refused, with four exceptions that SQL expects: a DECIMAL(p,s)
    rounds to its scale (half away from zero), a TIMESTAMP(p) to its digits, a FLOAT8 takes the
    nearest double, and an aware datetime becomes a TIMESTAMP of the session's clock. Raises
    SQLError, naming `column` where that is given: 22001 longer than its type, 22003 out of range,
    22P02, 22007 and 22008 bad text, 22021 NUL or invalid text, 42804 a value of another type.
    """
    if datum is None:
        return None
    try:
        return _COERCIONS[type.kind](type, datum)
    except SQLError as error:
        if column is None:
            raise
        raise SQLError(
            error.sqlstate,
            f'column "{column}": {error.message}',
            detail=error.detail,
            hint=error.hint,
        ) from None


def _mismatch(type: ColumnType, value: object) -> SQLError:
    given = value.__class__.__name__
    return SQLError("42804", f"a value of type {given} is not of type {type.sql_name}")


def _to_bool(type: ColumnType, value: object) -> bool:
    match value:
        case bool():
            return value
        case str():
            return literals.read_bool(value)
    raise _mismatch(type, value)


def _to_int(type: ColumnType, value: object) -> int:
    least, greatest = INTEGER_RANGES[type.kind]
    match value:
        case bool():
            raise _mismatch(type, value)
        case int():
            number = value
        case str():
            number = literals.read_int(value)
        case float() | Decimal():
            if not least <= value <= greatest:
                raise SQLError("22003", f"{type.kind.value.lower()} out of range: {value}")
            number = int(value)
            if number != value:
                raise SQLError("22P02", f"{value} is not a whole number")
        case _ if hasattr(value, "__index__"):
            number = index(value)
        case _:
            raise _mismatch(type, value)
    if not least <= number <= greatest:
        raise SQLError("22003", f"{type.kind.value.lower()} out of range: {number}")
    return number


def _to_float(type: ColumnType, value: object) -> float:
    match value:
        case bool():
            raise _mismatch(type, value)
        case float():
            return float(value)
        case str():
            return literals.read_float(value)
        case int() | Decimal():
            try:
                number = float(value)
            except OverflowError:
                number = inf
            infinite = isinstance(value, Decimal) and value.is_infinite()
            if (abs(number) == inf and not infinite) or (number == 0 and value != 0):
                raise SQLError("22003", f"float8 out of range: {value}")
            return number
    raise _mismatch(type, value)


_FLOAT4 = Struct("<f")


def _to_float4(type: ColumnType, value: object) -> float:
    number = _to_float(type, value)
    try:
        (nearest,) = _FLOAT4.unpack(_FLOAT4.pack(number))
    except OverflowError:
        raise SQLError("22003", f"float4 out of range: {value}") from None
    if nearest == 0 and number != 0:
        raise SQLError("22003", f"float4 out of range: {value}")
    return float(nearest)


def shortest_float4(number: float) -> float:
    """The double with the fewest digits that FLOAT4 holds as `number`: 0.1, not 0.10000000149."""
    for digits in range(1, 9):
        short = float(f"{number:.{digits}g}")
        try:
            if _FLOAT4.unpack(_FLOAT4.pack(short)) == (number,):
                return short
        except OverflowError:  # rounded beyond the greatest
            continue
    return float(f"{number:.9g}")


def _to_decimal(type: ColumnType, value: object) -> Decimal:
    match value:
        case bool():
            raise _mismatch(type, value)
        case Decimal():
            number = value
        case int():
            number = Decimal(value)
        case float():
            number = Decimal(repr(float(value)))
        case str():
            number = literals.read_decimal(value)
        case _:
            raise _mismatch(type, value)
    return round_decimal(type, number)


_DECIMAL_CONTEXT = Context(prec=2 * DECIMAL_PRECISION_MAX + 2, rounding=ROUND_HALF_UP)
"""Wide enough that `quantize` overflows only on what `round_decimal` would refuse anyway."""


_QUANTA = tuple(Decimal((0, (1,), -scale)) for scale in range(DECIMAL_PRECISION_MAX + 1))
"""The least number of each scale."""


def round_decimal(type: ColumnType, number: Decimal) -> Decimal:
    """`number` with exactly the type's scale, rounded half away from zero, as PostgreSQL does.

    Raises SQLError 22003 for one that is too great, and for digits that a bare DECIMAL would lose.
    """
    precision, scale = type.decimal
    if not number.is_finite():
        raise SQLError("22003", f"{type.sql_name} has no {number}")
    try:
        rounded = number.quantize(_QUANTA[scale], context=_DECIMAL_CONTEXT)
    except InvalidOperation:
        raise _decimal_overflow(precision, scale) from None
    if rounded and rounded.adjusted() >= precision - scale:
        raise _decimal_overflow(precision, scale)
    if type.bare and rounded != number:
        raise _too_exact(number, scale)
    return rounded if rounded else abs(rounded)  # there is no negative zero


def _too_exact(number: Decimal, scale: int) -> SQLError:
    shown = f"{number.normalize():f}"
    return SQLError(
        "22003",
        f"NUMERIC without digits keeps {scale} behind the point, and {shown[:60]} has more",
        hint=f"Round the value, as round(x, {scale}) does, or declare the column NUMERIC(p, s) "
        "with the digits that it needs: quotients and averages have 16 behind the point.",
    )


def _decimal_overflow(precision: int, scale: int) -> SQLError:
    return SQLError(
        "22003",
        "decimal field overflow",
        detail=f"A field with precision {precision}, scale {scale} must round to an absolute "
        f"value less than 10^{precision - scale}.",
    )


def _to_string(type: ColumnType, value: object) -> str:
    if not isinstance(value, str):
        raise _mismatch(type, value)
    if "\x00" in value:
        raise SQLError("22021", "invalid byte sequence for encoding UTF8: 0x00")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise SQLError("22021", f"invalid text: {error.reason}") from None
    return str(value) if type.width is None else _of_width(type, type.width, str(value))


def _of_width(type: ColumnType, width: int, text: str) -> str:
    """Blanks beyond the width are dropped, as in PostgreSQL; anything else there is an error."""
    if len(text) > width:
        if text[width:].strip(" "):
            raise SQLError("22001", f"value too long for type {type.sql_name}")
        text = text[:width]
    return text.rstrip(" ") if type.kind is TypeKind.CHAR else text


def truncate(type: ColumnType, value: object) -> object:
    """The value of an explicit cast of text that is too long for its type."""
    return value[: type.width] if isinstance(value, str) and type.width is not None else value


def _to_bytes(type: ColumnType, value: object) -> bytes:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case str():
            return literals.read_bytes(value)
    raise _mismatch(type, value)


def _to_date(type: ColumnType, value: object) -> date:
    match value:
        case datetime():
            return (value if value.tzinfo is None else clock_of(value)).date()
        case date():
            return value
        case str():
            return literals.read_date(value)
    raise _mismatch(type, value)


def _timestamp(type: ColumnType, value: object) -> datetime:
    match value:
        case datetime():
            return value.replace(fold=0) if value.tzinfo is None else clock_of(value)
        case date():
            return datetime.combine(value, time.min)
        case str():
            return literals.read_timestamp(value)
    raise _mismatch(type, value)


def _timestamptz(type: ColumnType, value: object) -> datetime:
    match value:
        case datetime():
            return literals.to_utc(value)
        case date():
            return instant(datetime.combine(value, time.min))
        case str():
            return literals.read_timestamptz(value)
    raise _mismatch(type, value)


def _time(type: ColumnType, value: object) -> time:
    match value:
        case time() if value.tzinfo is None:
            return value.replace(fold=0)
        case str():
            return literals.read_time(value)
    raise _mismatch(type, value)


def _to_timestamp(type: ColumnType, value: object) -> datetime:
    return rounded_timestamp(type, _timestamp(type, value))


def _to_timestamptz(type: ColumnType, value: object) -> datetime:
    return rounded_timestamp(type, _timestamptz(type, value))


def _to_time(type: ColumnType, value: object) -> time:
    return rounded_time(type, _time(type, value))


def _to_interval(type: ColumnType, value: object) -> Interval:
    found = read_interval(value) if isinstance(value, str) else interval_of(value)
    if found is None:
        raise _mismatch(type, value)
    return found


def _to_json(type: ColumnType, value: object) -> str:
    """A text is a JSON text; what JSON has is itself."""
    match value:
        case str():
            return normal_json(value)
        case bool() | int() | float() | Decimal() | dict() | list() | tuple():
            return write_json(value)
    raise _mismatch(type, value)


def _to_uuid(type: ColumnType, value: object) -> UUID:
    match value:
        case UUID():
            return value
        case str():
            return literals.read_uuid(value)
    raise _mismatch(type, value)


def _to_enum(type: ColumnType, value: object) -> str:
    assert type.enum is not None, type
    if not isinstance(value, str):
        raise _mismatch(type, value)
    return type.enum.checked(value)


_INTEGERS = re.compile(r"\{-?[0-9]{1,18}(?:,-?[0-9]{1,18})*+\}")
"""An array's text as drivers write it, of numbers that are INT8s whatever they are."""


def _all_int8(items: Sequence[Any]) -> bool:
    plain = {item.__class__ for item in items} == {int}
    return plain and min(items) >= INT8_MIN and max(items) <= INT8_MAX


def _to_array(type: ColumnType, value: object) -> list[Any]:
    assert type.element is not None, type
    match value:
        case list() | tuple():
            items: list[object] = list(value)
        case str() if type.element.kind is TypeKind.INT8 and _INTEGERS.fullmatch(value):
            return list(map(int, value[1:-1].split(",")))
        case str():
            items = list(read_array(value))
        case _:
            raise _mismatch(type, value)
    if type.element.kind is TypeKind.INT8 and _all_int8(items):
        return items
    return [coerce(type.element, item) for item in items]


_COERCIONS: dict[TypeKind, Callable[[ColumnType, object], Datum]] = {
    TypeKind.BOOL: _to_bool,
    TypeKind.INT2: _to_int,
    TypeKind.INT4: _to_int,
    TypeKind.INT8: _to_int,
    TypeKind.FLOAT4: _to_float4,
    TypeKind.FLOAT8: _to_float,
    TypeKind.DECIMAL: _to_decimal,
    TypeKind.STRING: _to_string,
    TypeKind.VARCHAR: _to_string,
    TypeKind.CHAR: _to_string,
    TypeKind.BYTES: _to_bytes,
    TypeKind.DATE: _to_date,
    TypeKind.TIMESTAMP: _to_timestamp,
    TypeKind.TIMESTAMPTZ: _to_timestamptz,
    TypeKind.TIME: _to_time,
    TypeKind.INTERVAL: _to_interval,
    TypeKind.JSONB: _to_json,
    TypeKind.UUID: _to_uuid,
    TypeKind.ENUM: _to_enum,
    TypeKind.ARRAY: _to_array,
}
