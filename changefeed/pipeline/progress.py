"""Progress: how far a feed has come, and how much of that is durable in its sink.

    frontier   what has been handed to the sink, span by span; its low water is the resolved
               timestamp
    captured   the frontier as it stood when a flush began: all at or below it is in that flush or
               in an earlier one
    flushed    the last captured progress whose flush has ended

While the initial scan runs, a span that was not scanned stands at zero, and so does the low water:
a feed resolves nothing before it has shown every row once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.frontier import Frontier
from ...kvlayer.keys import table_span
from ...kvlayer.span import Span
from ..contract.boundary_kind import BoundaryKind
from ..sinks.protocol import BackfillProgress, SinkProgress
from .live import nothing


def progress_at(spans: Iterable[Span], at: Timestamp, *, scan_complete: bool) -> SinkProgress:
    """The progress of a feed that has flushed nothing: at `at`, or at zero while it must scan."""
    stand = at if scan_complete else ZERO
    return SinkProgress(
        frontier=tuple((span, stand) for span in spans),
        resolved=stand,
        scan_complete=scan_complete,
    )


def covering(start: SinkProgress, table_ids: Iterable[int]) -> SinkProgress:
    """`start`, its frontier over the whole of each table: what it lacks stands at its least."""
    frontier = Frontier()
    for table_id in table_ids:
        span = table_span(table_id)
        parts = [(part, at) for part, at in start.frontier if span.intersect(part) is not None]
        assert parts, (table_id, start)
        frontier.add(span, min(at for _, at in parts))
        for part, at in parts:
            frontier.forward(part, at)
    return replace(start, frontier=tuple(frontier.entries()))


class FeedProgress:
    """The frontier of one feed, and what of it is durable.

    `forward` may be called only when everything in `span` at or below the timestamp has been
    handed to the sink: this is what makes "captured, then flushed" a promise.
    """

    def __init__(self, start: SinkProgress) -> None:
        self.frontier = Frontier.from_entries(start.frontier)
        self.scan_complete = start.scan_complete
        self.flushed = start
        self.on_change: Callable[[], None] = nothing
        self._captured: SinkProgress | None = start
        self._backfills = {each.table_id: each for each in start.backfills}

    @property
    def resolved(self) -> Timestamp:
        """Everything at or below it has been handed to the sink."""
        return self.frontier.low_water if self.scan_complete else ZERO

    @property
    def dirty(self) -> bool:
        """Whether there is progress that no flush has made durable."""
        return self._captured is not self.flushed

    def forward(self, span: Span, to: Timestamp) -> None:
        """Everything in `span` at or below `to` has been handed to the sink."""
        self.frontier.forward(span, to)
        self._changed()

    def complete_scan(self) -> None:
        """Every row of the initial scan has been handed to the sink."""
        assert not self.scan_complete
        assert self.frontier.low_water > ZERO, self.frontier
        self.scan_complete = True
        self._changed()

    def open_backfill(self, table_id: int, at: Timestamp, kind: BoundaryKind) -> BackfillProgress:
        """The backfill of a table at a schema event: as an earlier attempt left it, or a new one.

        Until it is done the table is forwarded to no timestamp at or above `at`.
        """
        known = self._backfills.get(table_id)
        if known is None or known.at != at:
            known = BackfillProgress(table_id=table_id, at=at, kind=kind)
            self.note_backfill(known)
        return known

    def note_backfill(self, backfill: BackfillProgress) -> None:
        """The rows below its position were handed to the sink."""
        self._backfills[backfill.table_id] = backfill
        self._changed()

    @property
    def backfilling(self) -> bool:
        """Whether rows as of a schema event are being shown."""
        return any(not backfill.done for backfill in self._backfills.values())

    def unscanned(self) -> list[Span]:
        """The spans that the initial scan has still to read."""
        return [span for span, at in self.frontier.entries() if at == ZERO]

    def capture(self) -> SinkProgress:
        """Progress as it stands, whole: what a flush that begins now may claim."""
        if self._captured is None:
            entries = tuple(self.frontier.entries())
            if self._backfills:
                self._forget_passed(entries)
            self._captured = SinkProgress(
                frontier=entries,
                resolved=self.resolved,
                scan_complete=self.scan_complete,
                backfills=tuple(self._backfills.values()),
            )
        return self._captured

    def _forget_passed(self, entries: Sequence[tuple[Span, Timestamp]]) -> None:
        """Lets go of backfills that are done, where the table's frontier says as much."""
        for table_id, backfill in list(self._backfills.items()):
            stands = [at for span, at in entries if span.intersect(table_span(table_id))]
            if backfill.done and min(stands) >= backfill.at:
                del self._backfills[table_id]

    def note_flushed(self, captured: SinkProgress) -> None:
        """A flush that claimed `captured` has ended."""
        assert captured.resolved >= self.flushed.resolved, (
            format_timestamp(captured.resolved),
            format_timestamp(self.flushed.resolved),
        )
        self.flushed = captured

    def _changed(self) -> None:
        self._captured = None
        self.on_change()

    def __repr__(self) -> str:
        state = "scanned" if self.scan_complete else "scanning"
        return f"<FeedProgress {state} {self.frontier!r}>"
