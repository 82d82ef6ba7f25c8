"""Backfills: a table's rows as of a schema event, shown beside its live ones.

The rows are read at the event's timestamp T, in key order, under the descriptor that begins there,
and are stamped T. A row of which a later version went to the sink already is left out. What was
shown is part of the feed's progress, so a feed that starts again goes on where it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from ...kvlayer.process.background import give_way
from ...kvlayer.span import Span
from ..targets import FeedTarget
from .budget import MemoryBudget
from .crossing import OpenBackfill
from .decode import slice_rows
from .initial_scan import RowEmitter
from .progress import FeedProgress
from .scan_reader import ScanReader

BACKFILL_ROWS_BEHIND = 2_000
"""Rows that wait for the sink's flush before a backfill adds to them. A live row waits for the
flush under way, whatever table it is of, so a backfill makes many short ones: some 10 ms each."""

BACKFILL_SLICE_ROWS = 250
"""Rows that one step of the loop decodes at most: about half a millisecond."""


class BackfillScan:
    """Reads and emits the rows of one backfill. It yields to the loop after each slice."""

    def __init__(
        self,
        reader: ScanReader,
        target: FeedTarget,
        emitter: RowEmitter,
        *,
        progress: FeedProgress,
        budget: MemoryBudget,
        wait_until_behind: Callable[[int], Awaitable[None]],
    ) -> None:
        """`wait_until_behind` returns when the sink has at most so many rows to flush."""
        self._reader = reader
        self._target = target
        self._emitter = emitter
        self._progress = progress
        self._budget = budget
        self._wait_until_behind = wait_until_behind

    async def run(self, backfill: OpenBackfill) -> None:
        """Emits what is left of it, and notes that it is done."""
        table = backfill.table
        span = self._target.rows_span(table)
        start = max(span.start, backfill.position)
        rows_max = min(slice_rows(table), BACKFILL_SLICE_ROWS)
        if start < span.end and not backfill.done:
            async with aclosing(self._reader.scan_slices(Span(start, span.end))) as slices:
                async for rows in slices:
                    for first in range(0, len(rows), rows_max):
                        part = rows[first : first + rows_max]
                        await self._emitter.emit(part, table, wanted=backfill.wanted)
                        backfill.advance(part[-1][0] + b"\x00")
                        self._progress.note_backfill(backfill.progress)
                        await give_way()
                        await self._budget.wait_for_room()
                        await self._wait_until_behind(BACKFILL_ROWS_BEHIND)
        backfill.done = True
        self._progress.note_backfill(backfill.progress)
