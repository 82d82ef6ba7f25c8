"""A feed over any spans, which follows the ranges under them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count

from ..clock import ZERO, Timestamp
from ..errors import FeedEnd, FeedReaction, KVError, RangeFeedEnded
from ..events import Checkpoint, Event, SteadyState
from ..frontier import Frontier
from ..span import Span, subtract
from .doorbell import Doorbell
from .registration import FeedState, RangeFeed
from .router import RangeRouter

CATCH_UPS_MAX = 16
"""Pieces that catch up at one time; each pins a snapshot of its engine."""

RESTART_DELAY = 0.01
RESTART_DELAY_MAX = 5.0
WAIT_DELAY = 1.0
"""Seconds before a piece is started again: see `SpanFeed`."""

FUTILE_MAX = 20
"""Where counting futile restarts stops: the delay has reached its limit long before."""


class _Piece:
    """A part of the spans that one range holds (or held, until its feed says otherwise)."""

    __slots__ = ("feed", "futile_count", "quiet", "span", "start_after", "timer")

    def __init__(self, span: Span, start_after: Timestamp, *, futile_count: int = 0) -> None:
        self.span = span
        self.start_after = start_after  # or the last checkpoint of its own
        self.feed: RangeFeed | None = None
        # Restarts in a row that began where the one before them began.
        self.futile_count = futile_count
        self.quiet = False  # steady, with nothing unresolved
        self.timer: asyncio.TimerHandle | None = None


class _PieceBell(Doorbell):
    """Says which piece has news, and wakes the consumer."""

    __slots__ = ("_bell", "_checkpoint_due", "_news", "_piece")

    def __init__(
        self,
        piece: _Piece,
        news: dict[_Piece, None],
        bell: Doorbell,
        checkpoint_due: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._piece = piece
        self._news = news
        self._bell = bell
        self._checkpoint_due = checkpoint_due

    def ring(self) -> None:
        self._news[self._piece] = None
        self._bell.ring()

    def ring_resolved(self) -> None:
        self._news[self._piece] = None
        if self._checkpoint_due():
            self._bell.ring()

    def mark(self) -> None:
        self._news[self._piece] = None


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

    A poll costs what there is to tell, however many pieces there are: bells say which of them have
    news. Pieces are *quiet* when they are steady in ranges without unresolved intents. Of closings
    the router tells the feed once for all of these (`tick`), and what they cover is the spans less
    the pieces that are not quiet. That a piece is quiet when the feed is polled suffices, whatever
    it was at the tick: its range has delivered everything up to the closing, and holds nothing
    that could yet commit below it.

    Who only wants to hear of values, as a watcher of a system table does, asks for checkpoints some
    `checkpoint_seconds` apart: for one alone it is then not woken before. Every commit to a range
    is followed by a checkpoint of all its feeds, and a commit waits while their consumers run.
    `space_checkpoints` changes that: no checkpoint that was left out is lost, the next one covers
    it, and the store's tick brings one soon.
    """

    def __init__(
        self,
        router: RangeRouter,
        starts: Iterable[tuple[Span, Timestamp]],
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> None:
        """`starts` are the spans, and where each begins: a frontier's entries, for instance.
        Values first written on one of the stores in `omitted_origins` are left out.

        Raises BatchTimestampBeforeGC when a start is too old.
        """
        oldest_first = sorted(starts, key=lambda start: start[1])
        if not oldest_first:
            raise ValueError("a span feed needs a span")
        self._router = router
        self._with_previous = with_previous
        self._omitted_origins = omitted_origins
        self._bell = Doorbell()
        self._closed = False
        self._frontier = Frontier.from_entries(oldest_first)
        self._spans = [span for span, _ in oldest_first]
        self._unsteady = True  # the steady state is still to be announced
        self._pieces: dict[_Piece, None] = {}
        self._unquiet: dict[_Piece, None] = {}
        self._catching_up: dict[_Piece, None] = {}
        self._news: dict[_Piece, None] = {}
        self._due: list[tuple[Timestamp, int, _Piece]] = []  # a heap: pieces to be started
        self._delayed_count = 0
        self._numbers = count()
        self._tick: Timestamp | None = None  # a closing that was not told yet
        self._ticked = ZERO  # the last one that was
        self._resolved_ns = 0  # when a checkpoint of a piece moved the low water
        self._spacing_ns = round(checkpoint_seconds * 1e9)
        self._told_ns = 0  # when the consumer last heard of a checkpoint; where they are spaced
        for span, start_after in oldest_first:
            for part in router.divide(span):
                self._add(_Piece(part, start_after))
        try:
            self._start_due()
        except KVError:
            self.close()
            raise
        router.gather(self)

    @property
    def frontier(self) -> Frontier:
        """The resolved timestamps of the spans. Read it; the feed moves it."""
        return self._frontier

    @property
    def behind(self) -> bool:
        """Whether a piece of it still reads what was committed before, or is to be started."""
        return any(piece.feed is None or piece.feed.scanning for piece in self._pieces)

    @property
    def piece_count(self) -> int:
        """The number of parts of ranges that the feed is made of."""
        return len(self._pieces)

    async def next(self) -> list[Event]:
        """Waits until there is something, and returns all there is.

        Raises what cannot be retried: BatchTimestampBeforeGC, StoreClosed, and RangeFeedEnded only
        after `close`. If it is cancelled, nothing is lost.
        """
        if any(piece.feed is not None and piece.feed.scanning for piece in self._catching_up):
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
            events = self._poll_news()
            if not self._bell.rung:
                break
        return events

    def space_checkpoints(self, seconds: float) -> None:
        """As `checkpoint_seconds` at the beginning."""
        self._spacing_ns = round(seconds * 1e9)

    def tick(self, closed: Timestamp, now_ns: int, interval_ns: int) -> None:
        """`closed` took effect in every range. The router calls it (see `RangeRouter.gather`).

        A tick is left out when a checkpoint followed an entry within the interval before it, as a
        range leaves out its own; and while no piece is quiet, it has nothing to say.
        """
        # A tick comes a little early or late.
        if now_ns - self._resolved_ns < interval_ns * 0.9:
            return
        if now_ns - self._told_ns < self._spacing_ns:
            return
        if len(self._unquiet) == len(self._pieces) and not self._news:
            return
        self._tick = closed
        self._bell.ring()

    def close(self) -> None:
        """Nobody wants the feed any more. Closing twice is once."""
        self._closed = True
        self._router.release(self)
        for piece in self._pieces:
            if piece.feed is not None:
                piece.feed.close()
            if piece.timer is not None:
                piece.timer.cancel()
        for pieces in (self._pieces, self._unquiet, self._catching_up, self._news):
            pieces.clear()
        self._due.clear()
        self._bell.ring()

    def __aiter__(self) -> SpanFeed:
        return self

    async def __anext__(self) -> list[Event]:
        return await self.next()

    # News.

    def _poll_news(self) -> list[Event]:
        events: list[Event] = []
        resolved: dict[Timestamp, list[Span]] = {}
        news = list(self._news)
        self._news.clear()
        for piece in news:
            if piece.feed is not None:
                self._poll_piece(piece, piece.feed, events, resolved)
        if self._due:
            self._start_due()
        if self._unsteady and not self._catching_up and not self._due and not self._delayed_count:
            events.extend(SteadyState(span) for span in self._spans)
            self._unsteady = False
        if self._tick is not None:
            self._resolve_quiet(self._tick, resolved)
            self._tick = None
        events.extend(Checkpoint(tuple(spans), ts) for ts, spans in sorted(resolved.items()))
        if self._spacing_ns and resolved:
            self._told_ns = self._router.clock.wall.monotonic_ns()
        return events

    def _checkpoint_due(self) -> bool:
        """Whether the consumer is to be woken for a checkpoint alone."""
        if not self._spacing_ns:
            return True
        return self._router.clock.wall.monotonic_ns() - self._told_ns >= self._spacing_ns

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
            feed.bell.ring()  # there may be more, if only the feed's end
        newest = ZERO
        for event in polled:
            if isinstance(event, Checkpoint):
                newest = event.resolved
            elif not isinstance(event, SteadyState):
                events.append(event)
        known = self._known(piece)
        self._note_state(piece, feed)
        if piece.quiet:
            newest = max(newest, self._ticked)
        if newest > known:
            piece.start_after = newest
            piece.futile_count = 0
            if self._frontier.forward(piece.span, newest):
                self._resolved_ns = self._router.clock.wall.monotonic_ns()
            resolved.setdefault(newest, []).append(piece.span)

    def _note_state(self, piece: _Piece, feed: RangeFeed) -> None:
        if feed.state is not FeedState.CATCHING_UP:
            self._catching_up.pop(piece, None)
        quiet = feed.quiet and feed.state is FeedState.STEADY and not feed.cut_off
        if quiet and piece.quiet:
            return
        if quiet:
            self._unquiet.pop(piece, None)
        else:
            self._settle(piece)
            self._unquiet[piece] = None
        piece.quiet = quiet

    def _known(self, piece: _Piece) -> Timestamp:
        """The resolved timestamp of the piece of which its consumer was told."""
        return max(piece.start_after, self._ticked) if piece.quiet else piece.start_after

    def _settle(self, piece: _Piece) -> None:
        """Writes down how far the piece has come: from now on ticks do not concern it."""
        known = self._known(piece)
        if known > piece.start_after:
            piece.start_after = known
            piece.futile_count = 0

    def _resolve_quiet(self, closed: Timestamp, resolved: dict[Timestamp, list[Span]]) -> None:
        if closed <= self._ticked:
            return
        self._ticked = closed
        unquiet = sorted(piece.span for piece in self._unquiet)
        for span in self._spans:
            for part in subtract(span, unquiet):
                self._frontier.forward(part, closed)
                resolved.setdefault(closed, []).append(part)

    # Starts.

    def _add(self, piece: _Piece) -> None:
        self._pieces[piece] = None
        self._unquiet[piece] = None
        heappush(self._due, (piece.start_after, next(self._numbers), piece))

    def _remove(self, piece: _Piece) -> None:
        del self._pieces[piece]
        self._unquiet.pop(piece, None)
        self._catching_up.pop(piece, None)
        self._news.pop(piece, None)

    def _restart(self, piece: _Piece, end: RangeFeedEnded) -> None:
        """Puts new pieces in the place of one whose feed has ended, if that is the reaction."""
        if end.reason.reaction is FeedReaction.FAIL:
            raise end
        self._settle(piece)
        self._remove(piece)
        delay = 0.0
        if piece.futile_count:
            delay = min(RESTART_DELAY * 2**piece.futile_count, RESTART_DELAY_MAX)
        if end.reason.reaction is FeedReaction.WAIT:
            delay = max(delay, WAIT_DELAY)
        futile_count = min(piece.futile_count + 1, FUTILE_MAX)
        for part in self._router.divide(piece.span):
            again = _Piece(part, piece.start_after, futile_count=futile_count)
            if end.reason is FeedEnd.RANGE_MERGED and not delay:
                again = self._joined(again)
            if delay:
                loop = asyncio.get_running_loop()
                self._pieces[again] = self._unquiet[again] = None
                self._delayed_count += 1
                again.timer = loop.call_later(delay, self._restart_due, again)
            else:
                self._add(again)
        if not delay:
            self._bell.ring()

    def _joined(self, piece: _Piece) -> _Piece:
        """The piece and the neighbours that it can be one with again: those that wait to be
        started at the same timestamp, in the same range. So pieces do not pile up as ranges split
        and merge."""
        for waiting in self._due:
            other = waiting[2]
            low, high = sorted((piece, other), key=lambda part: part.span.start)
            if other.start_after == piece.start_after and low.span.end == high.span.start:
                span = Span(low.span.start, high.span.end)
                if len(self._router.divide(span)) == 1:
                    self._due.remove(waiting)
                    heapify(self._due)
                    self._remove(other)
                    futile_count = max(piece.futile_count, other.futile_count)
                    return self._joined(_Piece(span, piece.start_after, futile_count=futile_count))
        return piece

    def _restart_due(self, piece: _Piece) -> None:
        piece.timer = None
        self._delayed_count -= 1
        self._add(piece)
        self._bell.ring()

    def _start_due(self) -> None:
        """Starts the oldest pieces that may start."""
        while self._due and len(self._catching_up) < CATCH_UPS_MAX:
            _, _, piece = heappop(self._due)
            self._start(piece)

    def _start(self, piece: _Piece) -> None:
        try:
            feed = self._router.range_feed(
                piece.span,
                piece.start_after,
                with_previous=self._with_previous,
                omitted_origins=self._omitted_origins,
            )
        except RangeFeedEnded as end:
            self._restart(piece, end)
            return
        feed.bell = _PieceBell(piece, self._news, self._bell, self._checkpoint_due)
        feed.gathered = True
        piece.feed = feed
        self._catching_up[piece] = None
        feed.bell.ring()

    def __repr__(self) -> str:
        return (
            f"<SpanFeed {len(self._pieces)} pieces, {len(self._unquiet)} not quiet, "
            f"{self._frontier!r}>"
        )
