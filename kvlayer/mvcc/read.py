"""Reads of versions at a timestamp.

All of them see an engine reader's state as it is: whether an intent lies in the way is for the
caller to ask first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import keys
from ..clock import MAX_TIMESTAMP, Timestamp
from ..engine import Reader
from ..range_tombstones import NO_TOMBSTONES
from ..span import Span
from .version import TOMBSTONE, body_at

_OLDEST = b"\xff" * 8
"""Behind the last version of a key, whose inverted timestamp is below it."""

VERSIONS_STEPPED_MAX = 16
"""After this many versions of one key that do not count, a scan seeks to the next key instead of
stepping: a seek costs about as much as eight steps, and a counter may have a million versions."""


def newest_version(reader: Reader, key: bytes) -> Timestamp | None:
    """The timestamp of a key's newest version, deletions included, also those of its range."""
    start = keys.VERSION + key
    found = reader.first(start, start + _OLDEST)
    newest = None if found is None else keys.split_version_key(found[0])[1]
    if reader.range_tombstones is not NO_TOMBSTONES:
        deleted = reader.range_tombstones.newest(key, MAX_TIMESTAMP)
        if deleted is not None and (newest is None or deleted > newest):
            return deleted
    return newest


def read_at(reader: Reader, key: bytes, at: Timestamp) -> tuple[Timestamp, bytes] | None:
    """The newest version at or below `at` and its value, header included; or None.

    A deletion of a range that covers the key is a deletion of the key.
    """
    start = keys.VERSION + key
    found = reader.first(start + keys.inverted(at), start + _OLDEST)
    if reader.range_tombstones is not NO_TOMBSTONES:
        deleted = reader.range_tombstones.newest(key, at)
        if deleted is not None and (found is None or keys.split_version_key(found[0])[1] < deleted):
            return deleted, TOMBSTONE
    if found is None:
        return None
    return keys.split_version_key(found[0])[1], found[1]


def newest_each(
    reader: Reader, several: Sequence[bytes], at: Timestamp
) -> list[tuple[bytes, bytes] | None]:
    """The engine's entries of the versions that `read_at` reads of each of several keys."""
    version, newest, tombstones = keys.VERSION, keys.inverted(at), reader.range_tombstones
    each = [(version + key + newest, version + key + _OLDEST) for key in several]
    found = reader.first_each(each)
    if tombstones is not NO_TOMBSTONES:
        for place, key in enumerate(several):
            deleted = tombstones.newest(key, at)
            if deleted is not None:
                deletion = keys.version_key(key, deleted)
                if (entry := found[place]) is None or deletion < entry[0]:
                    found[place] = deletion, TOMBSTONE
    return found


def version_bounds(span: Span) -> tuple[bytes, bytes]:
    """Engine keys between which all versions of the span's keys lie, perhaps among others.

    HAZARD: `k + 00` sorts before the versions of `k` in the engine, since an inverted timestamp
    begins with a high byte. So a span that begins there finds versions of `k`, which is not in it;
    and one that ends there must look a little further. Whoever scans compares the keys.
    """
    end = keys.VERSION + span.end
    if span.end.endswith(b"\x00"):
        end = end[:-1] + _OLDEST
    return keys.VERSION + span.start, end


def scan_at(
    reader: Reader, span: Span, at: Timestamp, *, reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Keys with a live value at `at`, and their bodies, in key order or against it."""
    rows = pausing_scan_at(reader, span, at, reverse=reverse)
    return (row for row in rows if row is not None)


def pausing_scan_at(
    reader: Reader, span: Span, at: Timestamp, *, reverse: bool = False
) -> Iterator[tuple[bytes, bytes] | None]:
    """Yields the rows of `scan_at`, and None behind each run of keys without a live value that is
    long enough for a reader in slices to end one."""
    if reverse:
        return _scan_backward(reader, span, at)
    return _scan_forward(reader, span, at)


PASSED_MAX = 500
"""Versions that are passed over between two pauses: in about as long as a slice of rows takes."""


def _scan_forward(
    reader: Reader, span: Span, at: Timestamp
) -> Iterator[tuple[bytes, bytes] | None]:
    deleted = reader.range_tombstones.over(span, at)
    start, end = version_bounds(span)
    newest = keys.inverted(at)
    passed = 0
    while True:
        resume: bytes | None = None
        key = b""  # the last key that was decided
        stepped = 0
        for engine_key, value in reader.scan(start, end):
            candidate = engine_key[1:-8]
            if passed >= PASSED_MAX:
                passed = 0
                yield None
            if candidate == key or engine_key[-8:] < newest:
                stepped += 1
                passed += 1
                if stepped > VERSIONS_STEPPED_MAX:
                    decided = candidate == key
                    suffix = _OLDEST if decided else newest
                    resume = keys.VERSION + candidate + suffix
                    break
                continue
            stepped = 0
            key = candidate
            if key < span.start:
                continue
            if key >= span.end:
                return
            if deleted is not None and deleted.hides(key, _timestamp_of(engine_key), at):
                passed += 1
                continue
            if value[0] == 0:
                yield key, value[1:]
            else:
                body = body_at(value, at)
                if body is not None:
                    yield key, body
                else:
                    passed += 1
        if resume is None:
            return
        start = resume


def _scan_backward(
    reader: Reader, span: Span, at: Timestamp
) -> Iterator[tuple[bytes, bytes] | None]:
    # Backward a key's oldest version comes first, so its last one at or below `at` counts.
    deleted = reader.range_tombstones.over(span, at)
    start, end = version_bounds(span)
    newest = keys.inverted(at)
    key: bytes | None = None
    found = b""
    found_key = b""
    for number, (engine_key, value) in enumerate(reader.scan(start, end, reverse=True), start=1):
        candidate = engine_key[1:-8]
        if not number % (2 * PASSED_MAX):
            yield None
        if candidate >= span.end or engine_key[-8:] < newest:
            continue
        if candidate != key:
            if key is not None:
                hidden = deleted is not None and deleted.hides(key, _timestamp_of(found_key), at)
                if not hidden and (body := body_at(found, at)) is not None:
                    yield key, body
            if candidate < span.start:
                return
            key = candidate
        found, found_key = value, engine_key
    if key is not None:
        hidden = deleted is not None and deleted.hides(key, _timestamp_of(found_key), at)
        if not hidden and (body := body_at(found, at)) is not None:
            yield key, body


def _timestamp_of(engine_key: bytes) -> Timestamp:
    return keys.split_version_key(engine_key)[1]
