"""Reading a log that nobody has open, and changing nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..files.disk import Disk
from .group import decode_group, entries_of
from .segment import segment_id_of, segment_name


def entries_on(disk: Disk) -> Iterator[tuple[int, bytes]]:
    """Every entry of the log's segments in order, up to the first bytes that are no valid group.

    What follows those is a torn tail or damage: recovery tells which, this only looks.
    """
    found = (segment_id_of(name) for name in disk.names())
    for segment_id in sorted(each for each in found if each is not None):
        content = disk.read(segment_name(segment_id))
        offset = 0
        while (group := decode_group(content, offset, segment_id=segment_id)) is not None:
            yield from entries_of(content, group)
            offset = group.end
