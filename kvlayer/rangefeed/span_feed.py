"""A feed over any spans, which follows the ranges under them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..clock import Timestamp
from ..errors import FeedEnd, KVError, RangeFeedEnded
from ..events import Checkpoint, Event, SteadyState
from ..frontier import Frontier
from ..span import Span
from .doorbell import Doorbell
from .host import RangeRouter
from .registration import FeedState, RangeFeed

CATCH_UPS_MAX = 16
"""Pieces that catch up at one time; each pins a snapshot of its engine."""

RESTART_DELAY = 0.01
RESTART_DELAY_MAX = 5.0
UNRESOLVED_DELAY = 1.0
"""Seconds before a piece is started again: see `SpanFeed`."""

FUTILE_MAX = 20
"""Where counting futile restarts stops: the delay has reached its limit long before."""


@dataclass(slots=True, eq=False)
class _Piece:
    """A part of the spans that one range holds (or held, until its feed says otherwise)."""

    span: Span
    start_after: Timestamp
    feed: RangeFeed | None = None
    # Restarts in a row that began where the one before them began.
    futile_count: int = 0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class SpanFeed:
    """The events of several spans, each from its own start (exclusive).

    The spans are cut at the borders of ranges, and each piece has a range feed. When one ends for a
    reason that can be retried, its piece is divided anew and starts again from its last checkpoint:
    so a value may come twice after a restart, but only above that checkpoint, and none is lost.
    Oldest starts go first, `CATCH_UPS_MAX` at a time.

    Restarts cannot become a loop that only burns the store: one that begins where the last one
    began, because no checkpoint came in between, waits twice as long as that one did.

    Checkpoints of pieces that came to the same timestamp are one event. `SteadyState` comes once
    for each of the spans, when every piece is steady for the first time.
    """

    def __init__(
        self,
        router: RangeRouter,
        starts: Iterable[tuple[Span, Timestamp]],
        *,
        with_previous: bool = False,
    ) -> None:
        """`starts` are the spans, and where each begins: a frontier's entries, for instance.

        Raises BatchTimestampBeforeGC when a start is too old.
        """
        oldest_first = sorted(starts, key=lambda start: start[1])
        if not oldest_first:
            raise ValueError("a span feed needs a span")
        self._router = router
        self._with_previous = with_previous
        self._bell = Doorbell()
        self._closed = False
        self._frontier = Frontier.from_entries(oldest_first)
        # The spans whose steady state is still to be announced.
        self._unsteady = [span for span, _ in oldest_first]
        self._pieces: list[_Piece] = []
        for span, start_after in oldest_first:
            self._pieces.extend(_Piece(part, start_after) for part in router.divide(span))
        try:
            self._start_pieces()
        except KVError:
            self.close()
            raise

    @property
    def frontier(self) -> Frontier:
        """How far each span was resolved. Read it; the feed moves it."""
        return self._frontier

    async def next(self) -> list[Event]:
        """Waits until there is something, and returns all there is.

        Raises what cannot be retried: BatchTimestampBeforeGC, StoreClosed, and RangeFeedEnded only
        after `close`. If it is cancelled, nothing is lost.
        """
        if any(piece.feed is not None and piece.feed.scanning for piece in self._pieces):
            await asyncio.sleep(0)
        while not (events := self.poll()):
            await self._bell.wait()
        return events

    def poll(self) -> list[Event]:
        """As `next`, without waiting: empty when there is nothing."""
        if self._closed:
            raise RangeFeedEnded(FeedEnd.RANGEFEED_CLOSED, "by its consumer")
        events: list[Event] = []
        while not events:
            self._bell.clear()
            events = self._poll_pieces()
            if not self._bell.rung:
                break
        return events

    def close(self) -> None:
        """Nobody wants the feed any more. Closing twice is once."""
        self._closed = True
        for piece in self._pieces:
            if piece.feed is not None:
                piece.feed.close()
            if piece.timer is not None:
                piece.timer.cancel()
        self._pieces = []
        self._bell.ring()

    def __aiter__(self) -> SpanFeed:
        return self

    async def __anext__(self) -> list[Event]:
        return await self.next()

    def _poll_pieces(self) -> list[Event]:
        events: list[Event] = []
        resolved: dict[Timestamp, list[Span]] = {}
        for piece in tuple(self._pieces):
            if piece.feed is not None:
                self._poll_piece(piece, piece.feed, events, resolved)
        self._start_pieces()
        if self._unsteady and self._all_steady():
            events.extend(SteadyState(span) for span in self._unsteady)
            self._unsteady = []
        events.extend(Checkpoint(tuple(spans), ts) for ts, spans in sorted(resolved.items()))
        return events

    def _poll_piece(
        self,
        piece: _Piece,
        feed: RangeFeed,
        events: list[Event],
        resolved: dict[Timestamp, list[Span]],
    ) -> None:
        """Takes what the piece's feed has. Of its checkpoints the last says it all."""
        try:
            polled = feed.poll()
        except RangeFeedEnded as end:
            self._restart(piece, end)
            return
        if polled:
            self._bell.ring()  # there may be more, if only the feed's end
        newest: Timestamp | None = None
        for event in polled:
            if isinstance(event, Checkpoint):
                newest = event.resolved
            elif not isinstance(event, SteadyState):
                events.append(event)
        if newest is not None and newest > piece.start_after:
            piece.start_after = newest
            piece.futile_count = 0
            self._frontier.forward(piece.span, newest)
            resolved.setdefault(newest, []).append(piece.span)

    def _restart(self, piece: _Piece, end: RangeFeedEnded) -> None:
        """Puts new pieces in the place of one whose feed has ended."""
        self._pieces.remove(piece)
        delay = 0.0
        if piece.futile_count:
            delay = min(RESTART_DELAY * 2**piece.futile_count, RESTART_DELAY_MAX)
        if end.reason is FeedEnd.UNRESOLVED_INTENTS:
            delay = max(delay, UNRESOLVED_DELAY)
        futile_count = min(piece.futile_count + 1, FUTILE_MAX)
        for part in self._router.divide(piece.span):
            again = _Piece(part, piece.start_after, futile_count=futile_count)
            if delay:
                loop = asyncio.get_running_loop()
                again.timer = loop.call_later(delay, self._restart_due, again)
            self._pieces.append(again)
        if not delay:
            self._bell.ring()

    def _restart_due(self, piece: _Piece) -> None:
        piece.timer = None
        self._bell.ring()

    def _start_pieces(self) -> None:
        waiting = [piece for piece in self._pieces if piece.feed is None and piece.timer is None]
        if not waiting:
            return
        catching_up = sum(
            piece.feed is not None and piece.feed.state is FeedState.CATCHING_UP
            for piece in self._pieces
        )
        waiting.sort(key=lambda piece: piece.start_after)
        for piece in waiting[: max(0, CATCH_UPS_MAX - catching_up)]:
            self._start(piece)

    def _start(self, piece: _Piece) -> None:
        try:
            piece.feed = self._router.range_feed(
                piece.span, piece.start_after, with_previous=self._with_previous
            )
        except RangeFeedEnded as end:
            self._restart(piece, end)
            return
        piece.feed.bell = self._bell
        self._bell.ring()

    def _all_steady(self) -> bool:
        return all(
            piece.feed is not None and piece.feed.state is FeedState.STEADY
            for piece in self._pieces
        )

    def __repr__(self) -> str:
        return f"<SpanFeed {len(self._pieces)} pieces, {self._frontier!r}>"
