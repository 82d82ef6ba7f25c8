"""Physical values: how a datum stands in the body of a row.

    BOOL, FLOAT8, BYTES, integers, texts, JSONB   themselves
    DECIMAL                              its text, with all digits of the scale: '12.500000000'
    DATE                                 days since 1970-01-01
    TIMESTAMP, TIMESTAMPTZ               microseconds since 1970-01-01 (UTC)
    TIME                                 microseconds since midnight
    INTERVAL                             16 bytes: months, days, nanoseconds, as Arrow has them
    UUID                                 its 16 bytes
    ENUM                                 its member's mark (`enum_type`)
    ARRAY                                the list of its elements' physical values

`to_physical` takes any value that `coerce` takes; for a canonical datum it only checks and
converts. Both directions exist as functions per type, for codecs to bind once.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from .column_types import INTEGER_RANGES, ColumnType, Datum, coerce
from .interval import DAY, Interval, microseconds_of_day, time_of_day
from .type_kinds import TypeKind

Physical = bool | int | float | str | bytes | list[Any] | None

EPOCH_DAYS = date(1970, 1, 1).toordinal()
DAYS_MIN = date.min.toordinal() - EPOCH_DAYS
DAYS_MAX = date.max.toordinal() - EPOCH_DAYS

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


def _microseconds(since_epoch: timedelta) -> int:
    # Three times faster than dividing by a timedelta.
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return seconds * 1_000_000 + since_epoch.microseconds


MICROSECONDS_MIN = _microseconds(datetime.min - _EPOCH)
MICROSECONDS_MAX = _microseconds(datetime.max - _EPOCH)
TIME_MAX = DAY - 1


def to_physical(type: ColumnType, value: object, *, column: str | None = None) -> Physical:
    """The physical value of anything that `coerce` takes; raises what it raises."""
    return physical_of(type, coerce(type, value, column=column))


def physical_of(type: ColumnType, datum: Datum) -> Physical:
    """The physical value of a canonical datum."""
    match datum:
        case str():
            return datum if type.enum is None else type.enum.mark_by_label[datum]
        case datetime():
            return _microseconds(datum - (_EPOCH if datum.tzinfo is None else _EPOCH_UTC))
        case date():
            return datum.toordinal() - EPOCH_DAYS
        case Decimal():
            return str(datum)
        case UUID():
            return datum.bytes
        case time():
            return microseconds_of_day(datum)
        case Interval():
            return datum.physical
        case list():
            assert type.element is not None, type
            return [physical_of(type.element, item) for item in datum]
        case _:
            return datum


def from_physical(type: ColumnType, value: Physical) -> Datum:
    """The canonical datum of a physical value."""
    if value is None:
        return None
    convert = datum_reader(type)
    return value if convert is None else convert(value)


Writer = Callable[[object], Physical]
Reader = Callable[[Any], Datum]
"""Takes the physical values of one type, which `Any` stands for."""


def physical_writer(type: ColumnType, column: str) -> Writer:
    """`to_physical` bound to a type and a column's name, with short ways for canonical datums."""

    def convert(value: object) -> Physical:
        return to_physical(type, value, column=column)

    match type.kind:
        case TypeKind.INT2 | TypeKind.INT4 | TypeKind.INT8:
            return _int_writer(*INTEGER_RANGES[type.kind], convert)
        case TypeKind.STRING:
            return _string_writer(convert)
        case TypeKind.VARCHAR if type.width is None:
            return _string_writer(convert)
        case TypeKind.TIMESTAMPTZ if type.precision is None:
            return _timestamptz_writer(convert)
        case TypeKind.BOOL | TypeKind.FLOAT8 | TypeKind.BYTES:
            return _plain_writer(_PLAIN_CLASSES[type.kind], convert)
        case _:
            return convert


_PLAIN_CLASSES: dict[TypeKind, type[bool] | type[float] | type[bytes]] = {
    TypeKind.BOOL: bool,
    TypeKind.FLOAT8: float,
    TypeKind.BYTES: bytes,
}


def _plain_writer(kept: type[bool] | type[float] | type[bytes], otherwise: Writer) -> Writer:
    def write(value: object) -> Physical:
        return value if value.__class__ is kept else otherwise(value)

    return write


def _int_writer(least: int, greatest: int, otherwise: Writer) -> Writer:
    def write(value: object) -> Physical:
        if value.__class__ is int and least <= value <= greatest:
            return value
        return otherwise(value)

    return write


def _string_writer(otherwise: Writer) -> Writer:
    def write(value: object) -> Physical:
        # ASCII holds no lone surrogate, and most text is ASCII; the rest goes the long way.
        if value.__class__ is str and value.isascii() and "\x00" not in value:
            return value
        return otherwise(value)

    return write


def _timestamptz_writer(otherwise: Writer) -> Writer:
    def write(value: object) -> Physical:
        if value.__class__ is datetime and value.tzinfo is UTC:
            return _microseconds(value - _EPOCH_UTC)
        return otherwise(value)

    return write


def datum_reader(type: ColumnType) -> Reader | None:
    """Physical value (not None) to datum, or None where they are the same."""
    if type.enum is not None:
        return type.enum.label_by_mark.__getitem__
    if type.element is None:
        return _READERS.get(type.kind)
    element = datum_reader(type.element)
    return None if element is None else _array_reader(element)


def _array_reader(element: Reader) -> Reader:
    def read(values: list[Any]) -> Datum:
        return [None if value is None else element(value) for value in values]

    return read


def _read_date(value: int) -> date:
    return date.fromordinal(value + EPOCH_DAYS)


def _read_timestamp(value: int) -> datetime:
    return _EPOCH + timedelta(microseconds=value)


def _read_timestamptz(value: int) -> datetime:
    return _EPOCH_UTC + timedelta(microseconds=value)


def _read_uuid(value: bytes) -> UUID:
    return UUID(bytes=value)


_READERS: dict[TypeKind, Reader] = {
    TypeKind.DECIMAL: Decimal,
    TypeKind.DATE: _read_date,
    TypeKind.TIMESTAMP: _read_timestamp,
    TypeKind.TIMESTAMPTZ: _read_timestamptz,
    TypeKind.TIME: time_of_day,
    TypeKind.INTERVAL: Interval.of_physical,
    TypeKind.UUID: _read_uuid,
}
