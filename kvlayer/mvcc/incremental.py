"""The incremental iterator: every version committed in an interval of time.

It walks the time index, so it costs what changed in the interval and not what is stored.
Catch-up scans, exports, backups and refreshes are made of it.

    time index   110 [a, b], 130 a            (keyspace t1)
    versions     a~130 "y", a~110 "x", b~110 deleted

    changes_between(reader, t1, after=100, upto=120)  ->  keys [a, b], timestamps [110, 110],
                                                          values [00 "x", 01]
"""

from __future__ import annotations

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
"""Entries of keys outside the span that are looked at between two slices: two milliseconds."""


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
) -> Iterator[tuple[bytes, Timestamp]]:
    """Yields all entries in `(after, upto]` of the span's keyspaces, of keys outside the span too.

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
    written: Iterator[tuple[bytes, Timestamp]],
    keyspace: Span,
    deletions: list[RangeTombstone],
) -> Iterator[tuple[bytes, Timestamp]]:
    """Puts the deletions of a keyspace among its entries, in order of time."""
    waiting = [(found.span.intersect(keyspace), found.timestamp) for found in reversed(deletions)]
    for key, ts in written:
        while waiting and waiting[-1][1] <= ts:
            yield from _deleted_keys(reader, *waiting.pop())
        yield key, ts
    while waiting:
        yield from _deleted_keys(reader, *waiting.pop())


def _deleted_keys(
    reader: Reader, span: Span | None, ts: Timestamp
) -> Iterator[tuple[bytes, Timestamp]]:
    if span is None:
        return
    for key, _ in scan_at(reader, span, Timestamp(ts - 1)):
        if reader.get(keys.version_key(key, ts)) is None:  # else it was written again at once
            yield key, ts


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

    A slice has at most so many rows, and no more than `SLICE_BYTES` and one row. It ends behind
    `OTHERS_MAX` entries of other keys, and may be empty then. Within a keyspace versions come in
    order of time, so per key from oldest to newest. What range tombstones deleted comes as
    deletions of its keys, unless `range_deletions` is false.
    """
    start, end = span.start, span.end
    changes, size, others = Changes([], [], []), 0, 0
    for key, ts in time_entries(reader, span, after, upto, range_deletions=range_deletions):
        inside = start <= key < end
        others += not inside
        written = changes.keys
        if others == OTHERS_MAX or (
            inside
            and written
            and (
                len(written) == rows
                or size >= SLICE_BYTES
                or written[-1][: keys.KEYSPACE_LENGTH] != key[: keys.KEYSPACE_LENGTH]
            )
        ):
            yield changes
            changes, size, others = Changes([], [], []), 0, 0
        if inside:
            value = _value_of(reader, key, ts)
            changes.keys.append(key)
            changes.timestamps.append(ts)
            changes.values.append(value)
            size += len(key) + len(value)
    if changes.keys:
        yield changes


def _value_of(reader: Reader, key: bytes, ts: Timestamp) -> bytes:
    value = reader.get_fixed(keys.version_key(key, ts))
    if value is not None:
        return value
    deleted = reader.range_tombstones.newest(key, ts)
    assert deleted == ts, ("the time index names a version that is not there", key, ts)
    return TOMBSTONE
