"""The size of a message of an Arrow IPC stream once it is unpacked, computed before.

A body of a few kilobytes can hold gigabytes in two ways: its buffers are compressed, and each says
in its first eight bytes how long it will be; or its rows share values, by dictionaries and views,
which become values of their own in rows of a table. Both sizes are known without unpacking.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_VIEW_BYTES = 16
"""A view is its length, a prefix and where the rest lies."""


def unpacked_bytes(metadata: bytes, body: bytes) -> int:
    """The bytes of a record batch's or a dictionary's buffers once they are not compressed.

    `metadata` is a `Message` whose header has the buffers. Raises struct.error or IndexError for
    one that points out of itself.
    """
    (message,) = struct.unpack_from("<I", metadata, 0)
    header = _follow(metadata, _field(metadata, message, 2))
    if metadata[_field(metadata, message, 1)] == 2:  # a dictionary, which holds a batch
        header = _follow(metadata, _field(metadata, header, 1))
    if not _field(metadata, header, 3):  # it says nothing of compression
        return len(body)
    total = 0
    for offset, length in _buffers(metadata, header):
        if length:
            (size,) = struct.unpack_from("<q", body, offset)
            total += length if size < 0 else size
    return total


def _buffers(metadata: bytes, batch: int) -> Iterator[tuple[int, int]]:
    at = _field(metadata, batch, 2)
    if not at:
        return
    vector = _follow(metadata, at)
    (count,) = struct.unpack_from("<I", metadata, vector)
    yield from struct.iter_unpack("<qq", metadata[vector + 4 : vector + 4 + 16 * count])


def _field(metadata: bytes, table: int, number: int) -> int:
    """The offset of a table's field; 0 where it has none of that number."""
    (back,) = struct.unpack_from("<i", metadata, table)
    fields = table - back
    if fields < 0:
        raise IndexError("a table of fields before the beginning")
    (size,) = struct.unpack_from("<H", metadata, fields)
    if size < 4 + 2 * (number + 1):
        return 0
    (at,) = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)
    return table + at if at else 0


def _follow(metadata: bytes, at: int) -> int:
    if not at:
        raise IndexError("a field that must be there is not")
    (distance,) = struct.unpack_from("<I", metadata, at)
    return int(at + distance)


def row_bytes(batch: pa.RecordBatch) -> int:
    """The bytes of a batch's rows when each has its values to itself."""
    return sum(_array_bytes(column) for column in batch.columns)


def _array_bytes(array: Any) -> int:
    type = array.type
    if pt.is_dictionary(type):
        return _dictionary_bytes(array)
    if pt.is_string_view(type) or pt.is_binary_view(type):
        return int(pc.sum(_view_lengths(array)).as_py() or 0) + len(array)
    if pt.is_list(type) or pt.is_large_list(type) or pt.is_fixed_size_list(type):
        return _array_bytes(array.flatten()) + len(array)
    if pt.is_struct(type):
        return sum(_array_bytes(child) for child in array.flatten()) + len(array)
    if pt.is_map(type):
        return _array_bytes(array.keys) + _array_bytes(array.items) + len(array)
    if pt.is_list_view(type) or pt.is_large_list_view(type):
        return len(array) * max(1, _array_bytes(array.values))
    return int(array.nbytes) + len(array)


def _dictionary_bytes(array: Any) -> int:
    """The length of each value, once for each row that refers to it."""
    lengths = _value_lengths(array.dictionary)
    if lengths is None:  # what is nested: as if each value were all of them
        return len(array) * max(1, _array_bytes(array.dictionary))
    return int(pc.sum(lengths.take(array.indices)).as_py() or 0) + len(array)


def _value_lengths(values: Any) -> Any:
    """The bytes of each value; None where they are not told by themselves."""
    type = values.type
    if pt.is_string_view(type) or pt.is_binary_view(type):
        return _view_lengths(values)
    if pt.is_nested(type) or pt.is_dictionary(type):
        return None
    try:
        return pc.binary_length(values)
    except pa.ArrowNotImplementedError:  # numbers and moments
        return pa.repeat(max(1, type.bit_width // 8), len(values))


def _view_lengths(array: Any) -> Any:
    """The first four bytes of each view."""
    first, count, words = array.offset, len(array), _VIEW_BYTES // 4
    numbers = pa.Array.from_buffers(pa.int32(), words * (first + count), [None, array.buffers()[1]])
    return numbers.take(pa.array(range(words * first, words * (first + count), words)))
