r"""The `wrapped` envelope in JSON.

    insert, update    {"after": {"id": 1, "name": "a"}}
    deletion          {"after": null}
    key               [1]
    resolved          {"resolved": "1700000000000000000.0000000000"}

With the options of the same names, a message also has `"updated"` and `"mvcc_timestamp"`. Columns
stand in the table's order. Values are what CockroachDB prints:

    DECIMAL        a number with all its digits                          1.50
    FLOAT4, FLOAT8 a number; "NaN", "Infinity" and "-Infinity" as text   0.5
    BYTES          text, hexadecimal                                     "\\x00ff"
    DATE           text                                                  "2020-01-01"
    TIMESTAMP      text without a zone, fraction as short as it can be   "2020-01-01T00:00:00.5"
    TIMESTAMPTZ    the same in UTC                                       "2020-01-01T00:00:00Z"
    TIME           text, fraction as short as it can be                  "10:00:00.5"
    INTERVAL       text, in PostgreSQL's style                           "1 mon 2 days 03:00:00"
    UUID           text                                                  "6f0d1c5e-…"
    JSONB          the document itself                                   {"a": [1, 2]}
    ARRAY          an array of what its elements are                     [1, null]

The key of a row shows an INTERVAL by its length (`30 days` for `1 mon`), as the store's key has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, time
from math import isfinite, isnan
from typing import NamedTuple

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.column_types import ColumnType, Datum, shortest_float4
from ...catalog.values.interval import Interval
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.changes import ChangeBatch
from ..contract.options import ChangefeedOptions

_encode = msgspec.json.Encoder(decimal_format="number").encode

TABLES_MAX = 256
"""Compiled tables kept: one per descriptor version in use, with room for versions gone by."""


class Message(NamedTuple):
    """One change as a consumer reads it."""

    key: bytes
    value: bytes


class JSONEncoder:
    """Encodes changes for one feed. Tables are compiled once per descriptor version."""

    def __init__(self, options: ChangefeedOptions) -> None:
        self._updated = options.updated
        self._mvcc_timestamp = options.mvcc_timestamp
        self._tables: dict[tuple[int, int], _Table] = {}

    def encode(self, batch: ChangeBatch) -> list[Message]:
        """One message for each change of `batch`, in its order."""
        table = self._table(batch.descriptor)
        suffixes = self._suffixes(batch)
        return [
            Message(
                table.key_of(row) if row is not None else table.decoded_key(key),
                b'{"after":' + (table.value_of(row) if row is not None else b"null") + suffix,
            )
            for key, row, suffix in zip(batch.keys, batch.iterate_rows(), suffixes, strict=True)
        ]

    def _table(self, descriptor: TableDescriptor) -> _Table:
        version = (descriptor.id, descriptor.version)
        table = self._tables.get(version)
        if table is None:
            if len(self._tables) >= TABLES_MAX:
                self._tables.clear()
            table = self._tables[version] = _Table(descriptor)
        return table

    def _suffixes(self, batch: ChangeBatch) -> Sequence[bytes]:
        """What follows the row in each message. Most batches have one timestamp, so one suffix."""
        if not self._updated and not self._mvcc_timestamp:
            return [b"}"] * len(batch)
        versions = batch.timestamps if batch.versions is None else batch.versions
        known: dict[tuple[Timestamp, Timestamp], bytes] = {}
        pairs = list(zip(batch.timestamps, versions, strict=True))
        for pair in set(pairs):
            known[pair] = self._suffix(*pair)
        return [known[pair] for pair in pairs]

    def _suffix(self, updated: Timestamp, version: Timestamp) -> bytes:
        suffix = ""
        if self._updated:
            suffix += f',"updated":"{format_timestamp(updated)}"'
        if self._mvcc_timestamp:
            suffix += f',"mvcc_timestamp":"{format_timestamp(version)}"'
        return suffix.encode() + b"}"


def encode_resolved(resolved: Timestamp) -> bytes:
    """The resolved message: nothing new at or below it will come."""
    return f'{{"resolved":"{format_timestamp(resolved)}"}}'.encode()


class _Table:
    """What encoding needs of one descriptor version, looked up once."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        columns = descriptor.visible_columns
        position = {column.id: index for index, column in enumerate(columns)}
        self._shown = [
            (column.name, place) for place, column in enumerate(columns) if not column.hidden
        ]
        self._hides = len(self._shown) != len(columns)
        self._names = [column.name for column in columns]
        self._key_positions = [position[column_id] for column_id in descriptor.primary_key]
        self._printers = _printers([column.type for column in columns])
        self._key_printers = _key_printers([columns[at].type for at in self._key_positions])
        self._decode_key = codec_for(descriptor).decode_key

    def value_of(self, row: tuple[Datum, ...]) -> bytes:
        printed = _printed(row, self._printers)
        if self._hides:
            return _encode({name: printed[place] for name, place in self._shown})
        return _encode(dict(zip(self._names, printed, strict=True)))

    def key_of(self, row: tuple[Datum, ...]) -> bytes:
        return _encode(_printed([row[index] for index in self._key_positions], self._key_printers))

    def decoded_key(self, key: bytes) -> bytes:
        return _encode(_printed(self._decode_key(key), self._key_printers))


Printer = Callable[[Datum], object]


def _printed(row: Sequence[Datum], printers: Sequence[tuple[int, Printer]]) -> Sequence[object]:
    if not printers:
        return row
    values: list[object] = list(row)
    for index, printer in printers:
        if row[index] is not None:
            values[index] = printer(row[index])
    return values


def _printers(types: Sequence[ColumnType]) -> list[tuple[int, Printer]]:
    """For each value that msgspec would not print as we want it, its position and its printer."""
    found = [(index, _printer(type)) for index, type in enumerate(types)]
    return [(index, printer) for index, printer in found if printer is not None]


def _key_printers(types: Sequence[ColumnType]) -> list[tuple[int, Printer]]:
    """The same for keys, which must look alike whether they come from a row or from its key."""
    return [
        (index, _interval_length if types[index].kind is TypeKind.INTERVAL else printer)
        for index, printer in _printers(types)
    ]


def _printer(type: ColumnType) -> Printer | None:
    if type.element is None:
        return _PRINTERS.get(type.kind)
    element = _printer(type.element)
    return None if element is None else _array_printer(element)


def _array_printer(element: Printer) -> Printer:
    def write(items: Datum) -> object:
        assert isinstance(items, list), items
        return [None if item is None else element(item) for item in items]

    return write


def _float(value: Datum) -> object:
    assert isinstance(value, float), value
    if isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float4(value: Datum) -> object:
    assert isinstance(value, float), value
    return shortest_float4(value) if isfinite(value) else _float(value)


def _bytes(value: Datum) -> str:
    assert isinstance(value, bytes), value
    return "\\x" + value.hex()


def _timestamp(value: Datum) -> str:
    assert isinstance(value, datetime), value
    text = value.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if value.microsecond else text


def _timestamptz(value: Datum) -> str:
    return _timestamp(value) + "Z"


def _time(value: Datum) -> str:
    assert isinstance(value, time), value
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def _interval_length(value: Datum) -> str:
    assert isinstance(value, Interval), value
    return str(Interval.of_length(value.length))


def _document(value: Datum) -> msgspec.Raw:
    assert isinstance(value, str), value
    return msgspec.Raw(value.encode())


_PRINTERS: dict[TypeKind, Printer] = {
    TypeKind.FLOAT4: _float4,
    TypeKind.FLOAT8: _float,
    TypeKind.BYTES: _bytes,
    TypeKind.TIMESTAMP: _timestamp,
    TypeKind.TIMESTAMPTZ: _timestamptz,
    TypeKind.TIME: _time,
    TypeKind.INTERVAL: str,
    TypeKind.JSONB: _document,
}
