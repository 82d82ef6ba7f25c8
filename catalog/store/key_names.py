"""Keys as people read them: a table's name, an index, and the values of its columns.

/orders/orders_pkey/7                      a row of defaultdb.public.orders
/shop.public.items/by_name/'nut'/7         an entry of an index
/system.public.descriptor/descriptor_pkey/104
0x7400000068000100                         what no descriptor explains
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec

from ...kvlayer import keys
from ...kvlayer.clock import MAX_TIMESTAMP, ZERO
from ...kvlayer.engine import Reader
from ...kvlayer.mvcc import scan_at
from ...kvlayer.process.fibre import give_way
from ...kvlayer.span import Span
from ..descriptors.descriptor import (
    DatabaseDescriptor,
    Descriptor,
    SchemaDescriptor,
    TableDescriptor,
)
from ..descriptors.elements import Index, IndexKind
from ..descriptors.names import TableName
from ..descriptors.system_tables import DEFAULT_DATABASE, DESCRIPTOR, PUBLIC_SCHEMA
from ..rows.key_encoding import KeyEncoding, part_reader
from ..rows.row_codec import RowUnreadable, codec_for
from ..values.column_types import ColumnType, Datum
from ..values.physical import Physical, datum_reader
from .descriptor_store import decode_stored

_NULL_MARKER = 0
_STEPS_PER_DESCRIPTOR = 4
"""Steps of a slice that the decoding of a descriptor counts as."""


class KeyNames:
    """Names keys by the descriptors of one moment. Never raises for a key: what it cannot read it
    gives in hex."""

    def __init__(self, descriptors: Iterable[Descriptor]) -> None:
        known = list(descriptors)
        self._containers = {
            found.id: found.name
            for found in known
            if isinstance(found, DatabaseDescriptor | SchemaDescriptor)
        }
        self.tables = {found.id: found for found in known if isinstance(found, TableDescriptor)}

    @classmethod
    def load(cls, reader: Reader) -> KeyNames:
        """By the newest committed descriptors of a store, served or not."""
        found = []
        for key, body in scan_at(reader, DESCRIPTOR.primary_span, MAX_TIMESTAMP):
            give_way(_STEPS_PER_DESCRIPTOR)
            found.append(decode_stored(key, body, ZERO))
        return cls(found)

    def table_of(self, key: bytes) -> TableDescriptor | None:
        """The table that a key belongs to, if its descriptor is known."""
        if key[:1] != keys.TABLE_KIND or len(key) < keys.KEYSPACE_LENGTH:
            return None
        return self.tables.get(keys.table_id_of(key))

    def find(self, name: TableName) -> TableDescriptor | None:
        """The table of that name which is not dropped."""
        for table in self.tables.values():
            if table.name == name.name and not table.dropped and self.full_name(table) == name:
                return table
        return None

    def full_name(self, table: TableDescriptor) -> TableName:
        database = self._containers.get(table.database_id, str(table.database_id))
        schema = self._containers.get(table.schema_id, str(table.schema_id))
        return TableName(database, schema, table.name)

    def key(self, key: bytes) -> str:
        """The key, in words."""
        table = self.table_of(key)
        if table is None:
            return f"0x{key.hex()}"
        path = self._table_path(table)
        rest = key[keys.KEYSPACE_LENGTH :]
        if len(rest) < 2:
            return path + (f"/0x{rest.hex()}" if rest else "")
        index = _index_of(table, int.from_bytes(rest[:2], "big"))
        if index is None:
            return f"{path}/{int.from_bytes(rest[:2], 'big')}/0x{rest[2:].hex()}"
        values = _key_values(table, index, key)
        if values is None:
            return f"{path}/{index.name}" + (f"/0x{rest[2:].hex()}" if rest[2:] else "")
        return "/".join([path, index.name, *map(_text, values)])

    def span(self, span: Span) -> str:
        """The span, in words: a table's name when it is all of one."""
        table = self.table_of(span.start)
        if table is not None and span == keys.table_span(table.id):
            return self._table_path(table)
        return f"[{self.key(span.start)}, {self.key(span.end)})"

    def row(self, key: bytes, body: bytes) -> dict[str, Datum] | None:
        """The columns of a row; None where it is none of a table's primary index."""
        table = self.table_of(key)
        if table is None or not table.primary_span.contains(key):
            return None
        try:
            values = codec_for(table).decode_row(key, body)
        except (RowUnreadable, msgspec.MsgspecError, ValueError):
            return None  # a version of before a retype, say: then the bytes must do
        return dict(zip((column.name for column in table.visible_columns), values, strict=True))

    def _table_path(self, table: TableDescriptor) -> str:
        name = self.full_name(table)
        if (name.database, name.schema) == (DEFAULT_DATABASE, PUBLIC_SCHEMA):
            return f"/{table.name}"
        return f"/{name}"


def _index_of(table: TableDescriptor, index_id: int) -> Index | None:
    for index in (table.primary_index, *table.maintained_indexes):
        if index.id == index_id:
            return index
    return None


def _key_values(table: TableDescriptor, index: Index, key: bytes) -> list[Datum] | None:
    types = {column.id: column.type for column in table.columns}
    own = [types[column_id] for column_id in index.columns]
    try:
        if index.kind is IndexKind.PRIMARY:
            values = KeyEncoding(keys.index_prefix(table.id, index.id), own).decode(key)
            return [_datum(type, value) for type, value in zip(own, values, strict=True)]
        more = [types[column_id] for column_id in table.primary_key]
        suffix = [
            type
            for column_id, type in zip(table.primary_key, more, strict=True)
            if column_id not in index.columns
        ]
        return _marked_values([*own, *suffix], key)
    except (ValueError, IndexError, struct.error):
        return None


def _marked_values(types: list[ColumnType], key: bytes) -> list[Datum]:
    """The values of a secondary index's key, which ends where it ends (see `index_codec`)."""
    offset = keys.KEYSPACE_LENGTH + 2
    values: list[Datum] = []
    for type in types:
        if offset == len(key):
            break
        marker, offset = key[offset], offset + 1
        if marker == _NULL_MARKER:
            values.append(None)
        else:
            value, offset = part_reader(type)(key, offset)
            values.append(_datum(type, value))
    if offset != len(key):
        raise ValueError(f"key {key.hex()} is longer than its index's")
    return values


def _datum(type: ColumnType, value: Physical) -> Datum:
    read = datum_reader(type)
    return value if value is None or read is None else read(value)


def _text(value: Datum) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes():
            return f"\\x{value.hex()}"
    return str(value)
