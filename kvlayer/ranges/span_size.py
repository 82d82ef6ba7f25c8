"""How many bytes the versions of a span take, about: of a table, or of an index."""

from __future__ import annotations

import asyncio
from itertools import islice

from .. import keys
from ..mvcc import version_bounds
from ..span import Span
from .range_store import RangeStore

SLICE_VERSIONS = 500
"""Versions that are counted before the loop gets a turn: less than a millisecond."""

COUNTED_MAX = 50_000
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
    byte_count, left = 0, COUNTED_MAX
    intents = keys.INTENT + span.start, keys.INTENT + span.end
    for start, end in (version_bounds(span), intents):
        while True:
            slice_ = list(islice(store.engine.scan(start, end), SLICE_VERSIONS))
            if not slice_:
                break
            left -= len(slice_)
            if left < 0:
                return None
            byte_count += sum(len(key) + len(value) for key, value in slice_ if _within(span, key))
            start = slice_[-1][0] + b"\x00"
            await asyncio.sleep(0)
    return byte_count


def _within(span: Span, engine_key: bytes) -> bool:
    """Versions of a neighbour's key may lie between the bounds."""
    intent = engine_key[:1] == keys.INTENT
    return span.contains(engine_key[1:] if intent else engine_key[1:-8])
