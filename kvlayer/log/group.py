"""Groups: what the log writes and syncs at once.

A *group* is one or more entries with consecutive indexes under one checksum:

    CRC-32 (4) | magic (4) | content bytes (4) | entries (4) | segment id (8)
    | first index (8) | previous index (8) | durable offset (8)
    content: the length of each entry (4 each), then the entries one after the other

All integers are little-endian. The checksum covers everything behind itself, so also the segment
id, the index and the durable offset: bytes of another segment, or of the same place in an earlier
life, are never taken for this group's.

*previous index* is the last index of the group before, in whichever segment that is. Indexes may
jump (recovery starts above the engine's), but this chain may not break: a group that is missing
in the middle is found even where it was the last of its segment.

*durable offset* says up to where this segment was known to be durable when the group was written.
Bad bytes below the greatest one found can only be corruption.

CRC-32 is zlib's: 1.5 GB/s on the small groups of single commits, 6 GB/s on large ones, which is
far below what else a group costs; CRC-32C would be twice as fast for one dependency more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

MAGIC = b"TRg\x01"
"""The last byte is the format of the group."""

HEADER = struct.Struct("<I4sIIQQQQ")
HEADER_BYTES = HEADER.size
ENTRY_OVERHEAD_BYTES = 4
_CRC = struct.Struct("<I")
_CRC_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The place of a valid group in its segment, and the fields of its header."""

    offset: int
    end: int
    entry_count: int
    first_index: int
    previous_index: int
    durable_offset: int

    @property
    def last_index(self) -> int:
        return self.first_index + self.entry_count - 1


def group_bytes(payloads: Sequence[bytes]) -> int:
    """The size of a group of these entries."""
    return HEADER_BYTES + ENTRY_OVERHEAD_BYTES * len(payloads) + sum(map(len, payloads))


def encode_group(
    payloads: Sequence[bytes],
    *,
    segment_id: int,
    first_index: int,
    previous_index: int,
    durable_offset: int,
) -> bytes:
    """The bytes of a group."""
    assert payloads, "a group has entries"
    assert first_index > previous_index, (first_index, previous_index)
    count = len(payloads)
    lengths = struct.pack(f"<{count}I", *map(len, payloads))
    content_bytes = len(lengths) + sum(map(len, payloads))
    # The checksum's place is filled in last.
    header = HEADER.pack(
        0,
        MAGIC,
        content_bytes,
        count,
        segment_id,
        first_index,
        previous_index,
        durable_offset,
    )[_CRC_BYTES:]
    body = b"".join((header, lengths, *payloads))
    return _CRC.pack(crc32(body)) + body


def decode_group(content: bytes, offset: int, *, segment_id: int) -> Group | None:
    """The valid group at `offset` of a segment's bytes, or None."""
    if offset + HEADER_BYTES > len(content):
        return None
    checksum, magic, content_bytes, count, owner, first, previous, durable = HEADER.unpack_from(
        content, offset
    )
    end = offset + HEADER_BYTES + content_bytes
    if magic != MAGIC or owner != segment_id or end > len(content):
        return None
    if crc32(memoryview(content)[offset + _CRC_BYTES : end]) != checksum:
        return None
    return Group(
        offset=offset,
        end=end,
        entry_count=count,
        first_index=first,
        previous_index=previous,
        durable_offset=durable,
    )


def entries_of(content: bytes, group: Group) -> Iterator[tuple[int, bytes]]:
    """The entries of a group that `decode_group` found in `content`, each with its index."""
    start = group.offset + HEADER_BYTES
    lengths = struct.unpack_from(f"<{group.entry_count}I", content, start)
    start += ENTRY_OVERHEAD_BYTES * group.entry_count
    for index, length in enumerate(lengths, group.first_index):
        yield index, content[start : start + length]
        start += length
    assert start == group.end, (start, group)


def find_group(content: bytes, start: int, *, segment_id: int) -> Group | None:
    """The first valid group that begins anywhere at or after `start`."""
    place = content.find(MAGIC, start + _CRC_BYTES)
    while place >= 0:
        group = decode_group(content, place - _CRC_BYTES, segment_id=segment_id)
        if group is not None:
            return group
        place = content.find(MAGIC, place + 1)
    return None
