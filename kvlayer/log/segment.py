"""Segments: the files of the log, and where in them an entry is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from ..files.disk import Disk, DiskFile
from .errors import LogCorrupt
from .group import Group, decode_group, entries_of

SEGMENT_BYTES = 16 * 1024 * 1024
"""Preparing one takes about 50 ms in the background, and recovery reads one in 20 ms."""

MARK_SPACING_BYTES = 64 * 1024
"""One place of a segment is remembered for each so many bytes: an entry is found by reading them,
and a full segment of tiny groups costs 256 marks instead of 50,000."""

_SUFFIX = ".log"


def segment_name(segment_id: int) -> str:
    return f"{segment_id:016d}{_SUFFIX}"


def segment_id_of(name: str) -> int | None:
    """The id in a segment's file name; None for a file that is no segment."""
    digits = name.removesuffix(_SUFFIX)
    if name.endswith(_SUFFIX) and len(digits) == 16 and digits.isascii() and digits.isdigit():
        return int(digits)
    return None


@dataclass(slots=True)
class Segment:
    """One file of the log: groups from its beginning to `end`, zeros behind.

    `end`, `first_index`, `last_index` and the marks speak of durable groups only.
    """

    id: int
    capacity: int
    end: int = 0
    first_index: int = 0
    last_index: int = 0
    """Both zero while the segment holds nothing."""
    _mark_offsets: list[int] = field(default_factory=list)
    _mark_indexes: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        return segment_name(self.id)

    def extend(self, *, first_index: int, last_index: int, end: int) -> None:
        """Takes note of a group that now ends the segment."""
        assert end > self.end, (end, self.end)
        assert last_index >= first_index > self.last_index, (first_index, last_index, self)
        if not self._mark_offsets or self.end >= self._mark_offsets[-1] + MARK_SPACING_BYTES:
            self._mark_offsets.append(self.end)
            self._mark_indexes.append(first_index)
        self.first_index = self.first_index or first_index
        self.last_index = last_index
        self.end = end
        self.capacity = max(self.capacity, end)

    def entries(self, disk: Disk, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The entries with indexes in `[first, last]`. Raises LogCorrupt."""
        start = max(0, bisect_right(self._mark_indexes, first) - 1)
        bounds = [*self._mark_offsets[start:], self.end]
        for offset, end in pairwise(bounds):
            content = disk.read(self.name, offset, end - offset)
            for group in self._groups(content, offset):
                if group.first_index > last:
                    return
                if group.last_index >= first:
                    for index, payload in entries_of(content, group):
                        if first <= index <= last:
                            yield index, payload

    def _groups(self, content: bytes, offset: int) -> Iterator[Group]:
        """The groups of a piece of the segment that begins at `offset` and ends with a group."""
        place = 0
        while place < len(content):
            group = decode_group(content, place, segment_id=self.id)
            if group is None:
                raise LogCorrupt(self.name, offset + place, "bytes that were valid no longer are")
            yield group
            place = group.end


def prepare_segment(disk: Disk, segment_id: int, size: int) -> DiskFile:
    """Makes a segment whose zeros and whose name are durable. Raises OSError, leaving none.

    A crash after it leaves the file: recovery removes segments that were never used.
    """
    name = segment_name(segment_id)
    file = disk.create(name, size)
    try:
        file.fdatasync()
        disk.sync_folder()
    except OSError:
        file.close()
        disk.remove(name)
        raise
    return file
