"""Estimates of the bytes of a span's versions: of a table, or of an index."""

from __future__ import annotations

import asyncio
from itertools import islice

from .. import keys
from ..mvcc import version_bounds
from ..span import Span
from .range_store import RangeStore

SLICE_VERSIONS = 500
"""Versions that are counted before the loop gets a turn: less than a millisecond."""

SLICE_BYTES = 1 << 20
"""And so many bytes of them."""

COUNTED_MAX = 50_000
COUNTED_BYTES_MAX = 16 << 20
"""A part of a range with more versions is estimated, if at all: to count them takes a twentieth of
a second."""

SAMPLES_TRUSTED = 32
"""With so many keys noted in it the size of a part is known to some three percent."""


async def span_bytes(store: RangeStore, span: Span) -> int | None:
    """The sizes of the ranges that lie in the span, and of the others the share: by the keys that
    were noted of them, or counted. None where neither tells."""
    total = 0
    for found in list(store.ranges.overlapping(span)):
        part = found.span.intersect(span)
        assert part is not None, "it overlaps"
        if part == found.span:
            total += found.size.byte_count
            continue
        byte_count = found.size.share_of(part, least=SAMPLES_TRUSTED)
        if byte_count is None:
            byte_count = await _counted(store, part)
        if byte_count is None:
            byte_count = found.size.share_of(part, least=1)
        if byte_count is None:
            return None
        total += byte_count
    return total


async def _counted(store: RangeStore, span: Span) -> int | None:
    """The bytes of the versions and intents of a span; None where they are too many."""
    byte_count, read, left = 0, 0, COUNTED_MAX
    intents = keys.INTENT + span.start, keys.INTENT + span.end
    for start, end in (version_bounds(span), intents):
        last: bytes | None = b""
        while last is not None:
            last, slice_end = None, read + SLICE_BYTES
            for key, value in islice(store.engine.scan(start, end), SLICE_VERSIONS):
                size = len(key) + len(value)
                byte_count += size if _within(span, key) else 0
                read, left, last = read + size, left - 1, key
                if read >= slice_end:
                    break
            if left < 0 or read > COUNTED_BYTES_MAX:
                return None
            if last is not None:
                start = last + b"\x00"
                await asyncio.sleep(0)
    return byte_count


def _within(span: Span, engine_key: bytes) -> bool:
    """Versions of a neighbour's key may lie between the bounds."""
    intent = engine_key[:1] == keys.INTENT
    return span.contains(engine_key[1:] if intent else engine_key[1:-8])
