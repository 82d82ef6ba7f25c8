"""The descriptor of a range, its id and span, and the keys of the engine's facts about it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec

from .. import keys
from ..clock import MAX_TIMESTAMP, ZERO, Timestamp
from ..engine import Reader
from ..span import Span, prefix_end

_ID = struct.Struct(">Q")

NEVER = MAX_TIMESTAMP
"""When the border of a manual split without an expiration may be merged away."""


class RangeDescriptor(msgspec.Struct, array_like=True, frozen=True):
    """A range as the engine keeps it: the keys in `[start, end)`.

    `sticky_until` belongs to the border at `start`: somebody asked for the split there, and up to
    that timestamp the range is not merged into the one before it unless somebody asks for that too.
    """

    id: int
    start: bytes
    end: bytes
    sticky_until: Timestamp = ZERO

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    def sticky_at(self, now: Timestamp) -> bool:
        return now < self.sticky_until


FIRST_RANGE = RangeDescriptor(1, keys.ALL_KEYS.start, keys.ALL_KEYS.end)
"""What a new store begins with."""

NEXT_ID_KEY = keys.LOCAL + b"next_range_id"
"""The id of the next range that a split makes: ids are never used again."""

_decoder = msgspec.msgpack.Decoder(RangeDescriptor)

encode_descriptor = msgspec.msgpack.Encoder().encode


def decode_descriptor(data: bytes) -> RangeDescriptor:
    return _decoder.decode(data)


def range_key(range_id: int, name: bytes) -> bytes:
    """The engine's key of a fact about one range."""
    return keys.RANGE + _ID.pack(range_id) + name


def descriptor_key(range_id: int) -> bytes:
    return range_key(range_id, b"descriptor")


def thresholds_key(range_id: int) -> bytes:
    """The engine's key of the garbage-collection thresholds (see `Thresholds`)."""
    return range_key(range_id, b"gc_thresholds")


def size_key(range_id: int) -> bytes:
    """The engine's key of the range's estimated size: eight bytes, big-endian."""
    return range_key(range_id, b"size")


def resolved_key(range_id: int) -> bytes:
    """The engine's key of a resolved timestamp of the range: eight bytes, big-endian."""
    return range_key(range_id, b"resolved")


def encode_id(range_id: int) -> bytes:
    return _ID.pack(range_id)


def read_next_id(reader: Reader) -> int:
    """The id that the next split gives. A store that never split has only the first range."""
    found = reader.get(NEXT_ID_KEY)
    return FIRST_RANGE.id + 1 if found is None else int(_ID.unpack(found)[0])


def read_descriptors(reader: Reader) -> Iterator[RangeDescriptor]:
    """The store's ranges, in the order of their ids."""
    name = b"descriptor"
    for engine_key, data in reader.scan(keys.RANGE, prefix_end(keys.RANGE)):
        if engine_key[1 + _ID.size :] == name:
            yield decode_descriptor(data)
