"""Entries: what a raw keyspace stores under a key, as TiKV's API V2 does.

    user value | expires at (8), if it ends | flags (1)

    6162 00                          "ab", for ever
    6162 0123456789abcdef 01         "ab", which reads as absent from 0x0123456789abcdef on
    0123456789abcdef 02              a deletion, which may itself be removed from then on

Numbers are big-endian, and `expires at` is a timestamp of the store. The key before an entry, and
the version header around it, are those of every other value (`mvcc.version`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..clock import MAX_TIMESTAMP, Timestamp
from ..errors import KVError

EXPIRES = 0x01
DELETED = 0x02

_PLAIN = bytes((0,))
_EXPIRES = bytes((EXPIRES,))
_DELETED = bytes((DELETED,))
_EXPIRY = struct.Struct(">Q")
_TAIL = _EXPIRY.size + 1


class EntryUnreadable(KVError):
    """A value in a raw keyspace is no entry: it has flags of a later format, or is cut short."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The decoded value of a version. A deletion has no value, and always a time at which it
    ends."""

    value: bytes
    expires_at: Timestamp | None = None
    deleted: bool = False

    def value_at(self, at: Timestamp) -> bytes | None:
        """The value as a reader at `at` sees it: None when deleted, or ended by then."""
        if self.deleted or (self.expires_at is not None and self.expires_at <= at):
            return None
        return self.value


def encode_entry(value: bytes, expires_at: Timestamp | None = None) -> bytes:
    if expires_at is None:
        return value + _PLAIN
    return value + _EXPIRY.pack(expires_at) + _EXPIRES


def encode_deletion(expires_at: Timestamp) -> bytes:
    return _EXPIRY.pack(expires_at) + _DELETED


def decode_entry(body: bytes) -> Entry:
    """Raises EntryUnreadable."""
    flags = body[-1] if body else None
    if flags == 0:
        return Entry(body[:-1])
    if flags not in (EXPIRES, DELETED):
        shown = "none" if flags is None else f"{flags:#04x}"
        raise EntryUnreadable(
            f"an entry of {len(body)} bytes has flags {shown}, of no known format"
        )
    if len(body) < _TAIL or (flags == DELETED and len(body) != _TAIL):
        raise EntryUnreadable(f"an entry of {len(body)} bytes with flags {flags:#04x} is damaged")
    expires_at = Timestamp(_EXPIRY.unpack_from(body, len(body) - _TAIL)[0])
    return Entry(body[:-_TAIL], expires_at, flags == DELETED)


def check_entries(bodies: Iterable[bytes]) -> None:
    """Raises ValueError where one is no entry, or ends at no time of a store."""
    for body in bodies:
        if body[-1:] == _PLAIN:
            continue
        try:
            ends = decode_entry(body).expires_at
        except EntryUnreadable as error:
            raise ValueError(str(error)) from error
        if not 0 < (ends or 0) <= MAX_TIMESTAMP:
            raise ValueError(f"{ends} is no timestamp of a store")


def dead_at(threshold: Timestamp, now: Timestamp) -> Callable[[bytes], bool]:
    """The test for entries at or below `threshold` that no reader above it misses.

    A reader sees a value until it ends. A deletion is nothing to see, but is kept for feeds until
    its own time is over.
    """

    def dead(body: bytes) -> bool:
        if body[-1:] == _PLAIN:
            return False
        entry = decode_entry(body)
        assert entry.expires_at is not None, entry
        return entry.expires_at <= (now if entry.deleted else threshold)

    return dead
