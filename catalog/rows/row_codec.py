"""Rows as bytes: the codec of one version of a table, shared by writers, readers and feeds.

The body of a row is one msgpack array of column ids and physical values, ids ascending, the key's
columns among them. For a table (k INT8 = 1, v STRING = 2, d DATE = 3) the row (7, 'x', NULL) is

    key    t | table id | index id | 80 00 00 00 00 00 00 07
    body   [1, 7, 2, "x", 3, nil]

Values carry column ids, so a body is read rightly by any version of its table: an id that it lacks
takes the column's missing value, an id that the version does not know is left out. A codec knows
the columns that are visible in its descriptor; writers compile it for `TableDescriptor.writable`.

The columnar paths are the hot loop of the whole house, and touch no row one by one in Python. To
decode, the array headers are cut off and all bodies are read as *one* msgpack array, whose
elements are dealt out with stride 2k:

    [1, 7, 2, "x", 3, nil] [1, 8, 2, "y", 3, nil]  ->  [1, 7, 2, "x", 3, nil, 1, 8, 2, "y", 3, nil]

That is right only if every row has the same ids, and it is found out afterwards at the cost of a
count per column: n rows of ascending ids that read, end to end, as n times the same ascending ids
can only have been cut at the row ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa

from ...kvlayer.keys import index_prefix
from ..descriptors.descriptor import Column, TableDescriptor
from ..values.arrow_columns import AnyArray, column_array, column_values, constant_array
from ..values.column_types import Datum
from ..values.errors import SQLError, null_value
from ..values.physical import Physical, datum_reader, physical_of, physical_writer
from .arrow_conform import conform
from .key_encoding import KeyEncoding

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list).decode

COLUMNWISE_ROWS_MIN = 16
"""Fewer rows are encoded one by one."""

_ARRAY16, _ARRAY32 = 0xDC, b"\xdd"
_FIRST_BYTE = itemgetter(0)


class RowUnreadable(Exception):
    """A key or a body that this table's rows cannot have: the store holds something else there."""


class RowCodec:
    """Encodes and decodes rows of one version of a table."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        self.descriptor = descriptor
        self.arrow_schema = pa.schema(
            [
                pa.field(column.name, column.type.arrow_type, nullable=column.nullable)
                for column in descriptor.visible_columns
            ]
        )
        columns = descriptor.visible_columns
        self._by_id = sorted(range(len(columns)), key=lambda place: columns[place].id)
        self._ids = [columns[place].id for place in self._by_id]
        self._ids_in_order = self._by_id == list(range(len(columns)))
        self._writers = [physical_writer(column.type, column.name) for column in columns]
        self._required = [place for place, column in enumerate(columns) if not column.nullable]
        self._readers = [
            (place, reader)
            for place, column in enumerate(columns)
            if (reader := datum_reader(column.type)) is not None
        ]
        self._missing = [physical_of(column.type, column.missing) for column in columns]
        key_columns = descriptor.key_columns
        self._key_places = [columns.index(column) for column in key_columns]
        self._key_writers = [physical_writer(column.type, column.name) for column in key_columns]
        self._keys = KeyEncoding(
            index_prefix(descriptor.id, descriptor.primary_index_id),
            [column.type for column in key_columns],
        )

    # Rows

    def encode_row(self, datums: Sequence[Datum]) -> tuple[bytes, bytes]:
        """Key and body of a row in the descriptor's column order.

        Raises SQLError: 23502 for NULL where there may be none, and whatever `coerce` raises.
        """
        values = [write(datum) for write, datum in zip(self._writers, datums, strict=True)]
        if None in values:
            for place in self._required:
                if values[place] is None:
                    raise self._null_error(self.descriptor.visible_columns[place])
        key = self._keys.encode([values[place] for place in self._key_places])
        if not self._ids_in_order:
            values = [values[place] for place in self._by_id]
        body: list[Physical] = [None] * (2 * len(values))
        body[::2] = self._ids
        body[1::2] = values
        return key, _encode(body)

    def encode_rows(self, rows: Sequence[Sequence[Datum]]) -> tuple[list[bytes], list[bytes]]:
        """Keys and bodies of rows in the descriptor's column order. Raises SQLError as `encode_row`
        does, for the first row that is wrong."""
        if len(rows) >= COLUMNWISE_ROWS_MIN:
            try:
                return self._encode_by_columns(rows)
            except SQLError:
                pass  # of which row, the way row by row says
        pairs = [self.encode_row(row) for row in rows]
        return [key for key, _ in pairs], [body for _, body in pairs]

    def _encode_by_columns(
        self, rows: Sequence[Sequence[Datum]]
    ) -> tuple[list[bytes], list[bytes]]:
        values: list[list[Physical]] = [
            list(map(write, column))
            for write, column in zip(self._writers, zip(*rows, strict=True), strict=True)
        ]
        for place in self._required:
            if None in values[place]:
                raise self._null_error(self.descriptor.visible_columns[place])
        keys = self._keys.encode_many([values[place] for place in self._key_places])
        return keys, self._bodies(values)

    def _bodies(self, values: Sequence[Sequence[Physical]]) -> list[bytes]:
        """The bodies of rows given as columns."""
        columns = self.descriptor.visible_columns
        tagged = chain.from_iterable(
            (repeat(columns[place].id), values[place]) for place in self._by_id
        )
        return list(map(_encode, zip(*tagged, strict=False)))

    def encode_key(self, datums: Sequence[Datum]) -> bytes:
        """The key of the row with this primary key, its datums in key order."""
        values = [write(datum) for write, datum in zip(self._key_writers, datums, strict=True)]
        if None in values:
            raise self._null_error(self.descriptor.key_columns[values.index(None)])
        return self._keys.encode(values)

    def decode_row(self, key: bytes, body: bytes) -> tuple[Datum, ...]:
        """The row behind `key`, in the descriptor's column order."""
        try:
            row = _decode(body)
        except msgspec.MsgspecError as error:
            raise RowUnreadable(f"body of key {key.hex()}: {error}") from error
        plain = self._ids_in_order and row[::2] == self._ids
        values: list[Any] = row[1::2] if plain else self._arrange(row)
        for place, read in self._readers:
            value = values[place]
            if value is not None:
                values[place] = read(value)
        return tuple(values)

    def decode_key(self, key: bytes) -> tuple[Datum, ...]:
        """The primary key of a row, in key order. A FLOAT8 of -0.0 comes back as 0.0."""
        try:
            values = self._keys.decode(key)
        except ValueError as error:
            raise RowUnreadable(str(error)) from error
        return tuple(
            value if (read := datum_reader(column.type)) is None else read(value)
            for column, value in zip(self.descriptor.key_columns, values, strict=True)
        )

    def _arrange(self, row: list[Any]) -> list[Any]:
        """The physical values of a row of any version, in the descriptor's column order."""
        found = dict(zip(row[::2], row[1::2], strict=True))
        return [
            found.get(column.id, missing)
            for column, missing in zip(self.descriptor.visible_columns, self._missing, strict=True)
        ]

    # Columns

    def encode_columns(
        self, batch: pa.RecordBatch, *, keys: list[bytes] | None = None
    ) -> tuple[list[bytes], list[bytes]]:
        """Keys and bodies of the rows of a batch. `keys` are its rows' where they are known.

        A batch of another schema is made to conform first (`arrow_conform`). Raises SQLError as
        `encode_row` does.
        """
        if not batch.schema.equals(self.arrow_schema):
            batch = conform(self.descriptor, batch)
        columns = self.descriptor.visible_columns
        for place in self._required:
            if batch.column(place).null_count:
                raise self._null_error(columns[place])
        values = [
            column_values(column.type, array, column=column.name)
            for column, array in zip(columns, batch.columns, strict=True)
        ]
        if keys is None:
            keys = self._keys.encode_many([values[place] for place in self._key_places])
        return keys, self._bodies(values)

    def encode_keys(self, columns: Sequence[AnyArray]) -> list[bytes]:
        """The keys of the rows with these primary keys, columns in key order."""
        values = [
            column_values(column.type, array, column=column.name)
            for column, array in zip(self.descriptor.key_columns, columns, strict=True)
        ]
        return self._keys.encode_many(values)

    def decode_columns(
        self, bodies: Sequence[bytes], *, places: Sequence[int] | None = None
    ) -> pa.RecordBatch:
        """The rows of the bodies, in their order, as columns of `arrow_schema`.

        `places` chooses columns by their places in the descriptor's order, one at least.
        """
        try:
            found = _deal(bodies) if bodies else {}
            if found is None:
                found = self._deal_mixed(bodies)
        except msgspec.MsgspecError as error:
            raise RowUnreadable(f"bodies of table {self.descriptor.name}: {error}") from error
        chosen = range(len(self.descriptor.visible_columns)) if places is None else places
        schema = self.arrow_schema
        if places is not None:
            schema = pa.schema([schema.field(place) for place in places])
        arrays = [self._array(place, found, len(bodies)) for place in chosen]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _array(self, place: int, found: Mapping[int, Sequence[Any]], count: int) -> AnyArray:
        column = self.descriptor.visible_columns[place]
        if column.id in found:
            return column_array(column.type, found[column.id])
        return constant_array(column.type, self._missing[place], count)

    def _deal_mixed(self, bodies: Sequence[bytes]) -> dict[int, Sequence[Any]]:
        """Columns of rows that were written under several versions."""
        dealt = zip(*[self._arrange(_decode(body)) for body in bodies], strict=True)
        return {
            column.id: values
            for column, values in zip(self.descriptor.visible_columns, dealt, strict=True)
        }

    def decode_keys(self, keys: Sequence[bytes]) -> pa.RecordBatch:
        """The primary keys as columns, in key order."""
        columns = self.descriptor.key_columns
        try:
            values = self._keys.decode_many(keys) if keys else [[] for _ in columns]
        except ValueError as error:
            raise RowUnreadable(str(error)) from error
        return pa.RecordBatch.from_arrays(
            [column_array(column.type, part) for column, part in zip(columns, values, strict=True)],
            names=[column.name for column in columns],
        )

    def _null_error(self, column: Column) -> SQLError:
        return null_value(self.descriptor.name, column.name)


def _deal(bodies: Sequence[bytes]) -> dict[int, Sequence[Any]] | None:
    """Values by column id, or None where the rows do not all have the same ids."""
    first = _decode(bodies[0])
    ids, stride, count = first[::2], len(first), len(bodies)
    if len(set(map(_FIRST_BYTE, bodies))) != 1:
        return None
    header = 3 if bodies[0][0] == _ARRAY16 else 1
    joined = b"".join([body[header:] for body in bodies])
    try:
        flat = _decode(_ARRAY32 + (stride * count).to_bytes(4, "big") + joined)
    except msgspec.DecodeError:
        return None
    dealt: dict[int, Sequence[Any]] = {}
    for place, column_id in enumerate(ids):
        if flat[2 * place :: stride].count(column_id) != count:
            return None
        dealt[column_id] = flat[2 * place + 1 :: stride]
    return dealt


_CODECS_MAX = 1024
_codecs: dict[tuple[int, int, int], RowCodec] = {}


def codec_for(descriptor: TableDescriptor) -> RowCodec:
    """The codec of a version of a table, compiled once.

    A number alone does not tell versions apart: two stores of one process have tables of the same
    id, and a version may be rolled back and its number used again. So all of it is compared:
    writers also ask a codec's descriptor which indexes there are.
    """
    key = (descriptor.id, descriptor.version, len(descriptor.visible_columns))
    codec = _codecs.get(key)
    if codec is not None and (codec.descriptor is descriptor or codec.descriptor == descriptor):
        return codec
    codec = RowCodec(descriptor)
    if len(_codecs) >= _CODECS_MAX:
        del _codecs[next(iter(_codecs))]
    _codecs[key] = codec
    return codec
