"""The header that opens every value: whether it is a deletion, and what feeds need to know of it.

    flags (1)  | expiry (8), if it expires | origin (4), if it has one | body

    00 6162                          a live value "ab"
    01                               a deletion
    02 6162                          "ab", written by a backfill: feeds leave it out
    0c 0123456789abcdef 00000007 61  "a", which expires, replicated from store 7

Nearly every value is live and plain, so that its header is one zero byte: `LIVE + body`. Numbers
are big-endian. A reader refuses flags that it does not know: they may change what the rest means.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..clock import Timestamp

DELETED = 0x01
OMIT_FROM_FEEDS = 0x02
EXPIRES = 0x04
HAS_ORIGIN = 0x08
_KNOWN = DELETED | OMIT_FROM_FEEDS | EXPIRES | HAS_ORIGIN

LIVE = b"\x00"
"""The whole header of a plain live value."""

TOMBSTONE = b"\x01"
"""The whole value of a plain deletion."""

BARE = (0, OMIT_FROM_FEEDS)
"""The flags of live values with nothing between them and the body: a backfill writes many of the
second kind, and who reads a table that was rewritten reads no other."""

_EXPIRY = struct.Struct(">Q")
_ORIGIN = struct.Struct(">I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The decoded header of a value.

    From `expires_at` on (if there is one) the value reads as deleted. `origin` is the store on
    which the value was first written, so that replication between two stores does not loop.
    """

    deleted: bool = False
    omitted: bool = False
    expires_at: Timestamp | None = None
    origin: int | None = None


PLAIN = Header()


def encode_value(body: bytes | None, header: Header = PLAIN) -> bytes:
    """A value of `body`, or a deletion when that is None (whatever the header says of it)."""
    flags = DELETED if body is None else 0
    parts = []
    if header.omitted:
        flags |= OMIT_FROM_FEEDS
    if header.expires_at is not None:
        flags |= EXPIRES
        parts.append(_EXPIRY.pack(header.expires_at))
    if header.origin is not None:
        flags |= HAS_ORIGIN
        parts.append(_ORIGIN.pack(header.origin))
    return bytes((flags,)) + b"".join(parts) + (body or b"")


def header_of(value: bytes) -> Header:
    """The header of a value. Raises ValueError for flags of a later format."""
    return PLAIN if value[0] == 0 else _parse(value)[0]


def body_of(value: bytes) -> bytes | None:
    """The body of a value, or None for a deletion. Ignores expiry."""
    if value[0] in BARE:
        return value[1:]
    if value == TOMBSTONE:
        return None
    return _parse(value)[1]


def body_at(value: bytes, at: Timestamp) -> bytes | None:
    """The body as a reader at `at` sees it: None when deleted, or expired by then."""
    if value[0] in BARE:
        return value[1:]
    if value == TOMBSTONE:
        return None
    header, body = _parse(value)
    if header.expires_at is not None and header.expires_at <= at:
        return None
    return body


def _parse(value: bytes) -> tuple[Header, bytes | None]:
    flags = value[0]
    if flags & ~_KNOWN:
        raise ValueError(f"value has flags {flags:#04x} of a later format")
    offset = 1
    expires_at: Timestamp | None = None
    origin: int | None = None
    if flags & EXPIRES:
        expires_at = Timestamp(_EXPIRY.unpack_from(value, offset)[0])
        offset += _EXPIRY.size
    if flags & HAS_ORIGIN:
        origin = _ORIGIN.unpack_from(value, offset)[0]
        offset += _ORIGIN.size
    deleted = bool(flags & DELETED)
    header = Header(
        deleted=deleted,
        omitted=bool(flags & OMIT_FROM_FEEDS),
        expires_at=expires_at,
        origin=origin,
    )
    return header, None if deleted else value[offset:]
