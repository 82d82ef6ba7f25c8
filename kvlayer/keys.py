"""Keys: how values become bytes that sort as the values do, and where keys live in the engine.

A *key* of the KV layer is `keyspace | rest`: a keyspace is one kind byte (`t` tables, `r` raw,
`x` relaxed, `l` names that are locked and never written) and a four-byte id. A table's row key is

    t | table id (4) | index id (2) | memcomparable columns

and is prefix-free within its index: every column's encoding delimits itself. The engine holds,
each under its own first byte so that all live in one column family:

    0x01 name                                    facts of the store: index, id, incarnations
    0x02 key                                     the intent on that key
    0x03 transaction id                          a transaction record
    0x04 range id, name                          range-local facts (descriptor, resolved, threshold)
    0x10 key | inverted timestamp (8)            a version; the newest of a key sorts first
    0x11 keyspace (5) | timestamp (8) | rest     the time index: which keys were written when
    0x12 start | inverted timestamp (8)          a range tombstone; its value says where it ends

Memcomparable groups are those of MyRocks and TiKV (`util/codec`): eight bytes and a marker that
counts the padding, 0xff meaning that another group follows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable

from .clock import Timestamp
from .span import Span

TABLE_KIND = b"t"
RAW_KIND = b"r"
RELAXED_KIND = b"x"
LOCK_KIND = b"l"
PROTECTION_KIND = b"p"
"""Protected timestamps: what is written there counts before it is committed."""

KEYSPACE_LENGTH = 5

LOCAL = b"\x01"
INTENT = b"\x02"
TRANSACTION = b"\x03"
RANGE = b"\x04"
VERSION = b"\x10"
TIME_INDEX = b"\x11"
RANGE_TOMBSTONE = b"\x12"

KEY_BYTES_MAX = 16 * 1024
VALUE_BYTES_MAX = 64 * 1024 * 1024

_U64 = struct.Struct(">Q")
_TABLE_INDEX = struct.Struct(">cIH")
_TABLE = struct.Struct(">cI")
_INVERT = (1 << 64) - 1
_TIME_INDEX_STAMP = _U64.unpack_from
_SIGN = 1 << 63
_LAST_MARKERS = [bytes((0xFF - (8 - rest),)) for rest in range(8)]

_ENCODED_BYTES = re.compile(
    rb"(?:.{8}\xff)*(?:%s)"
    % b"|".join(b".{%d}\\x00{%d}\\x%02x" % (rest, 8 - rest, 0xF7 + rest) for rest in range(8)),
    re.DOTALL,
)

ALL_KEYS = Span(b"\x00", b"\xff")
"""Every key of the KV layer (kinds are letters)."""


def table_prefix(table_id: int) -> bytes:
    """The keyspace of a table: all its indexes."""
    return _TABLE.pack(TABLE_KIND, table_id)


def index_prefix(table_id: int, index_id: int) -> bytes:
    return _TABLE_INDEX.pack(TABLE_KIND, table_id, index_id)


def table_span(table_id: int) -> Span:
    return Span.prefix(table_prefix(table_id))


def index_span(table_id: int, index_id: int) -> Span:
    return Span.prefix(index_prefix(table_id, index_id))


def table_id_of(key: bytes) -> int:
    """The table of a row key."""
    assert key[:1] == TABLE_KIND, key
    return int.from_bytes(key[1:5], "big")


def inverted(ts: Timestamp) -> bytes:
    """The suffix of a version's engine key: newer sorts first."""
    return _U64.pack(_INVERT - ts)


def big_endian(ts: Timestamp) -> bytes:
    return _U64.pack(ts)


def version_key(key: bytes, ts: Timestamp) -> bytes:
    """The engine key of a version. Seeking to it finds the newest version at or below `ts`."""
    return VERSION + key + inverted(ts)


def split_version_key(engine_key: bytes) -> tuple[bytes, Timestamp]:
    """The key and timestamp of a version's engine key."""
    return engine_key[1:-8], Timestamp(
        _INVERT - _U64.unpack_from(engine_key, len(engine_key) - 8)[0]
    )


def time_index_key(key: bytes, ts: Timestamp) -> bytes:
    return TIME_INDEX + key[:KEYSPACE_LENGTH] + _U64.pack(ts) + key[KEYSPACE_LENGTH:]


def split_time_index_key(engine_key: bytes) -> tuple[bytes, Timestamp]:
    """The key and timestamp of a time-index entry."""
    # Constants, for the scans that live by this.
    return engine_key[1:6] + engine_key[14:], _TIME_INDEX_STAMP(engine_key, 6)[0]


def time_index_bounds(keyspace: bytes, after: Timestamp, upto: Timestamp) -> tuple[bytes, bytes]:
    """The engine keys `[start, end)` that hold one keyspace's entries in `(after, upto]`."""
    assert len(keyspace) == KEYSPACE_LENGTH, keyspace
    prefix = TIME_INDEX + keyspace
    return prefix + _U64.pack(after + 1), prefix + _U64.pack(upto + 1)


def encode_int(value: int) -> bytes:
    """Eight bytes for a signed 64-bit integer. Raises struct.error outside that range."""
    return _U64.pack(value + _SIGN)


def decode_int(data: bytes, offset: int) -> tuple[int, int]:
    """The integer at `offset`, and the offset behind it."""
    return _U64.unpack_from(data, offset)[0] - _SIGN, offset + 8


def encode_bytes(value: bytes) -> bytes:
    """Groups of eight with a marker each: prefix-free, and sorted as `value` sorts.

    >>> encode_bytes(b"abc").hex(" ")
    '61 62 63 00 00 00 00 00 fa'
    """
    full, rest = divmod(len(value), 8)
    if not full:
        return value.ljust(8, b"\x00") + _LAST_MARKERS[rest]
    groups = [value[i * 8 : i * 8 + 8] + b"\xff" for i in range(full)]
    groups.append(value[full * 8 :].ljust(8, b"\x00") + _LAST_MARKERS[rest])
    return b"".join(groups)


def all_encoded_bytes(values: Iterable[bytes]) -> bool:
    """Whether each is what `encode_bytes` returns for something."""
    return all(map(_ENCODED_BYTES.fullmatch, values))


def decode_bytes(data: bytes, offset: int) -> tuple[bytes, int]:
    """The bytes encoded at `offset`, and the offset behind them. Raises ValueError."""
    parts = []
    while True:
        group = data[offset : offset + 9]
        if len(group) != 9:
            raise ValueError(f"key ends inside a group at offset {offset}: {data!r}")
        offset += 9
        padding = 0xFF - group[8]
        if padding == 0:
            parts.append(group[:8])
            continue
        if padding > 8 or any(group[8 - padding : 8]):
            raise ValueError(f"bad group marker {group[8]:#x} before offset {offset}: {data!r}")
        parts.append(group[: 8 - padding])
        return b"".join(parts), offset


def encode_float(value: float) -> bytes:
    """Eight bytes that sort as IEEE doubles do; -0.0 becomes 0.0 and NaN sorts first.

    Raises nothing: every float has a place.
    """
    if value != value:
        return b"\x00" * 8
    bits: int = _U64.unpack(struct.pack(">d", value + 0.0))[0]
    return _U64.pack(bits ^ _INVERT if bits & _SIGN else bits | _SIGN)


def decode_float(data: bytes, offset: int) -> tuple[float, int]:
    (bits,) = _U64.unpack_from(data, offset)
    if bits == 0:
        return float("nan"), offset + 8
    raw = bits & (_SIGN - 1) if bits & _SIGN else bits ^ _INVERT
    return float(struct.unpack(">d", _U64.pack(raw))[0]), offset + 8
