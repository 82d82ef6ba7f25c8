"""The time index: which keys were written when.

An entry names the keys of one keyspace that one operation wrote at one timestamp. It bears the
first of them in its own key, and lists them all where there are several:

    a, b and c written at 110      110 a  ->  [a, b, c]
    a written at 130               130 a  ->

An entry serves readers of an interval that begins below its timestamp. No such reader is let in at
or below the garbage-collection threshold of a key, so collection takes from the index whatever is
at or below it, and the index is as large as what was written since.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from .. import keys
from ..clock import ZERO, Timestamp
from ..engine import Reader
from ..span import Span, prefix_end

ENTRY_KEYS_MAX = 500
"""Keys that an entry lists, so that reading one is a small part of a step of the loop."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


def index_entries(ts: Timestamp, written: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The entries, as engine keys and values, of keys that one operation writes at `ts`."""
    if len(written) == 1:
        return [(keys.time_index_key(written[0], ts), b"")]
    entries: list[tuple[bytes, bytes]] = []
    for group in _by_keyspace(sorted(written)):  # so that readers have keys of one time in order
        for start in range(0, len(group), ENTRY_KEYS_MAX):
            part = group[start : start + ENTRY_KEYS_MAX]
            listed = _encode(part) if len(part) > 1 else b""
            entries.append((keys.time_index_key(part[0], ts), listed))
    return entries


def _by_keyspace(written: list[bytes]) -> list[list[bytes]]:
    """Sorted keys, those of each keyspace."""
    groups: list[list[bytes]] = []
    start = 0
    while start < len(written):
        behind = prefix_end(written[start][: keys.KEYSPACE_LENGTH])
        end = bisect_left(written, behind, start)
        groups.append(written[start:end])
        start = end
    return groups


def indexed_keys(
    reader: Reader, start: bytes, end: bytes
) -> Iterator[tuple[list[bytes], Timestamp]]:
    """The keys of each entry between two engine keys, ascending, and its timestamp; in order of
    time."""
    for engine_key, value in reader.scan(start, end):
        key, ts = keys.split_time_index_key(engine_key)
        yield (_decode(value) if value else [key]), ts


@dataclass(frozen=True, slots=True)
class Outdated:
    """Entries that name keys of a span at or below its threshold: those to delete; those to put,
    with the keys of others that they name besides; and where to go on looking (None at the end)."""

    deletes: list[bytes]
    puts: list[tuple[bytes, bytes]]
    resume: bytes | None


def find_outdated(
    reader: Reader, span: Span, threshold: Timestamp, *, resume: bytes | None, entries: int
) -> Outdated:
    """Looks at the next entries from `resume` (the span's first when None), until they name
    `entries` keys."""
    deletes: list[bytes] = []
    puts: list[tuple[bytes, bytes]] = []
    seen = 0
    for keyspace in keyspaces_in(reader, span, keys.TIME_INDEX):
        start, end = keys.time_index_bounds(keyspace, ZERO, threshold)
        start = max(start, resume or start)
        for engine_key, value in reader.scan(start, end) if start < end else ():
            if seen >= entries:
                return Outdated(deletes, puts, engine_key)
            named = _decode(value) if value else [keys.split_time_index_key(engine_key)[0]]
            seen += len(named)
            others = [key for key in named if not span.contains(key)]
            if not others:
                deletes.append(engine_key)
            elif len(others) < len(named):
                puts.append((engine_key, _encode(others)))
    return Outdated(deletes, puts, None)


def keyspaces_in(reader: Reader, span: Span, prefix: bytes = keys.VERSION) -> Iterator[bytes]:
    """The keyspaces that overlap the span and hold versions, or whatever else has its engine keys
    begin with `prefix` and a keyspace; in order, one seek each."""
    length = keys.KEYSPACE_LENGTH
    start = prefix + span.start[:length]
    end = prefix + span.end[:length] + b"\xff"
    while (found := reader.first(start, end)) is not None:
        keyspace = found[0][1 : 1 + length]
        if keyspace >= span.end:
            return
        yield keyspace
        start = prefix + prefix_end(keyspace)
