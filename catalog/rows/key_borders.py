"""Borders: keys between rows, made of some values and printed for people.

The table (a INT8, b STRING, PRIMARY KEY (a, b)) has the id 104, its primary index the id 1:

    border_key(primary, [10])          t 104 1 | 10              before every row with a = 10
    border_key(primary, [10, "x"])     t 104 1 | 10 | "x"        before the row (10, 'x')
    pretty_key(…)                      /Table/104/1/10/"x"

A border may have fewer values than the key, never more.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...kvlayer.keys import KEYSPACE_LENGTH, RAW_KIND, TABLE_KIND, index_prefix
from ...kvlayer.raw import user_key
from ..descriptors.descriptor import Column, TableDescriptor
from ..descriptors.elements import Index, IndexKind
from ..values.column_types import Datum, coerce
from ..values.errors import SQLError
from ..values.physical import datum_reader, physical_of
from .key_encoding import part_reader, part_writer

_INDEX_LENGTH = KEYSPACE_LENGTH + 2
_NULL, _VALUE = b"\x00", b"\x01"


def border_columns(descriptor: TableDescriptor, index: Index) -> list[Column]:
    """The columns that a border in the index may have values for."""
    ids = list(index.columns)
    if index.kind is not IndexKind.PRIMARY and not index.unique:
        ids += [column_id for column_id in descriptor.primary_key if column_id not in ids]
    return [descriptor.column_by_id(column_id) for column_id in ids]


def border_key(descriptor: TableDescriptor, index: Index, values: Sequence[object]) -> bytes:
    """The least key of the index whose columns begin with these values.

    Raises SQLError for values that are too many (42601), of another type (42804 and the codes of
    `coerce`), or NULL in a primary key (23502).
    """
    columns = border_columns(descriptor, index)
    if not values or len(values) > len(columns):
        raise SQLError(
            "42601",
            f"a border of {index.name} has {len(columns)} values at most, and one at least: "
            f"{len(values)} were given",
            hint=f"Give values for a prefix of: {', '.join(column.name for column in columns)}.",
        )
    parts = [index_prefix(descriptor.id, index.id)]
    own = len(index.columns)
    for place, (column, value) in enumerate(zip(columns, values, strict=False)):
        datum = coerce(column.type, value, column=column.name)
        marked = index.kind is not IndexKind.PRIMARY and place < own
        parts.append(_part(column, datum, marked=marked))
    return b"".join(parts)


def pretty_key(key: bytes, descriptor: TableDescriptor | None = None) -> str:
    """A key for people: `/Table/104/1/10`, `/Keyspace/104/6b6579`, and `/Min` or raw bytes where it
    is none of a row or an entry.

    Values are printed where `descriptor` is the key's table; what does not decode is in hex.
    """
    if key[:1] == RAW_KIND and len(key) >= KEYSPACE_LENGTH:
        return _pretty_raw(key)
    if key[:1] != TABLE_KIND or len(key) < KEYSPACE_LENGTH:
        return "/Min" if key <= TABLE_KIND else "/Max" if key[:1] == b"\xff" else f"/0x{key.hex()}"
    table_id = int.from_bytes(key[1:KEYSPACE_LENGTH], "big")
    text = f"/Table/{table_id}"
    if len(key) < _INDEX_LENGTH:
        return text
    index_id = int.from_bytes(key[KEYSPACE_LENGTH:_INDEX_LENGTH], "big")
    text += f"/{index_id}"
    if len(key) == _INDEX_LENGTH:
        return text
    index = None
    if descriptor is not None and descriptor.id == table_id:
        candidates = (descriptor.primary_index, *descriptor.maintained_indexes)
        index = next((found for found in candidates if found.id == index_id), None)
    if descriptor is None or index is None:
        return f"{text}/0x{key[_INDEX_LENGTH:].hex()}"
    return text + _pretty_values(descriptor, index, key)


def _part(column: Column, datum: Datum, *, marked: bool) -> bytes:
    if datum is None:
        if not marked:
            raise SQLError("23502", f'a border cannot be NULL in column "{column.name}"')
        return _NULL
    written = part_writer(column.type)(physical_of(column.type, datum))
    return _VALUE + written if marked else written


def _pretty_values(descriptor: TableDescriptor, index: Index, key: bytes) -> str:
    text, offset = "", _INDEX_LENGTH
    for place, column in enumerate(border_columns(descriptor, index)):
        if offset >= len(key):
            return text
        try:
            if index.kind is not IndexKind.PRIMARY and place < len(index.columns):
                marker, offset = key[offset : offset + 1], offset + 1
                if marker == _NULL:
                    text += "/NULL"
                    continue
            value, offset = part_reader(column.type)(key, offset)
        except (ValueError, struct.error, IndexError):
            return f"{text}/0x{key[offset:].hex()}"
        read = datum_reader(column.type)
        text += f"/{_pretty(value if read is None else read(value))}"
    return f"{text}/0x{key[offset:].hex()}" if offset < len(key) else text


def _pretty(datum: Datum) -> str:
    match datum:
        case str():
            return '"' + datum.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case bytes():
            return f"0x{datum.hex()}"
        case bool():
            return str(datum).lower()
        case _:
            return str(datum)


def _pretty_raw(key: bytes) -> str:
    text = f"/Keyspace/{int.from_bytes(key[1:KEYSPACE_LENGTH], 'big')}"
    if len(key) == KEYSPACE_LENGTH:
        return text
    try:
        return f"{text}/{user_key(key).hex()}"
    except ValueError:
        return f"{text}/0x{key[KEYSPACE_LENGTH:].hex()}"
