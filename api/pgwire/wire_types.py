"""Values on the wire: one table of types, with the text and the binary form of each.

Text forms are PostgreSQL's output in the session's zone;
binary forms are those of its send functions. Whoever adds a type adds one row here.

    INT8 7            text  37               binary  00 00 00 00 00 00 00 07
    DATE 2000-01-02   text  323030302d…      binary  00 00 00 01
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from math import isfinite
from struct import Struct
from struct import error as struct_error
from typing import Any
from uuid import UUID

from ...catalog.values.array_text import write_array
from ...catalog.values.column_types import (
    BOOL,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT4,
    FLOAT8,
    INT8,
    INTERVAL,
    JSONB,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    ColumnType,
    Datum,
    array_of,
    coerce,
    shortest_float4,
)
from ...catalog.values.errors import SQLError
from ...catalog.values.interval import Interval, clock_text, microseconds_of_day, time_of_day
from ...catalog.values.json_text import normal_json
from ...catalog.values.literals import read_decimal
from ...catalog.values.session_zone import session_zone, shown, writes_iso_intervals
from ...catalog.values.type_kinds import CatalogName, TypeKind
from ...sql.results.client_types import (
    ALL_ROWS,
    DeclaredType,
    row_of,
    type_modifier,
    user_array_oid,
    user_type_of,
    user_type_oid,
)
from .messages import decode_text
from .numeric import read_numeric, write_numeric

Encoder = Callable[[Any], bytes]
Decoder = Callable[[bytes], Datum]

TEXT, BINARY = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WireType:
    """The encoding of a type's values. `size` is -1 where it varies, as in pg_type.typlen."""

    oid: int
    size: int
    text: Encoder
    binary: Encoder

    def modifier(self, type: ColumnType) -> int:
        """pg_attribute.atttypmod: precision and scale, or a width, plus four; -1 for none."""
        return type_modifier(type)


_INT2, _INT4, _INT8 = Struct("!h"), Struct("!i"), Struct("!q")
_INTERVAL = Struct("!qii")
_OID, _FLOAT4, _FLOAT8 = Struct("!I"), Struct("!f"), Struct("!d")
_ARRAY_HEAD = Struct("!iiI")
"""Dimensions, whether there is a NULL, and the element's type."""

_EPOCH_DATE = date(2000, 1, 1)
_EPOCH = datetime(2000, 1, 1)
_EPOCH_UTC = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def _float_text(value: float, plain_below: float = 1e15) -> bytes:
    """The shortest digits that read back as the same double, as PostgreSQL arranges them."""
    written = repr(value)
    if written.endswith(".0"):
        written = written[:-2]
    if abs(value) >= plain_below and "e" not in written and "n" not in written:
        digits = written.lstrip("-").replace(".", "")
        point = written.lstrip("-").partition(".")[0]
        mantissa = digits.rstrip("0")
        fraction = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
        sign = "-" if value < 0 else ""
        return f"{sign}{mantissa[0]}{fraction}e+{len(point) - 1:02}".encode()
    return _FLOAT_WORDS.get(written) or written.encode()


def _float4_text(value: float) -> bytes:
    return _float_text(shortest_float4(value) if isfinite(value) else value, 1e6)


_FLOAT_WORDS = {"nan": b"NaN", "inf": b"Infinity", "-inf": b"-Infinity"}


DAYS_KNOWN = 4096
_TWO_DIGITS = tuple(b"%02d" % number for number in range(60))


@lru_cache(maxsize=DAYS_KNOWN)
def _day_text(ordinal: int) -> bytes:
    return date.fromordinal(ordinal).isoformat().encode()


def _timestamp_text(value: datetime) -> bytes:
    """The date and time, in a fourth of the time that `isoformat` takes."""
    clock = _TWO_DIGITS[value.hour], _TWO_DIGITS[value.minute], _TWO_DIGITS[value.second]
    written = b"%b %b:%b:%b" % (_day_text(value.toordinal()), *clock)
    if not value.microsecond:
        return written
    return written + (b".%06d" % value.microsecond).rstrip(b"0")


def _timestamptz_text(value: datetime) -> bytes:
    zone = session_zone()
    if zone is UTC:
        return _timestamp_text(value) + b"+00"
    local = shown(value)
    written = local.strftime("%z")
    sign, hours, rest = written[0], written[1:3], written[3:5]
    offset = f"{sign}{hours}" if rest == "00" else f"{sign}{hours}:{rest}"
    return _timestamp_text(local.replace(tzinfo=None)) + offset.encode()


WIRE_TYPES: dict[TypeKind, WireType] = {
    TypeKind.BOOL: WireType(
        oid=16,
        size=1,
        text=lambda value: b"t" if value else b"f",
        binary=lambda value: b"\x01" if value else b"\x00",
    ),
    TypeKind.INT2: WireType(oid=21, size=2, text=lambda value: b"%d" % value, binary=_INT2.pack),
    TypeKind.INT4: WireType(oid=23, size=4, text=lambda value: b"%d" % value, binary=_INT4.pack),
    TypeKind.INT8: WireType(oid=20, size=8, text=lambda value: b"%d" % value, binary=_INT8.pack),
    TypeKind.FLOAT4: WireType(oid=700, size=4, text=_float4_text, binary=_FLOAT4.pack),
    TypeKind.FLOAT8: WireType(oid=701, size=8, text=_float_text, binary=_FLOAT8.pack),
    TypeKind.DECIMAL: WireType(
        oid=1700, size=-1, text=lambda value: format(value, "f").encode(), binary=write_numeric
    ),
    TypeKind.STRING: WireType(oid=25, size=-1, text=str.encode, binary=str.encode),
    TypeKind.VARCHAR: WireType(oid=1043, size=-1, text=str.encode, binary=str.encode),
    TypeKind.CHAR: WireType(oid=1042, size=-1, text=str.encode, binary=str.encode),
    TypeKind.BYTES: WireType(
        oid=17, size=-1, text=lambda value: b"\\x" + value.hex().encode(), binary=bytes
    ),
    TypeKind.DATE: WireType(
        oid=1082,
        size=4,
        text=lambda value: value.isoformat().encode(),
        binary=lambda value: _INT4.pack((value - _EPOCH_DATE).days),
    ),
    TypeKind.TIMESTAMP: WireType(
        oid=1114,
        size=8,
        text=_timestamp_text,
        binary=lambda value: _INT8.pack((value - _EPOCH) // _MICROSECOND),
    ),
    TypeKind.TIMESTAMPTZ: WireType(
        oid=1184,
        size=8,
        text=_timestamptz_text,
        binary=lambda value: _INT8.pack((value - _EPOCH_UTC) // _MICROSECOND),
    ),
    TypeKind.TIME: WireType(
        oid=1083,
        size=8,
        text=lambda value: clock_text(microseconds_of_day(value)).encode(),
        binary=lambda value: _INT8.pack(microseconds_of_day(value)),
    ),
    TypeKind.INTERVAL: WireType(
        oid=1186,
        size=16,
        text=lambda value: (value.iso_text if writes_iso_intervals() else str(value)).encode(),
        binary=lambda value: _INTERVAL.pack(value.microseconds, value.days, value.months),
    ),
    TypeKind.JSONB: WireType(
        oid=3802, size=-1, text=str.encode, binary=lambda value: b"\x01" + value.encode()
    ),
    TypeKind.UUID: WireType(
        oid=2950,
        size=16,
        text=lambda value: str(value).encode(),
        binary=lambda value: value.bytes,
    ),
}


_OID_TYPE = WireType(oid=26, size=4, text=lambda value: b"%d" % value, binary=_OID.pack)


def _vector(oid: int, element: WireType) -> WireType:
    """A vector of pg_catalog: blanks between its elements, which are numbered from 0."""

    def text(values: list[int]) -> bytes:
        return b" ".join(map(element.text, values))

    def binary(values: list[int]) -> bytes:
        parts = [_ARRAY_HEAD.pack(1, 0, element.oid), _INT4.pack(len(values)), _INT4.pack(0)]
        for value in values:
            parts += [_INT4.pack(element.size), element.binary(value)]
        return b"".join(parts)

    return WireType(oid=oid, size=-1, text=text, binary=binary)


CATALOG_TYPES = {
    CatalogName.OID: _OID_TYPE,
    CatalogName.CHAR: WireType(
        oid=18, size=1, text=str.encode, binary=lambda value: value.encode() or b"\0"
    ),
    CatalogName.NAME: WireType(oid=19, size=64, text=str.encode, binary=str.encode),
    CatalogName.INT2VECTOR: _vector(22, WIRE_TYPES[TypeKind.INT2]),
    CatalogName.OIDVECTOR: _vector(30, _OID_TYPE),
    CatalogName.VOID: WireType(oid=2278, size=4, text=str.encode, binary=str.encode),
}
"""The types of some columns of pg_catalog."""


def wire_type(type: ColumnType) -> WireType:
    if type.catalog_name is not None:
        return CATALOG_TYPES[type.catalog_name]
    if type.element is not None:
        enum = type.element.enum
        return _array_type(type.element) if enum is None else _enum_array_type(enum.id)
    if type.enum is not None:
        return _enum_type(type.enum.id)
    return WIRE_TYPES[type.kind]


KNOWN_MAX = 1000
"""Types of users, and types that arrays are of, which are remembered: tables have fewer."""


@lru_cache(maxsize=KNOWN_MAX)
def _enum_type(type_id: int) -> WireType:
    """An enumeration: a value is its label in both forms, and its size that of enum's own id."""
    oid = user_type_oid(type_id)
    return WireType(oid=oid, size=4, text=str.encode, binary=str.encode)


def input_type(type: ColumnType) -> InputType:
    """The decoding of a column type's values."""
    oid = wire_type(type).oid
    return INPUT_TYPES.get(oid) or user_input(oid)


@lru_cache(maxsize=KNOWN_MAX)
def _array_type(element: ColumnType) -> WireType:
    return _array_of(wire_type(element), row_of(element).array)


@lru_cache(maxsize=KNOWN_MAX)
def _enum_array_type(type_id: int) -> WireType:
    return _array_of(_enum_type(type_id), user_array_oid(type_id))


def _array_of(element: WireType, oid: int) -> WireType:
    """An array of one dimension, as array_out and array_send write it."""

    def text(values: list[Any]) -> bytes:
        return write_array(
            [None if value is None else element.text(value).decode() for value in values]
        ).encode()

    def binary(values: list[Any]) -> bytes:
        head = _ARRAY_HEAD.pack(1 if values else 0, None in values, element.oid)
        if not values:
            return head
        parts = [head, _INT4.pack(len(values)), _INT4.pack(1)]
        for value in values:
            raw = None if value is None else element.binary(value)
            parts.append(_INT4.pack(-1) if raw is None else _INT4.pack(len(raw)) + raw)
        return b"".join(parts)

    return WireType(oid=oid, size=-1, text=text, binary=binary)


def encoder(type: ColumnType, form: int) -> Encoder:
    """Returns the writer of values of a type."""
    wire = wire_type(type)
    return wire.binary if form == BINARY else wire.text


@dataclass(frozen=True, slots=True)
class InputType:
    """A type that clients declare for parameters: ours that it becomes, and its binary form."""

    type: ColumnType
    binary: Decoder


def _fixed(form: Struct) -> Decoder:
    def decode(raw: bytes) -> Datum:
        (value,) = form.unpack(raw)
        return value  # type: ignore[no-any-return]

    return decode


def _bool(raw: bytes) -> Datum:
    if len(raw) != 1:
        raise ValueError("a bool is one byte")
    return raw != b"\0"


def _date(raw: bytes) -> Datum:
    return _EPOCH_DATE + timedelta(days=_INT4.unpack(raw)[0])


def _timestamp(raw: bytes) -> Datum:
    return _EPOCH + timedelta(microseconds=_INT8.unpack(raw)[0])


def _timestamptz(raw: bytes) -> Datum:
    return _EPOCH_UTC + timedelta(microseconds=_INT8.unpack(raw)[0])


def _uuid(raw: bytes) -> Datum:
    return UUID(bytes=raw)


def _jsonb(raw: bytes) -> Datum:
    if raw[:1] != b"\x01":
        raise ValueError("unsupported jsonb version number")
    return normal_json(decode_text(raw[1:]))


def _json(raw: bytes) -> Datum:
    return normal_json(decode_text(raw))


def _time(raw: bytes) -> Datum:
    return time_of_day(_INT8.unpack(raw)[0])


def _interval(raw: bytes) -> Datum:
    microseconds, days, months = _INTERVAL.unpack(raw)
    return Interval(months=months, days=days, microseconds=microseconds)


INPUT_TYPES: dict[int, InputType] = {
    16: InputType(BOOL, _bool),
    17: InputType(BYTES, bytes),
    18: InputType(STRING, decode_text),  # "char"
    19: InputType(STRING, decode_text),  # name
    20: InputType(INT8, _fixed(_INT8)),
    21: InputType(INT8, _fixed(_INT2)),
    23: InputType(INT8, _fixed(_INT4)),
    25: InputType(STRING, decode_text),
    26: InputType(INT8, _fixed(_OID)),
    114: InputType(JSONB, _json),
    700: InputType(FLOAT4, _fixed(_FLOAT4)),
    701: InputType(FLOAT8, _fixed(_FLOAT8)),
    1042: InputType(STRING, decode_text),  # char(n)
    1043: InputType(STRING, decode_text),  # varchar
    1082: InputType(DATE, _date),
    1083: InputType(TIME, _time),
    1114: InputType(TIMESTAMP, _timestamp),
    1184: InputType(TIMESTAMPTZ, _timestamptz),
    1186: InputType(INTERVAL, _interval),
    1700: InputType(DECIMAL, read_numeric),
    2950: InputType(ColumnType(TypeKind.UUID), _uuid),
    3802: InputType(JSONB, _jsonb),
}


def _array_input(element: InputType, element_oid: int) -> InputType:
    """The array of a declared type."""

    def decode(raw: bytes) -> Datum:
        dimensions, _, oid = _ARRAY_HEAD.unpack_from(raw)
        if oid != element_oid or dimensions not in (0, 1):
            raise ValueError("an array of other elements, or of several dimensions")
        if dimensions == 0:
            return []
        (count,) = _INT4.unpack_from(raw, _ARRAY_HEAD.size)
        at = _ARRAY_HEAD.size + 2 * _INT4.size
        values: list[Datum] = []
        for _ in range(count):
            (length,) = _INT4.unpack_from(raw, at)
            at += _INT4.size
            if length < 0:
                values.append(None)
                continue
            if at + length > len(raw):
                raise ValueError("an array ends too early")
            values.append(element.binary(raw[at : at + length]))
            at += length
        if count < 0 or at != len(raw):
            raise ValueError("an array of another length")
        return values

    return InputType(array_of(element.type), decode)


for _row in ALL_ROWS:
    if _row.oid in INPUT_TYPES:
        INPUT_TYPES[_row.array] = _array_input(INPUT_TYPES[_row.oid], _row.oid)


@lru_cache(maxsize=KNOWN_MAX)
def user_input(oid: int) -> InputType:
    """The decoding of labels of an enumeration, or arrays of them: what they meet checks them."""
    found = user_type_of(oid)
    assert found is not None, oid
    type_id, is_array = found
    label = InputType(STRING, decode_text)
    return _array_input(label, user_type_oid(type_id)) if is_array else label


UNKNOWN_OIDS = (0, 705)
"""A parameter declared so is inferred."""


def hint_of(oid: int, number: int) -> ColumnType | DeclaredType | None:
    """The type that a client declares for parameter `number`. Raises SQLError 42704."""
    if oid in UNKNOWN_OIDS:
        return None
    known = INPUT_TYPES.get(oid)
    if known is None:
        declared = user_type_of(oid)
        if declared is not None:
            return DeclaredType(*declared)
        raise SQLError(
            "42704",
            f"type with OID {oid} does not exist",
            detail=f"It is declared for parameter ${number}.",
            hint="Declare no type, or cast the parameter in the statement.",
        )
    return known.type


def decode_parameter(raw: bytes, oid: int, form: int, number: int) -> Datum:
    """A parameter's value. Raises SQLError 22P03 for bytes that are no such value."""
    known = INPUT_TYPES.get(oid) or user_input(oid)
    if form == TEXT:
        written = decode_text(raw)
        if known.type.kind is TypeKind.DECIMAL:
            return read_decimal(written)  # with all its digits: what it meets rounds it
        return coerce(known.type, written)
    return decode_binary(known, raw, f"bind parameter {number}")


@lru_cache(maxsize=KNOWN_MAX)
def parameter_decoder(oid: int, form: int) -> Decoder:
    """Returns the decoder of a type's values in a format. Its errors name no parameter: where it
    fails, `decode_parameter` raises the SQLError."""
    known = INPUT_TYPES.get(oid) or user_input(oid)
    if form == BINARY:
        return known.binary
    type = known.type
    if type == STRING:
        return _plain_text
    if type.kind is TypeKind.DECIMAL or form != TEXT:
        return lambda raw: decode_parameter(raw, oid, form, 0)
    return lambda raw: coerce(type, decode_text(raw))


def _plain_text(raw: bytes) -> str:
    if b"\0" in raw:
        raise ValueError(raw)
    return raw.decode()


def decode_binary(known: InputType, raw: bytes, what: str) -> Datum:
    try:
        return known.binary(raw)
    except (struct_error, ValueError, OverflowError, ArithmeticError) as error:
        raise SQLError(
            "22P03",
            f"incorrect binary data format in {what}",
            detail=f"It is declared {known.type.sql_name}.",
        ) from error
