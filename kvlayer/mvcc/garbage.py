"""Garbage: versions that no reader above a threshold can see.

With the threshold at 120:

    a~130          stays: above
    a~110          stays: what a reader at 121 sees
    a~100          goes:  hidden by a~110
    b~115 deleted  goes:  a reader at 121 sees nothing either way
    b~90           goes

Where the bodies of a keyspace say themselves until when they are of any use (entries of raw
keyspaces do), `find_garbage` is told which of them are dead: such a version goes as a deletion
does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import keys
from ..clock import Timestamp
from ..engine import Reader
from ..range_tombstones import RangeTombstone
from ..span import Span
from .read import version_bounds
from .version import body_at


@dataclass(frozen=True, slots=True)
class Garbage:
    """Versions to remove, and the engine key at which to go on looking (None at the end)."""

    keys: list[bytes]
    timestamps: list[Timestamp]
    resume: bytes | None


BYTES_PER_ENTRY = 1024
"""Reading so many bytes of a value takes as long as another entry."""

DeadBody = Callable[[bytes], bool]
"""Whether no reader above the threshold misses a body that is at or below it."""


def find_garbage(
    reader: Reader,
    span: Span,
    threshold: Timestamp,
    *,
    resume: bytes | None,
    entries: int,
    dead: DeadBody | None = None,
) -> Garbage:
    """Looks at up to `entries` versions from `resume` (the span's start when None), large values
    counting as several.

    A slice ends between two keys; or within one that has too many versions: above the threshold,
    and below it once some of them go. In that case the next slice begins at that key again, so
    apply this one first.

    HAZARD: a deletion that hides older versions goes last of its key, in the slice that removes
    the last of them. Gone before them, it would let a reader above the threshold see them again.
    """
    start, end = version_bounds(span)
    newest = keys.inverted(threshold)
    removed: list[bytes] = []
    timestamps: list[Timestamp] = []
    deletion: Timestamp | None = None
    hidden = reader.range_tombstones
    key, covered = b"", False  # covered: a version of `key` at or below the threshold was seen
    seen = 0
    for engine_key, value in reader.scan(resume or start, end):
        candidate = engine_key[1:-8]
        if candidate != key:
            if deletion is not None:
                removed.append(key)
                timestamps.append(deletion)
            if seen >= entries:
                return Garbage(removed, timestamps, engine_key)
            key, covered, deletion = candidate, False, None
        elif seen >= 2 * entries and removed:
            return Garbage(removed, timestamps, keys.VERSION + key)
        seen += 1 + len(value) // BYTES_PER_ENTRY
        if engine_key[-8:] < newest:
            if seen >= 2 * entries:
                return Garbage(removed, timestamps, engine_key[:-8] + newest)
            continue
        if not span.contains(key):
            continue
        if covered or (hidden and hidden.hides(key, _timestamp_of(engine_key), threshold)):
            removed.append(key)
            timestamps.append(keys.split_version_key(engine_key)[1])
        elif (body := body_at(value, threshold)) is None or (dead is not None and dead(body)):
            deletion = keys.split_version_key(engine_key)[1]
        covered = True
    if deletion is not None:
        removed.append(key)
        timestamps.append(deletion)
    return Garbage(removed, timestamps, None)


def find_tombstones(reader: Reader, span: Span, threshold: Timestamp) -> list[RangeTombstone]:
    """The range tombstones over keys of the span that nobody needs, once `find_garbage` has found
    nothing more in it: no version is left that they hide."""
    return [
        found
        for found in reader.range_tombstones
        if found.timestamp <= threshold and found.span.overlaps(span)
    ]


def _timestamp_of(engine_key: bytes) -> Timestamp:
    return keys.split_version_key(engine_key)[1]
