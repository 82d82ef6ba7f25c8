"""Keys of rows: primary key values as bytes that sort as the values do.

A key is the index's prefix and one part per column, each of which delimits itself:

    BOOL                                  one byte, 0 or 1
    integers, DATE, TIME, TIMESTAMP,      eight bytes, big-endian, sign bit flipped
    TIMESTAMPTZ
    FLOAT4, FLOAT8                        eight bytes in the order of doubles; NaN sorts first, and
                                          -0.0 is stored as 0.0, which it equals
    DECIMAL                               sixteen bytes, big-endian: the value times 10^scale, plus
                                          2^127 (38 digits fit, and a column's scale is fixed)
    texts, BYTES, marks of an ENUM        groups of eight with a marker (`kvlayer.keys`)
    UUID                                  its sixteen bytes
    INTERVAL                              twelve bytes: its length (`interval`) plus 2^95

NULL has no place: no column of a primary key takes it. Everything here takes and returns physical
values. A FLOAT8 key does not give -0.0 back, nor an INTERVAL's its months, so readers take the
row's columns from its body.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from itertools import repeat
from typing import Any

from ...kvlayer.keys import (
    decode_bytes,
    decode_float,
    decode_int,
    encode_bytes,
    encode_float,
    encode_int,
)
from ..values.column_types import DECIMAL_PRECISION_MAX, ColumnType
from ..values.interval import ORDER_BIAS, ORDER_BYTES, Interval
from ..values.physical import Physical
from ..values.type_kinds import FLOATS, INTEGERS, TEXTS, TypeKind

PartWriter = Callable[[Any], bytes]
PartsWriter = Callable[[Sequence[Any]], Sequence[bytes]]
PartReader = Callable[[bytes, int], tuple[Physical, int]]

_SIGN = 1 << 63
_U64 = struct.Struct(">Q").pack
_U64_AT = struct.Struct(">Q").unpack_from
_DECIMAL_BIAS = 1 << 127
_DECIMAL_CONTEXT = Context(prec=DECIMAL_PRECISION_MAX)

_INTEGERS = (*INTEGERS, TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ)


class KeyEncoding:
    """The keys of one index: its prefix and the types of its columns, compiled."""

    def __init__(self, prefix: bytes, types: Sequence[ColumnType]) -> None:
        self._prefix = prefix
        self._writers = [part_writer(type) for type in types]
        self._many_writers = [parts_writer(type) for type in types]
        self._readers = [part_reader(type) for type in types]
        integers = all(type.kind in _INTEGERS for type in types)
        self._integers = struct.Struct(f">{len(prefix)}s{len(types)}Q") if integers else None

    def encode(self, values: Sequence[Physical]) -> bytes:
        return self._prefix + b"".join(
            [write(value) for write, value in zip(self._writers, values, strict=True)]
        )

    def encode_many(self, columns: Sequence[Sequence[Any]]) -> list[bytes]:
        """The keys of rows given as columns."""
        if self._integers is not None and len(columns) == 1:
            pack, prefix = self._integers.pack, self._prefix
            return [pack(prefix, value + _SIGN) for value in columns[0]]
        parts = [write(values) for write, values in zip(self._many_writers, columns, strict=True)]
        return list(map(b"".join, zip(repeat(self._prefix), *parts, strict=False)))

    def decode(self, key: bytes) -> list[Physical]:
        """Raises ValueError where `key` is not one of this index."""
        if not key.startswith(self._prefix):
            raise ValueError(f"key {key.hex()} is not of the index {self._prefix.hex()}")
        offset = len(self._prefix)
        values: list[Physical] = []
        try:
            for read in self._readers:
                value, offset = read(key, offset)
                values.append(value)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ValueError(f"key {key.hex()} is malformed: {error}") from error
        if offset != len(key):
            raise ValueError(f"key {key.hex()} has {len(key) - offset} bytes too many")
        return values

    def decode_many(self, keys: Sequence[bytes]) -> list[Sequence[Physical]]:
        """The columns of the keys' values."""
        integers = self._integers
        if integers is not None and all(len(key) == integers.size for key in keys):
            start = len(self._prefix)
            return [
                [_U64_AT(key, offset)[0] - _SIGN for key in keys]
                for offset in range(start, integers.size, 8)
            ]
        return list(zip(*map(self.decode, keys), strict=True))


def part_writer(type: ColumnType) -> PartWriter:
    """The writer of a type's values, none NULL, as their part of a key."""
    return _encode_decimal if type.kind is TypeKind.DECIMAL else _PARTS[type.kind][0]


def parts_writer(type: ColumnType) -> PartsWriter:
    """Returns the writer of several values at once, each as `part_writer` writes it."""
    write = part_writer(type)
    match type.kind:
        case _ if type.kind in _INTEGERS:
            return lambda values: [_U64(value + _SIGN) for value in values]
        case _ if type.kind in TEXTS or type.kind in (TypeKind.BYTES, TypeKind.ENUM):
            # Columns of a composite key repeat themselves, and a group costs what ten lookups do.
            return lambda values: _memoized(write, values)
        case TypeKind.UUID:
            return lambda values: values
        case _:
            return lambda values: [write(value) for value in values]


def _memoized(write: PartWriter, values: Iterable[Any]) -> list[bytes]:
    known: dict[Any, bytes] = {}
    parts = []
    for value in values:
        part = known.get(value)
        if part is None:
            part = known[value] = write(value)
        parts.append(part)
    return parts


def part_reader(type: ColumnType) -> PartReader:
    """The reader of a type's part of a key: its value, and where the next part begins."""
    if type.kind is TypeKind.DECIMAL:
        return _decimal_reader(type.decimal[1])
    return _PARTS[type.kind][1]


def _encode_decimal(text: str) -> bytes:
    # The exponent is the column's scale in every value, so the coefficient's digits are the value
    # times 10^scale, in the plain form (12.50) as in the scientific one (1.25E-7).
    coefficient = int(text.partition("E")[0].replace(".", ""))
    return (coefficient + _DECIMAL_BIAS).to_bytes(16, "big")


def _decimal_reader(scale: int) -> PartReader:
    def read(key: bytes, offset: int) -> tuple[Physical, int]:
        data, end = _read_sixteen(key, offset)
        coefficient = int.from_bytes(data, "big") - _DECIMAL_BIAS
        return str(_DECIMAL_CONTEXT.scaleb(Decimal(coefficient), -scale)), end

    return read


def _encode_interval(physical: bytes) -> bytes:
    length = Interval.of_physical(physical).length
    return (length + ORDER_BIAS).to_bytes(ORDER_BYTES, "big")


def _read_interval(key: bytes, offset: int) -> tuple[Physical, int]:
    end = offset + ORDER_BYTES
    if len(key) < end:
        raise IndexError(f"key ends at {len(key)}, twelve bytes wanted at {offset}")
    length = int.from_bytes(key[offset:end], "big") - ORDER_BIAS
    return Interval.of_length(length).physical, end


def _read_string(key: bytes, offset: int) -> tuple[Physical, int]:
    data, end = decode_bytes(key, offset)
    return data.decode(), end


def _read_sixteen(key: bytes, offset: int) -> tuple[bytes, int]:
    data = key[offset : offset + 16]
    if len(data) != 16:
        raise IndexError(f"key ends at {len(key)}, sixteen bytes wanted at {offset}")
    return data, offset + 16


_PARTS: dict[TypeKind, tuple[PartWriter, PartReader]] = {
    TypeKind.BOOL: (
        lambda value: b"\x01" if value else b"\x00",
        lambda key, offset: (bool(key[offset]), offset + 1),
    ),
    **dict.fromkeys(_INTEGERS, (encode_int, decode_int)),
    **dict.fromkeys(FLOATS, (encode_float, decode_float)),
    **dict.fromkeys(TEXTS, (lambda value: encode_bytes(value.encode()), _read_string)),
    **dict.fromkeys((TypeKind.BYTES, TypeKind.ENUM), (encode_bytes, decode_bytes)),
    TypeKind.UUID: (bytes, _read_sixteen),
    TypeKind.INTERVAL: (_encode_interval, _read_interval),
}
"""The writer and the reader of each kind of columns that a key may have, but for DECIMAL, whose
reader depends on its scale."""
