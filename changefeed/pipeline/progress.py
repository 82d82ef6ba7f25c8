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

from collections.abc import Callable, Iterable, Mapping

from ...kvlayer.clock import ZERO, Timestamp, format_timestamp
from ...kvlayer.frontier import Entries, Frontier, part_of, with_part, without
from ...kvlayer.span import Span
from ..contract.boundary_kind import BoundaryKind
from ..sinks.protocol import BackfillProgress, SinkProgress
from .live import nothing


def progress_at(spans: Iterable[Span], at: Timestamp, *, scan_complete: bool) -> SinkProgress:
    """The progress of a feed that has flushed nothing: at `at`, or at zero while it must scan."""
    stand = at if scan_complete else ZERO
    return SinkProgress(
        frontier=tuple((span, stand) for span in sorted(spans)),
        resolved=stand,
        scan_complete=scan_complete,
    )


def whole(entries: Entries, span: Span) -> Frontier:
    """The frontier of the whole of `span`: what `entries` lack stands at their least."""
    assert entries, span
    frontier = Frontier([span], min(at for _, at in entries))
    for part, at in entries:
        frontier.forward(part, at)
    return frontier


class FeedProgress:
    """The frontier of one feed, and what of it is durable.

    `forward` may be called only when everything in `span` at or below the timestamp has been
    handed to the sink: this is what makes "captured, then flushed" a promise.

    A target whose part of the frontier is below what the feed has resolved is *behind*: it came to
    the feed later than others, or was paused. It counts for the resolved timestamp as soon as it
    has caught up with it; until then that is the other targets' alone.

        orders 90, events 95              resolved 90
        refunds joins, scanned at 80      resolved 90, then 95: refunds is behind
        refunds 96                        resolved 95, and refunds counts from here on

    A target may *pass over* a time in one step, in which the sink lacks rows of it (`crossing`).
    Nothing of what it has is resolved within:

        orders passes from 99 over to 120, events is at 105      resolved 99
        events 121                                               resolved 120
    """

    def __init__(
        self,
        start: SinkProgress,
        spans: Mapping[int, Span],
        *,
        whole_transactions: bool = False,
    ) -> None:
        """`spans` are those of the targets that are followed, by their ids. What `start` says of
        other keys stays as it is. With `whole_transactions` the sink shows nothing above what is
        resolved, and so no progress that is captured is above it, nor within a backfill."""
        self._whole_transactions = whole_transactions
        self._spans = dict(spans)
        self._kept = list(start.frontier)
        self.frontier = Frontier()
        self._behind: dict[int, Frontier] = {}
        self._floor = start.resolved
        self.scan_complete = start.scan_complete
        self.flushed = start
        self.on_change: Callable[[], None] = nothing
        self._captured: SinkProgress | None = start
        self._backfills = {each.table_id: each for each in start.backfills}
        self._passed_over: dict[int, list[tuple[Timestamp, Timestamp]]] = {}
        """Between which timestamps, both exclusive, the sink lacks rows of targets. One may have
        passed over several times that another keeps from being resolved."""
        self._shown_at: dict[int, Timestamp] = {}
        """Where targets began, or were scanned: so far they are shown, resolved or not."""
        for target_id, span in spans.items():
            frontier = whole(part_of(start.frontier, span), span)
            self.begin_scan(target_id, max(at for _, at in frontier.entries()))
            if frontier.low_water < start.resolved:
                self._behind[target_id] = frontier
            else:
                self._count(frontier)
            self._kept = without(self._kept, span)

    def _count(self, frontier: Frontier) -> None:
        """The target counts from here on for what the feed resolves."""
        for part, at in frontier.entries():
            self.frontier.add(part, at)

    @property
    def resolved(self) -> Timestamp:
        """The timestamp at or below which all rows of the targets that count have been handed to
        the sink."""
        if not self.scan_complete:
            return ZERO
        low = self.frontier.low_water
        if self._passed_over:
            low = self._whole(low, (id for id in self._passed_over if id not in self._behind))
        return max(self._floor, low)

    def _whole(self, at: Timestamp, target_ids: Iterable[int]) -> Timestamp:
        """The greatest timestamp up to `at` as of which the sink lacks nothing of these targets."""
        gaps = (gap for target_id in target_ids for gap in self._passed_over[target_id])
        for below, whole_from in sorted(gaps, reverse=True):
            if below < at < whole_from:
                at = below
        return at

    def pass_over(self, target_id: int, below: Timestamp, whole_from: Timestamp) -> None:
        """The sink lacks rows of the target between the two, which `forward` steps over."""
        assert self.low_water(target_id) <= below, (self, target_id, below)
        if whole_from > below + 1:
            self._passed_over.setdefault(target_id, []).append((below, whole_from))

    def behind(self, target_id: int) -> bool:
        """Whether the target does not count for what the feed resolves yet."""
        return target_id in self._behind

    def part(self, target_id: int) -> Entries:
        """The target's part of the frontier, whole."""
        frontier = self._behind.get(target_id, self.frontier)
        return frontier.part(self._spans[target_id])

    def low_water(self, target_id: int) -> Timestamp:
        """The least resolved timestamp of the target's spans."""
        return min(at for _, at in self.part(target_id))

    @property
    def dirty(self) -> bool:
        """Whether there is progress that no flush has made durable."""
        return self._captured is not self.flushed

    def forward(self, span: Span, to: Timestamp) -> None:
        """Notes that all rows in `span` at or below `to` have been handed to the sink."""
        self.frontier.forward(span, to)
        if self._behind:
            self._forward_behind(span, to)
        for target_id, gaps in list(self._passed_over.items()):
            reached = min(self.resolved, self.low_water(target_id))
            left = [(below, whole_from) for below, whole_from in gaps if whole_from > reached]
            if left:
                self._passed_over[target_id] = left
            else:
                del self._passed_over[target_id]
        self._changed()

    def _forward_behind(self, span: Span, to: Timestamp) -> None:
        for target_id, frontier in list(self._behind.items()):
            moves = self._spans[target_id].overlaps(span)
            if not moves and target_id not in self._passed_over:
                continue
            frontier.forward(span, to)
            if frontier.low_water < self.resolved:
                continue
            # Where no target counts yet, this one alone says what is resolved next.
            resolved = self.resolved if len(self.frontier) else frontier.low_water
            gaps = self._passed_over.get(target_id, ())
            if not any(below < resolved < whole_from for below, whole_from in gaps):
                del self._behind[target_id]
                self._count(frontier)

    def begin_scan(self, target_id: int, at: Timestamp) -> None:
        """The target's rows are scanned as of `at`, or it begins there: none of its transactions
        is shown below, and none is held."""
        if at > self._floor:
            self._shown_at[target_id] = at

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

    def unscanned(self, target_id: int) -> list[Span]:
        """The spans of a target that its initial scan has still to read."""
        return [span for span, at in self.part(target_id) if at == ZERO]

    def capture(self) -> SinkProgress:
        """Progress as it stands, whole: what a flush that begins now may claim."""
        if self._captured is None:
            entries = tuple(self._shown(list(self.frontier.entries())))
            if self._behind or self._kept:
                apart = [
                    each
                    for frontier in self._behind.values()
                    for each in self._shown(list(frontier.entries()))
                ]
                entries = tuple(sorted([*entries, *apart, *self._kept]))
            if self._backfills:
                self._forget_passed(entries)
            self._captured = SinkProgress(
                frontier=entries,
                resolved=self.resolved,
                scan_complete=self.scan_complete,
                backfills=() if self._whole_transactions else tuple(self._backfills.values()),
            )
        return self._captured

    def _shown(self, entries: Entries) -> Entries:
        """Limits entries to what the sink may show: where it shows whole transactions, those of
        which every row has come. A scan shows none."""
        least = min((at for _, at in entries), default=ZERO)
        if not self._whole_transactions or least == ZERO:
            return entries
        upto = min(least, self.resolved)
        shown = [(span, min(at, upto)) for span, at in entries]
        for target_id in self._passed_over:
            target = self._spans[target_id]
            parts = [(span, self._whole(at, [target_id])) for span, at in part_of(shown, target)]
            shown = with_part(shown, target, parts)
        for target_id, shown_at in list(self._shown_at.items()):
            if shown_at <= upto:
                del self._shown_at[target_id]
                continue
            target = self._spans[target_id]
            begun = [(span, min(at, shown_at)) for span, at in part_of(entries, target)]
            shown = with_part(shown, target, begun)
        return shown

    def _forget_passed(self, entries: Entries) -> None:
        """Lets go of backfills that are done, where the table's frontier says as much."""
        for table_id, backfill in list(self._backfills.items()):
            span = self._spans.get(table_id)
            if span is None or not backfill.done:
                continue
            if min(at for _, at in part_of(entries, span)) >= backfill.at:
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
