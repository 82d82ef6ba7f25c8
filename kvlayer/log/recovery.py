"""Recovery: what a log's segments hold after a crash.

Groups are written one after the other, each only when the one before is durable. So after a crash
at most the last group is unfinished, and everything before it must read back:

    segment 1: [group 1..40][group 41..55] zeros
    segment 2: [group 56..56][group 57..90][torn bytes] zeros
                                           ^ cut here, if no group behind it proves otherwise

Bad bytes are the *torn tail* when nothing says that they were ever durable, and are cut. A valid
group behind them whose durable offset lies above them, or a later segment that holds a group,
does say so: then they are corruption, and nothing is changed. So they are where the file is too
short and ends with them.

After a cut the file is made what it would have been without the torn write: zeros are written
over the tail and synced before anything is appended. So no stale byte can be taken for a group
later, however the next group falls on the tail. The last whole group is written again too: after
the death of a process alone it may stand in the page cache only, perhaps after a failed sync that
marked its pages clean, and only a fresh write makes a fresh sync speak for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from ..files.disk import ZEROS, Disk, DiskFile
from .errors import LogCorrupt
from .group import Group, decode_group, find_group
from .segment import Segment, prepare_segment, segment_id_of, segment_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A log ready to go on. The last of `segments` is open as `active`."""

    segments: list[Segment]
    active: DiskFile
    last_index: int
    """The greatest index that the log or the engine knows; the next entry's is above it."""
    previous_index: int
    """The last index of the log itself, which the next group names as its previous."""
    notice: str | None


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A segment as it was read: its groups up to `segment.end`, then what should be zeros."""

    segment: Segment
    last_group: Group | None
    first_previous_index: int
    content: bytes
    tail_bytes: int
    """How many bytes behind the last group were written to."""


def recover(disk: Disk, *, flushed_index: int, segment_bytes: int) -> Recovered:
    """Reads the log, cuts a torn tail, and opens the log's end for writing. Blocks.

    `flushed_index` is the applied index that the engine came back with. Raises LogCorrupt, having
    changed nothing, or OSError.
    """
    ids = _segment_ids(disk)
    if not ids:
        return _new_log(disk, flushed_index=flushed_index, segment_bytes=segment_bytes)
    scanned = [_scan(disk, segment_id, segment_bytes) for segment_id in ids]
    used = _check_chain(scanned, flushed_index)
    cut = [_describe_cut(each) for each in scanned[used - 1 :] if each.tail_bytes > 0]
    for each in reversed(scanned[used:]):  # from the end, so that ids stay consecutive
        disk.remove(each.segment.name)
        disk.sync_folder()
    last = scanned[used - 1]
    from_backup = last.segment.capacity == 0  # its log is an empty file: see `api.backup.served`
    active = _repair(disk, last, segment_bytes)
    previous_index = last.segment.last_index
    return Recovered(
        segments=[each.segment for each in scanned[:used]],
        active=active,
        last_index=max(previous_index, flushed_index),
        previous_index=previous_index,
        notice=None if from_backup else _notice(cut, previous_index, flushed_index),
    )


def _segment_ids(disk: Disk) -> list[int]:
    found = (segment_id_of(name) for name in disk.names())
    ids = sorted(segment_id for segment_id in found if segment_id is not None)
    for before, after in pairwise(ids):
        if after != before + 1:
            raise LogCorrupt(segment_name(before + 1), 0, "the file is missing")
    return ids


def _new_log(disk: Disk, *, flushed_index: int, segment_bytes: int) -> Recovered:
    if flushed_index > 0:
        # A log is never without a segment once it was opened, so somebody removed it.
        raise LogCorrupt(
            segment_name(1), 0, f"no segment is left, but the engine holds entry {flushed_index}"
        )
    return Recovered(
        segments=[Segment(id=1, capacity=segment_bytes)],
        active=prepare_segment(disk, 1, segment_bytes),
        last_index=0,
        previous_index=0,
        notice=None,
    )


def _scan(disk: Disk, segment_id: int, segment_bytes: int) -> _Scanned:
    """Reads a segment's groups up to the first bad byte. Raises LogCorrupt if that was durable."""
    content = disk.read(segment_name(segment_id))
    segment = Segment(id=segment_id, capacity=len(content))
    last: Group | None = None
    first_previous_index = 0
    while group := decode_group(content, segment.end, segment_id=segment_id):
        if last is None:
            first_previous_index = group.previous_index
        elif group.previous_index != last.last_index:
            raise LogCorrupt(
                segment.name,
                group.offset,
                f"its group follows entry {group.previous_index}, "
                f"the one before it ends with {last.last_index}",
            )
        segment.extend(first_index=group.first_index, last_index=group.last_index, end=group.end)
        last = group
    tail_bytes = _written_end(content, segment.end) - segment.end
    scanned = _Scanned(segment, last, first_previous_index, content, tail_bytes)
    if scanned.tail_bytes > 0:
        _check_torn(scanned)
        _check_length(scanned, segment_bytes)
    return scanned


def _written_end(content: bytes, start: int) -> int:
    """The offset of the zeros that `content` ends with; `start` if all behind it are zeros."""
    end = len(content)
    # Comparing whole pieces first: to strip 16 MiB byte by byte takes 50 ms.
    while end > start:
        piece = content[max(start, end - len(ZEROS)) : end]
        if piece != ZEROS[: len(piece)]:
            return end - len(piece) + len(piece.rstrip(b"\x00"))
        end -= len(piece)
    return start


def _check_torn(scanned: _Scanned) -> None:
    """Raises LogCorrupt if a later group of the segment says that the bad bytes were durable."""
    segment = scanned.segment
    place = segment.end
    while group := find_group(scanned.content, place, segment_id=segment.id):
        if group.durable_offset > segment.end:
            raise LogCorrupt(
                segment.name,
                segment.end,
                f"a later group was written when all below {group.durable_offset} was durable",
            )
        place = group.offset + 1


def _check_length(scanned: _Scanned, segment_bytes: int) -> None:
    """Raises LogCorrupt if the file ends within a group. A segment has its whole length before its
    first group is written, so no crash leaves that, but a copy that was broken off."""
    segment = scanned.segment
    length = len(scanned.content)
    if segment.end + scanned.tail_bytes == length < segment_bytes:
        raise LogCorrupt(
            segment.name,
            segment.end,
            f"the file ends within a group: it has {length} of {segment_bytes} bytes",
        )


def _check_chain(scanned: list[_Scanned], flushed_index: int) -> int:
    """The number of segments in use; those behind them hold no group. Raises LogCorrupt."""
    used = max((n for n, each in enumerate(scanned, 1) if each.last_group), default=1)
    first = scanned[0]
    if first.last_group is None and first.segment.id != 1:
        raise LogCorrupt(first.segment.name, 0, "the oldest segment has no group")
    if first.first_previous_index > flushed_index:
        raise LogCorrupt(
            first.segment.name,
            0,
            f"the log begins after entry {first.first_previous_index}, "
            f"but the engine holds only {flushed_index}",
        )
    for before, after in pairwise(scanned[:used]):
        if before.last_group is None or after.first_previous_index != before.segment.last_index:
            raise LogCorrupt(
                before.segment.name,
                before.segment.end,
                f"it ends with entry {before.segment.last_index}, "
                f"the next segment follows {after.first_previous_index}",
            )
    return used


def _repair(disk: Disk, scanned: _Scanned, segment_bytes: int) -> DiskFile:
    """Opens the last used segment with its tail zero, its space taken, and all of it durable."""
    segment = scanned.segment
    written_end = segment.end + scanned.tail_bytes
    file = disk.open(segment.name)
    try:
        if scanned.last_group is not None:
            offset = scanned.last_group.offset
            file.pwrite(scanned.content[offset : segment.end], offset)
        _write_zeros(file, segment.end, written_end)
        # A crash while the first segment was made can leave it short.
        _write_zeros(file, segment.capacity, segment_bytes)
        file.fdatasync()
        disk.sync_folder()
    except OSError:
        file.close()
        raise
    segment.capacity = max(segment.capacity, segment_bytes)
    return file


def _write_zeros(file: DiskFile, start: int, end: int) -> None:
    for offset in range(start, end, len(ZEROS)):
        file.pwrite(ZEROS[: end - offset], offset)


def _describe_cut(scanned: _Scanned) -> str:
    segment = scanned.segment
    return f"{scanned.tail_bytes} bytes at offset {segment.end} of segment {segment.name}"


def _notice(cut: list[str], log_index: int, flushed_index: int) -> str | None:
    """The sentences that tell a person of this recovery, if there is anything to tell."""
    sentences = []
    if cut:
        sentences.append(
            f"cut an unfinished write that was never acknowledged: {', '.join(cut)}; "
            f"the log ends with entry {log_index}."
        )
    if flushed_index > log_index:
        sentences.append(
            f"the engine had flushed up to entry {flushed_index}, ahead of the log's "
            f"{log_index}: the entries between were applied and never acknowledged."
        )
    return " ".join(sentences) or None
