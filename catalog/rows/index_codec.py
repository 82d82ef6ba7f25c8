"""Entries of indexes: what an index holds of a row, as a function of the row's body.

A secondary index of the table (k INT8 = 1, v STRING = 2, w INT8 = 3) on (v) storing (w) holds for
the row (7, 'x', NULL)

    key    t | table id | index id | 01 'x' | 01 7      the value of each column behind a marker
    body   [1, 7, 2, "x", 3, nil]                       the columns that the index knows

The marker is 00 for NULL, which sorts first and has no value behind it, else 01. The primary key's
columns that the index lacks end the key, so that rows with equal values have entries of their own;
but a unique index leaves them out where no value is NULL, and so has room for one such row.

A primary index that is being built, or was replaced, holds the row's body as it is, under the key
of its own columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...kvlayer.keys import index_prefix, index_span
from ...kvlayer.span import Span
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.elements import Index, IndexKind
from ..values.column_types import Datum
from ..values.errors import null_value
from ..values.physical import Physical, datum_reader, physical_of
from .key_encoding import KeyEncoding, part_writer

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list).decode

_NULL = b"\x00"
_VALUE = b"\x01"

Entry = tuple[bytes, bytes]


class IndexCodec:
    """The entries of one index of one version of a table."""

    def __init__(self, descriptor: TableDescriptor, index: Index) -> None:
        self.descriptor = descriptor
        self.index = index
        self._prefix = index_prefix(descriptor.id, index.id)
        by_id = {column.id: column for column in descriptor.columns}
        self._columns = [by_id[column_id] for column_id in index.columns]
        self._missing = {
            column.id: physical_of(column.type, column.missing) for column in descriptor.columns
        }
        self._keys: KeyEncoding | None = None
        if index.kind is IndexKind.PRIMARY:
            self._keys = KeyEncoding(self._prefix, [column.type for column in self._columns])
        row_key = descriptor.primary_key if index.suffix is None else index.suffix
        suffix = [id for id in row_key if id not in index.columns]
        self._parts = [(column.id, part_writer(column.type)) for column in self._columns]
        self._suffix = [(id, part_writer(by_id[id].type)) for id in suffix]
        self._held = sorted({*index.columns, *index.storing, *row_key})

    @property
    def span(self) -> Span:
        return index_span(self.descriptor.id, self.index.id)

    def entry(self, body: bytes) -> Entry:
        """Key and body of the entry of the row with this body, written under any version."""
        row = _decode(body)
        found = dict(zip(row[::2], row[1::2], strict=True))
        if self._keys is not None:
            return self._keys.encode(self._key_values(found)), body
        missing = self._missing
        key = [self._prefix]
        has_null = False
        for column_id, write in self._parts:
            value = found.get(column_id, missing[column_id])
            if value is None:
                has_null = True
                key.append(_NULL)
            else:
                key.append(_VALUE + write(value))
        if has_null or not self.index.unique:
            key += [
                _VALUE + write(found.get(column_id, missing[column_id]))
                for column_id, write in self._suffix
            ]
        held: list[Any] = [None] * (2 * len(self._held))
        held[::2] = self._held
        held[1::2] = [found.get(column_id, missing[column_id]) for column_id in self._held]
        return b"".join(key), _encode(held)

    def entries(self, bodies: Sequence[bytes]) -> list[Entry]:
        entry = self.entry
        return [entry(body) for body in bodies]

    def values(self, body: bytes) -> tuple[Datum, ...]:
        """The datums of the index's columns in a row, or in an entry of this index."""
        row = _decode(body)
        found = dict(zip(row[::2], row[1::2], strict=True))
        values: list[Datum] = []
        for column in self._columns:
            value = found.get(column.id, self._missing[column.id])
            read = datum_reader(column.type)
            values.append(value if value is None or read is None else read(value))
        return tuple(values)

    def prefix_of(self, body: bytes) -> bytes | None:
        """The prefix of the keys of all entries whose values equal the row's; None if one is
        NULL."""
        row = _decode(body)
        found = dict(zip(row[::2], row[1::2], strict=True))
        key = [self._prefix]
        for column_id, write in self._parts:
            value = found.get(column_id, self._missing[column_id])
            if value is None:
                return None
            key.append(_VALUE + write(value))
        return b"".join(key)

    def beginning(self, values: Sequence[Physical]) -> bytes:
        """The prefix of the keys of all entries whose first columns have these values, none
        NULL."""
        parts = zip(self._parts, values, strict=False)
        return b"".join([self._prefix, *(_VALUE + write(value) for (_, write), value in parts)])

    def _key_values(self, found: dict[int, Any]) -> list[Any]:
        values = []
        for column in self._columns:
            value = found.get(column.id, self._missing[column.id])
            if value is None:
                raise null_value(self.descriptor.name, column.name)
            values.append(value)
        return values


def index_codec_for(descriptor: TableDescriptor, index: Index) -> IndexCodec:
    """The codec of an index of a version, compiled once for as long as the version is in memory."""
    known = descriptor.compiled
    codec = known.get(("index", index.id))
    if codec is None:
        codec = known["index", index.id] = IndexCodec(descriptor, index)
    assert isinstance(codec, IndexCodec), codec
    return codec
