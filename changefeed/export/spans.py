"""The spans of a table that readers may read side by side."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.span import Span

ROWS_PER_SPAN = 100_000
"""A reader of one has enough to do, and a table of a million rows keeps ten of them busy."""


async def cut_table(
    store: StoreAccess,
    at: Timestamp,
    *,
    borders: Sequence[Span],
    rows_per_span: int = ROWS_PER_SPAN,
) -> list[Span]:
    """Spans that together are the table, in key order: one for each of `borders` (the ranges that
    hold the table), and larger ones cut so that each has about `rows_per_span` rows at `at`.

    Reads every key once, a slice of the loop at a time.
    """
    found: list[Span] = []
    for border in borders:
        start = border.start
        async with aclosing(_every(store, border, at, rows_per_span)) as cuts:
            async for key in cuts:
                if key > start:
                    found.append(Span(start, key))
                    start = key
        found.append(Span(start, border.end))
    return found


async def _every(
    store: StoreAccess, span: Span, at: Timestamp, count: int
) -> AsyncGenerator[bytes, None]:
    """Each `count`th key of the span, more or less: where a slice of the scan begins."""
    seen = 0
    async with aclosing(store.snapshot(at).scan_slices(span)) as slices:
        async for rows in slices:
            if seen >= count:
                yield rows[0][0]
                seen = 0
            seen += len(rows)
