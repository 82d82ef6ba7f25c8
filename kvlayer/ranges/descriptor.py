"""What a range is: its id and its span, and where the engine keeps its own facts."""

from __future__ import annotations

import struct

import msgspec

from .. import keys
from ..span import Span

_ID = struct.Struct(">Q")

FIRST_RANGE_ID = 1


class RangeDescriptor(msgspec.Struct, array_like=True, frozen=True):
    """A range as the engine keeps it: the keys in `[start, end)`."""

    id: int
    start: bytes
    end: bytes

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


FIRST_RANGE = RangeDescriptor(FIRST_RANGE_ID, keys.ALL_KEYS.start, keys.ALL_KEYS.end)
"""What a new store begins with."""

_decoder = msgspec.msgpack.Decoder(RangeDescriptor)

encode_descriptor = msgspec.msgpack.Encoder().encode


def decode_descriptor(data: bytes) -> RangeDescriptor:
    return _decoder.decode(data)


def descriptor_key(range_id: int) -> bytes:
    return keys.RANGE + _ID.pack(range_id) + b"descriptor"


def threshold_key(range_id: int) -> bytes:
    """Where the garbage-collection threshold is kept: eight bytes, big-endian."""
    return keys.RANGE + _ID.pack(range_id) + b"gc_threshold"


def resolved_key(range_id: int) -> bytes:
    """Where a resolved timestamp of the range is kept: eight bytes, big-endian."""
    return keys.RANGE + _ID.pack(range_id) + b"resolved"
