"""The incremental iterator: every version committed in an interval of time.

It walks the time index, so it costs what changed in the interval and not what is stored.
Catch-up scans, exports, backups and refreshes are made of it.

    time index   110 [a, b], 130 a            (keyspace t1)
    versions     a~130 "y", a~110 "x", b~110 deleted

    changes_between(reader, t1, after=100, upto=120)  ->  keys [a, b], timestamps [110, 110],
                                                          values [00 "x", 01]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from .. import keys
from ..clock import Timestamp
from ..engine import Reader
from ..range_tombstones import RangeTombstone
from ..span import Span
from .read import scan_at
from .slices import SLICE_BYTES, SLICE_ROWS
from .time_index import indexed_keys, keyspaces_in
from .version import TOMBSTONE

OTHERS_MAX = 4_000
"""Keys outside the span that are looked at between two slices: two milliseconds."""

READ_AT_ONCE = 32
"""Values of one entry that are read at once, where those before them were small."""
SMALL_BYTES = SLICE_BYTES // READ_AT_ONCE


@dataclass(frozen=True, slots=True)
class Changes:
    """Versions as parallel lists, of one keyspace. `values` include the version header."""

    keys: list[bytes]
    timestamps: list[Timestamp]
    values: list[bytes]

    def __len__(self) -> int:
        return len(self.keys)


def time_entries(
    reader: Reader,
    span: Span,
    after: Timestamp,
    upto: Timestamp,
    *,
    range_deletions: bool = True,
) -> Iterator[tuple[list[bytes], Timestamp]]:
    """Yields the keys, ascending, and the timestamp of each entry in `(after, upto]` of the span's
    keyspaces: keys outside the span too.

    For those who count what they look at. A range tombstone counts as a deletion of each key of the
    span that had a value until then, unless `range_deletions` is false: for those who read the
    tombstones themselves.
    """
    if upto <= after:
        return
    deletions: list[RangeTombstone] = []
    if range_deletions and reader.range_tombstones:
        deletions = reader.range_tombstones.within(span, after, upto)
    for keyspace in keyspaces_in(reader, span):
        written = indexed_keys(reader, *keys.time_index_bounds(keyspace, after, upto))
        if deletions:
            yield from _with_deletions(reader, written, Span.prefix(keyspace), deletions)
        else:
            yield from written


def _with_deletions(
    reader: Reader,
    written: Iterator[tuple[list[bytes], Timestamp]],
    keyspace: Span,
    deletions: list[RangeTombstone],
) -> Iterator[tuple[list[bytes], Timestamp]]:
    """Puts the deletions of a keyspace among its entries, in order of time."""
    waiting = [(found.span.intersect(keyspace), found.timestamp) for found in reversed(deletions)]
    for entry, ts in written:
        while waiting and waiting[-1][1] <= ts:
            yield from _deleted_keys(reader, *waiting.pop())
        yield entry, ts
    while waiting:
        yield from _deleted_keys(reader, *waiting.pop())


def _deleted_keys(
    reader: Reader, span: Span | None, ts: Timestamp
) -> Iterator[tuple[list[bytes], Timestamp]]:
    if span is None:
        return
    for key, _ in scan_at(reader, span, Timestamp(ts - 1)):
        if reader.get(keys.version_key(key, ts)) is None:  # else it was written again at once
            yield [key], ts


def changes_between(
    reader: Reader,
    span: Span,
    after: Timestamp,
    upto: Timestamp,
    *,
    rows: int = SLICE_ROWS,
    range_deletions: bool = True,
) -> Iterator[Changes]:
    """Every version of the span's keys in `(after, upto]`, in slices of one keyspace each.

    A slice has at most so many rows, and no more than `SLICE_BYTES` and the rows that are read with
    the one that exceeds them. It ends behind some `OTHERS_MAX` entries of other keys, and may be
    empty then. Within a keyspace versions come in order of time, so per key from oldest to newest.
    What range tombstones deleted comes as deletions of its keys, unless `range_deletions` is false.
    """
    changes, size, others = Changes([], [], []), 0, 0
    longest = SLICE_BYTES  # of the values that were read last: those of one transaction are alike
    for entry, ts in time_entries(reader, span, after, upto, range_deletions=range_deletions):
        inside = entry[bisect_left(entry, span.start) : bisect_left(entry, span.end)]
        others += len(entry) - len(inside)
        place = 0
        while place < len(inside) or others >= OTHERS_MAX:
            written = changes.keys
            if others >= OTHERS_MAX or (written and _ends_slice(written, size, rows, inside[0])):
                yield changes
                changes, size, others = Changes([], [], []), 0, 0
                continue
            count = min(rows - len(written), READ_AT_ONCE) if longest <= SMALL_BYTES else 1
            part = inside[place : place + count]
            values = _values_of(reader, part, ts)
            longest = max(map(len, values))
            size += sum(map(len, part)) + sum(map(len, values))
            written += part
            changes.timestamps.extend([ts] * len(part))
            changes.values.extend(values)
            place += len(part)
    if changes.keys:
        yield changes


def _ends_slice(written: list[bytes], size: int, rows: int, following: bytes) -> bool:
    """Whether a slice that has `written`, so many bytes, ends before the key `following`."""
    keyspace = written[-1][: keys.KEYSPACE_LENGTH]
    return len(written) == rows or size >= SLICE_BYTES or not following.startswith(keyspace)


def _values_of(reader: Reader, written: list[bytes], ts: Timestamp) -> list[bytes]:
    """Returns the versions, headers included, that were written of several keys at `ts`."""
    version, at = keys.VERSION, keys.inverted(ts)
    found = reader.get_fixed_each([version + key + at for key in written])
    return [
        _deletion(reader, key, ts) if value is None else value
        for key, value in zip(written, found, strict=True)
    ]


def _deletion(reader: Reader, key: bytes, ts: Timestamp) -> bytes:
    """The value of a key that a range tombstone deleted at `ts`."""
    deleted = reader.range_tombstones.newest(key, ts)
    assert deleted == ts, ("the time index names a version that is not there", key, ts)
    return TOMBSTONE
