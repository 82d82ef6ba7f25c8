"""The feeds of one range, and the one processor that drives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ..clock import ZERO, Timestamp, duration
from ..engine import Snapshot
from ..errors import BatchTimestampBeforeGC, ClockStopped, FeedEnd, RangeFeedEnded
from ..settings import SettingError, declare_duration, declare_int, declare_text
from ..span import Span
from .catch_up import CatchUpScan, changed_since
from .feed_options import FeedOptions
from .host import TICK_INTERVAL, DurableEntry, PushOutcome, PushVerdict, RangeFeedHost
from .live_entry import LiveEntry, bounds_of
from .pusher import Pusher
from .registration import RangeFeed
from .resolved_timestamp import ResolvedTimestamp


def _only_true(text: str) -> str:
    if text.strip().lower() not in ("true", "t", "on", "yes", "1"):
        raise SettingError("range feeds are always on, and the only value is true")
    return "true"


ENABLED = declare_text(
    "kv.rangefeed.enabled",
    "true",
    "whether there are range feeds: always, and clients of CockroachDB's changefeeds ask",
    _only_true,
)
UNRESOLVED_TRANSACTIONS = declare_int(
    "kv.rangefeed.unresolved_transactions_max",
    100_000,
    "transactions with unresolved intents that a range's feeds keep track of",
)

PERSIST_INTERVAL = declare_duration(
    "kv.rangefeed.persist_resolved_interval",
    10.0,
    "how far a range's resolved timestamp may run ahead of the one that it keeps in the log",
)

LOCK_TABLE_SLICE = 1000
"""Intents scanned in one step of the loop: under a millisecond."""


class RangeFeeds:
    """Takes the range's durable entries in log order, and hands each to every feed.

    While there is a feed there is a *processing*: from the first registration, at log index
    `start`, to the end of the last feed. It begins with a scan of the lock table as it was at
    `start`; a large one is read from a snapshot, a slice each tick.

    Within an entry feeds come first and the resolved timestamp second, so that a feed that is cut
    off by an entry gets the checkpoint as of the one before it.

    Checkpoints follow an entry at once, but at most once in a tick interval; and a tick, unless one
    went out in the interval before it. So a row is seldom left waiting for the next tick, which it
    would always be if ticks counted against entries: timers of one loop fall into step, and a
    writer that wakes with the tick commits just behind it, each time. The feeds that the entry does
    not concern hear of it by the tick: of many, a commit would otherwise wait for each.
    """

    def __init__(self, host: RangeFeedHost) -> None:
        self._host = host
        self._feeds: list[RangeFeed] = []
        self._waiting: list[RangeFeed] = []  # until what is in their snapshots is durable
        self._counted = 0
        self._processing: _Processing | None = None
        self._closed_for: FeedEnd | None = None

    @property
    def feed_count(self) -> int:
        return len(self._feeds)

    @property
    def busy(self) -> bool:
        """Whether the range needs a tick of its own. One that is not has resolved whatever the
        store has closed, and a span feed is told so for all such ranges at once."""
        processing = self._processing
        if processing is None:
            return False
        return not processing.quiet or not all(feed.gathered for feed in self._feeds)

    @property
    def awaiting(self) -> bool:
        """Whether something waits for entries to be delivered, of whatever range they are."""
        processing = self._processing
        return bool(self._waiting) or (processing is not None and processing.awaiting)

    @property
    def resolved(self) -> Timestamp:
        """The resolved timestamp that feeds have been promised or will be at the next checkpoint;
        zero if none."""
        processing = self._processing
        return Timestamp(0) if processing is None else processing.resolved.resolved

    def register(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        """A feed of `span` from `start_after` (exclusive), taken in this step.

        It begins with a checkpoint at what is resolved already, which may be below its start.

        Raises BatchTimestampBeforeGC when versions above the start may be gone, and RangeFeedEnded
        when the range has ended.
        """
        host = self._host
        assert host.span.covers(span), (span, host.span)
        if self._closed_for is not None:
            raise RangeFeedEnded(self._closed_for)
        threshold = host.gc_threshold_of(span)
        if start_after < threshold:
            raise BatchTimestampBeforeGC(start_after, threshold)
        options = FeedOptions(with_previous=with_previous, omitted_origins=omitted_origins)
        scan = None
        if not changed_since(host.engine, span, start_after):
            host.metrics.add("rangefeed_scans_avoided_total")
        else:
            host.metrics.add("rangefeed_scans_total")
            scan = CatchUpScan(host.engine.snapshot(), span, start_after, options)
        if self._processing is None:
            self._processing = _Processing(host)
        feed = RangeFeed(
            host,
            span,
            start_after,
            options=options,
            index=host.applied_index,
            resolved=self._processing.resolved.resolved,
            scan=scan,
            unregister=self._unregister,
        )
        feed.quiet = self._processing.quiet
        self._feeds.append(feed)
        if feed.index > host.durable_index:
            self._waiting.append(feed)
        self._count_feeds()
        return feed

    def consume(self, entry: DurableEntry) -> None:
        """An entry became durable. Call it for each, in log order."""
        processing = self._processing
        if processing is None:
            return
        if entry.index > processing.start:
            bounds = bounds_of(entry.command.ops)
            # A feed that overflows leaves the list, and must not make us skip its neighbour.
            near = _near(self._feeds, bounds)
            if near:
                live, resolved = LiveEntry(entry, bounds), processing.resolved.resolved
                for feed in near:
                    feed.offer(live, resolved)
            processing.consume(entry)
        if self._waiting:
            self._wake_scans(entry.index)
        self._follow(processing, entry.durable_ns)
        self._note_quiet(processing)
        if len(processing.resolved.intents) > processing.transactions_max:
            self._give_up(processing)

    def takes_runs_above(self, index: int) -> bool:
        """Whether entries above `index` may come several as one: nothing begins between them, and
        nobody reads them back one by one."""
        processing = self._processing
        if processing is None or processing.start > index:
            return False
        return all(feed.takes_runs_above(index) for feed in self._feeds)

    def delivered(self, index: int, durable_ns: int | None) -> None:
        """Every entry of the range up to `index` was consumed, which may be an entry of another
        range. `durable_ns` is when that one became durable, where a checkpoint may follow now."""
        processing = self._processing
        if processing is None:
            return
        processing.delivered(index)
        if self._waiting:
            self._wake_scans(index)
        if durable_ns is not None:
            self._follow(processing, durable_ns)
        self._note_quiet(processing)

    def close_at(self, closed: Timestamp) -> None:
        """A closing of the whole store took effect: everything that it covers was consumed."""
        if self._processing is not None and self._host.closed.store_wide:
            self._processing.resolved.close(closed)

    def tick(self) -> None:
        """Call it every `TICK_INTERVAL`. Costs nothing without feeds."""
        processing = self._processing
        if processing is None:
            return
        if not processing.resolved.ready:
            processing.scan_slice()
        now_ns = self._host.clock.wall.monotonic_ns()
        # A tick comes a little early or late.
        if now_ns - processing.checkpoint_ns >= processing.interval_ns * 0.9:
            self._checkpoint(processing, now_ns)
        if processing.resolved.ready:
            processing.pusher.tick(now_ns, processing.resolved.intents)
            self.persist()
        self._note_quiet(processing)
        if len(processing.resolved.intents) > processing.transactions_max:
            self._give_up(processing)

    def persist(self) -> None:
        """Writes down what is resolved, if that has moved far enough. For a range that is not
        ticked, now and then."""
        if self._processing is not None:
            self._processing.persist(every=self._host.settings.get(PERSIST_INTERVAL))

    def close(self, reason: FeedEnd) -> None:
        """The range ends, or stops: every feed ends, after a checkpoint that is as new as can be.

        `RANGEFEED_CLOSED` means that the engine is about to go, so that catch-up scans stop where
        they are; after a split or a merge they go on.
        """
        self._closed_for = reason
        if self._processing is not None:
            self._processing.close()
        resolved = self.resolved
        feeds, self._feeds = self._feeds, []
        for feed in feeds:
            if reason is FeedEnd.RANGEFEED_CLOSED:
                feed.abandon(resolved, RangeFeedEnded(reason))
            else:
                feed.cut(resolved, RangeFeedEnded(reason))
        self._stop()

    def _follow(self, processing: _Processing, now_ns: int) -> None:
        """The checkpoint that follows an entry."""
        since_ns = now_ns - processing.followed_ns
        if since_ns < processing.interval_ns:
            return
        if self._checkpoint(processing, now_ns, following=True):
            processing.followed_ns = now_ns

    def _note_quiet(self, processing: _Processing) -> None:
        quiet = processing.still
        if quiet != processing.quiet:
            processing.quiet = quiet
            for feed in self._feeds:
                feed.quiet = quiet
                feed.bell.mark()
            self._host.feeds_changed()

    def _checkpoint(self, processing: _Processing, now_ns: int, *, following: bool = False) -> bool:
        """Emits what can be closed now; says whether a closing took effect.

        Where it is `following` an entry, feeds that the store's tick speaks for are left to it.
        """
        if not processing.close():
            return False
        processing.checkpoint_ns = now_ns
        resolved = processing.resolved.resolved
        for feed in self._feeds:
            if not following or feed.touched or not feed.ticked:
                feed.resolve(resolved)
        return True

    def _wake_scans(self, durable_index: int) -> None:
        for feed in self._waiting:
            if feed.index <= durable_index:
                feed.bell.ring()
        self._waiting = [feed for feed in self._waiting if feed.index > durable_index]

    def _give_up(self, processing: _Processing) -> None:
        count = len(processing.resolved.intents)
        feeds, self._feeds = self._feeds, []
        for feed in feeds:
            end = RangeFeedEnded(FeedEnd.UNRESOLVED_INTENTS, f"{count} of them")
            feed.cut(processing.resolved.resolved, end)
        self._stop()

    def _unregister(self, feed: RangeFeed) -> None:
        self._feeds.remove(feed)
        if self._feeds:
            self._count_feeds()
        else:
            self._stop()

    def _stop(self) -> None:
        if self._processing is not None:
            if self._closed_for is not FeedEnd.RANGEFEED_CLOSED:
                self._processing.persist(every=0.0)
            self._processing.stop()
            self._processing = None
        self._count_feeds()

    def _count_feeds(self) -> None:
        change = len(self._feeds) - self._counted
        self._counted += change
        self._host.metrics.add("rangefeed_registrations", change)
        self._host.feeds_changed()

    def __repr__(self) -> str:
        return f"<RangeFeeds of {self._host.span}: {len(self._feeds)} feeds, {self._processing!r}>"


def _near(feeds: Sequence[RangeFeed], bounds: Sequence[tuple[bytes, bytes]]) -> list[RangeFeed]:
    """The feeds that an entry of such bounds may concern: few of a range of several tables."""
    if not bounds:
        return []
    least, greatest = bounds[0]
    if len(bounds) > 1:
        least, greatest = min(low for low, _ in bounds), max(high for _, high in bounds)
    return [feed for feed in feeds if least < feed.span.end and greatest >= feed.span.start]


class _Processing:
    """The state of a processor with feeds."""

    def __init__(self, host: RangeFeedHost) -> None:
        self.start = host.applied_index
        # What earlier processings have resolved holds for ever: nothing at or below it is left.
        self.resolved = ResolvedTimestamp(host.persisted_resolved)
        self.pusher = Pusher(host, self._learned)
        self.interval_ns = round(host.settings.get(TICK_INTERVAL) * 1e9)
        self.transactions_max = host.settings.get(UNRESOLVED_TRANSACTIONS)
        self.checkpoint_ns = 0  # the last closing
        self.followed_ns = 0  # the last one that came with an entry
        self._host = host
        self._delivered = self.start
        self._persist_due = False  # something was committed since resolved was persisted
        # A closing, and the index up to which entries must be delivered for it to be true.
        self._closing: tuple[Timestamp, int] | None = None
        self._verdicts: list[tuple[bytes, PushOutcome]] = []
        self._snapshot: Snapshot | None = None
        self._intents: Iterator[tuple[bytes, Timestamp]] = iter(())
        self._begin_scan()
        self.quiet = self.still

    @property
    def still(self) -> bool:
        """Whether the store's tick may speak for the range."""
        ready = self.resolved.ready and not self.resolved.intents
        return ready and self._host.closed.store_wide

    @property
    def awaiting(self) -> bool:
        return self._closing is not None or bool(self._verdicts)

    def delivered(self, index: int) -> None:
        """Entries up to `index` were delivered, if only because they were not of this range."""
        if index > self._delivered:
            self._delivered = index
            if self._closing is not None:
                self._apply_closing()
            if self._verdicts:
                self._apply_verdicts()

    def consume(self, entry: DurableEntry) -> None:
        assert entry.index > self._delivered, (entry.index, self._delivered)
        self.resolved.consume(entry.command.ops)
        self._delivered = entry.index
        self._persist_due = True
        if self._closing is not None:
            self._apply_closing()
        if self._verdicts:
            self._apply_verdicts()

    def close(self) -> bool:
        """Closes a timestamp, unless one already waits. Returns whether none waits now."""
        if self._closing is None:
            closed = self._host.closed
            try:
                self._closing = closed.close(), closed.durable_index
            except ClockStopped:
                # The clock's bound cannot be saved. Rows still pass; whoever draws a timestamp to
                # write with is told, and so need not be told by a feed.
                return False
            self._apply_closing()
        return self._closing is None

    def scan_slice(self) -> None:
        """Merges the next slice of the lock table."""
        intents = list(islice(self._intents, LOCK_TABLE_SLICE))
        self.resolved.scan(intents)
        if len(intents) < LOCK_TABLE_SLICE:
            self._end_scan()

    def persist(self, *, every: float) -> None:
        """Persists what is resolved, if it moved by more than `every` seconds.

        Not while the range is idle: then nothing has been written that a later processing would be
        spared, and a range that writes only to say that nothing was written would never rest. (The
        entry that this writes is the store's own, and no range is told of it.)
        """
        resolved = self.resolved.resolved
        behind = self._host.persisted_resolved + duration(seconds=every)
        if self._persist_due and resolved > behind:
            self._host.persist_resolved(resolved)
            self._persist_due = False

    def stop(self) -> None:
        self.pusher.stop()
        self._free_snapshot()

    def _begin_scan(self) -> None:
        # Most lock tables fit a slice, and then no snapshot is needed.
        above = self.resolved.resolved
        few = list(islice(self._host.intents(self._host.engine, above), LOCK_TABLE_SLICE))
        if len(few) < LOCK_TABLE_SLICE:
            self.resolved.scan(few)
            self._end_scan()
        else:
            self._snapshot = self._host.engine.snapshot()
            # All of them: what is left out here would be missed by entries that resolve it later.
            self._intents = self._host.intents(self._snapshot, ZERO)

    def _end_scan(self) -> None:
        self._free_snapshot()
        self.resolved.scanned()

    def _free_snapshot(self) -> None:
        self._intents = iter(())
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    def _apply_closing(self) -> None:
        assert self._closing is not None
        closed, index = self._closing
        if self._delivered >= index:
            self._closing = None
            self.resolved.close(closed)

    def _learned(self, transaction_id: bytes, outcome: PushOutcome) -> None:
        self._verdicts.append((transaction_id, outcome))
        self._apply_verdicts()

    def _apply_verdicts(self) -> None:
        """Believes the verdicts that the delivered entries bear out (see `PushOutcome`)."""
        waiting: list[tuple[bytes, PushOutcome]] = []
        for transaction_id, outcome in self._verdicts:
            if outcome.index > self._delivered:
                waiting.append((transaction_id, outcome))
            elif outcome.verdict is PushVerdict.ABORTED:
                self.resolved.aborted(transaction_id)
            else:
                self.resolved.moved(transaction_id, outcome.timestamp)
        self._verdicts = waiting

    def __repr__(self) -> str:
        return f"<delivered {self._delivered} since {self.start} {self.resolved!r}>"
