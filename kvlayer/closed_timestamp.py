"""The closed timestamp: the time at and below which nothing more will be written.

Closing is adaptive: a store closes right behind its clock, and is held back only by what is really
under way. No lag is chosen in advance.

    clock          100     110     120     130        closed
    x writes at            110                        109   (x holds)
    y begins                       120                109
    x commits, entry 7 not durable                    109   (the entry holds)
    entry 7 durable                                   119   (y, which has not written, holds)
    20 ms later                                       now - 1
"""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush

from .clock import ZERO, Clock, Timestamp, format_timestamp
from .command import Command, DeleteRangeOp, WriteIntent, WriteValue
from .settings import Settings, declare_duration

TARGET_DURATION = declare_duration(
    "kv.closed_timestamp.target_duration",
    3.0,
    "how long a transaction that has written may hold the closed timestamp back",
)

UNWRITTEN_HOLD_NS = 20_000_000
"""How long a transaction may hold before its first write. Enough for one that writes as soon as it
can; one that thinks for longer is forwarded at its first write, which costs it a refresh."""

STALE_MAX = 64
"""Heaps are rebuilt when they hold this many entries more than four for each holder."""


class _Hold:
    """A transaction that holds, or has held until its time was up (`active` is False)."""

    __slots__ = ("active", "deadline_ns", "timestamp", "written")

    def __init__(self, timestamp: Timestamp, deadline_ns: int, *, written: bool) -> None:
        self.timestamp = timestamp
        self.deadline_ns = deadline_ns
        self.written = written
        self.active = True


class ClosedTimestamps:
    """Closes timestamps of one store.

    `closed = min(now drawn from the clock, the oldest holder's write timestamp, the oldest
    timestamp in an entry that is not durable) - 1`, and it never falls. Holders are transactions
    that have written or locked, for at most `kv.closed_timestamp.target_duration`, and explicit
    ones that have not, for at most `UNWRITTEN_HOLD_NS`. One that stands at or below what is closed
    holds nothing: it will have to move anyhow.

    The promise is that no write lands at or below a closed timestamp. It holds because every write
    is evaluated, compared with `closed`, appended and applied in one step of the loop, and closing
    is another step. A write's step comes either after the closing, and then it sees `closed` and
    must move above it; or before, and then its entry is durable, or is not and holds the closing
    back. So holders are not there for safety: a transaction that no longer holds is forwarded at
    its next write. What it has written already are intents, which hold the *resolved* timestamp.

    For the same reason a closing is true of everybody who has seen every entry up to
    `durable_index` at the time of the closing: all that was appended beyond is above it, and so is
    all that will be. A processor lets a closing take effect once it was delivered that much.

    HAZARD: this rests on `entry_appended` being called in the step that appends, with the lowest
    timestamp that the command newly writes (`lowest_timestamp`). An intent left out here could
    surface in a feed below its resolved timestamp.
    """

    store_wide = True
    """One tick speaks for all ranges that close by it (see `rangefeed.host.Closing`)."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._settings = settings
        self._closed = ZERO
        self._durable_index = 0
        self._holds: dict[bytes, _Hold] = {}
        # Heaps with entries gone stale: one is true when it equals what the hold says now.
        self._oldest: list[tuple[Timestamp, bytes]] = []
        self._deadlines: list[tuple[int, bytes]] = []
        # Index and lowest timestamp of entries that are not durable, both ascending: an entry that
        # is followed by one with a lower timestamp can never be the oldest again, and is left out.
        self._undurable: deque[tuple[int, Timestamp]] = deque()

    @property
    def closed(self) -> Timestamp:
        """The greatest timestamp ever closed: a write at or below it must move."""
        return self._closed

    @property
    def durable_index(self) -> int:
        """The last entry known to be durable."""
        return self._durable_index

    @property
    def holder_count(self) -> int:
        """The number of transactions that would hold the next closing back, as of the last
        closing."""
        return sum(hold.active for hold in self._holds.values())

    def touch(self, holder: bytes, write_timestamp: Timestamp | None = None) -> None:
        """An explicit transaction has begun and has not written. Later touches change nothing.

        Call it in the step that drew the transaction's timestamp, or say the timestamp.
        """
        if holder in self._holds:
            return
        ts = self._clock.last if write_timestamp is None else write_timestamp
        self._begin(holder, _Hold(ts, self._now_ns() + UNWRITTEN_HOLD_NS, written=False))

    def hold(self, holder: bytes, write_timestamp: Timestamp) -> None:
        """The transaction has written or locked, and its writes now stand at `write_timestamp`."""
        hold = self._holds.get(holder)
        if hold is None or not hold.written:
            deadline_ns = self._now_ns() + round(self._settings.get(TARGET_DURATION) * 1e9)
            self._begin(holder, _Hold(write_timestamp, deadline_ns, written=True))
        elif write_timestamp > hold.timestamp:
            hold.timestamp = write_timestamp
            if hold.active and write_timestamp > self._closed:
                heappush(self._oldest, (write_timestamp, holder))

    def release(self, holder: bytes) -> None:
        """The transaction has ended. Releasing one that does not hold changes nothing."""
        if self._holds.pop(holder, None) is None:
            return
        if len(self._oldest) + len(self._deadlines) > STALE_MAX + 4 * len(self._holds):
            self._drop_stale()

    def entry_appended(self, index: int, lowest: Timestamp | None) -> None:
        """An entry went to the log, in this step. `lowest` is None when it holds no timestamp."""
        assert index > self._durable_index, (index, self._durable_index)
        if lowest is None:
            return
        assert lowest > self._closed, (lowest, self._closed)
        undurable = self._undurable
        while undurable and undurable[-1][1] >= lowest:
            undurable.pop()
        undurable.append((index, lowest))

    def entries_durable(self, upto: int) -> None:
        """Every entry up to index `upto` is durable."""
        if upto <= self._durable_index:
            return
        self._durable_index = upto
        undurable = self._undurable
        while undurable and undurable[0][0] <= upto:
            undurable.popleft()

    def close(self) -> Timestamp:
        """Closes what can be closed now, and returns the greatest closed timestamp."""
        self._expire()
        limit = self._clock.now()
        if self._undurable and self._undurable[0][1] < limit:
            limit = self._undurable[0][1]
        oldest = self._oldest_hold()
        if oldest is not None and oldest < limit:
            limit = oldest
        if limit - 1 > self._closed:
            self._closed = Timestamp(limit - 1)
        return self._closed

    def _begin(self, holder: bytes, hold: _Hold) -> None:
        self._holds[holder] = hold
        if hold.timestamp > self._closed:
            heappush(self._oldest, (hold.timestamp, holder))
        heappush(self._deadlines, (hold.deadline_ns, holder))

    def _expire(self) -> None:
        deadlines = self._deadlines
        if not deadlines:
            return
        now_ns = self._now_ns()
        while deadlines and deadlines[0][0] <= now_ns:
            deadline_ns, holder = heappop(deadlines)
            hold = self._holds.get(holder)
            if hold is not None and hold.deadline_ns == deadline_ns:
                hold.active = False

    def _oldest_hold(self) -> Timestamp | None:
        oldest = self._oldest
        while oldest:
            ts, holder = oldest[0]
            hold = self._holds.get(holder)
            if hold is not None and hold.active and hold.timestamp == ts and ts > self._closed:
                return ts
            heappop(oldest)
        return None

    def _drop_stale(self) -> None:
        holds = self._holds
        self._oldest = [
            (hold.timestamp, holder)
            for holder, hold in holds.items()
            if hold.active and hold.timestamp > self._closed
        ]
        self._deadlines = [
            (hold.deadline_ns, holder) for holder, hold in holds.items() if hold.active
        ]
        heapify(self._oldest)
        heapify(self._deadlines)

    def _now_ns(self) -> int:
        return self._clock.wall.monotonic_ns()

    def __repr__(self) -> str:
        return (
            f"<ClosedTimestamps {format_timestamp(self._closed)} holders={self.holder_count} "
            f"durable={self._durable_index} undurable={len(self._undurable)}>"
        )


def lowest_timestamp(command: Command) -> Timestamp | None:
    """The lowest timestamp of any version or intent that the command newly writes, if any.

    Intents that become versions are not new: they may well commit below the closed timestamp, and
    hold the resolved one until a feed has been told.
    """
    lowest: Timestamp | None = None
    for op in command.all_ops():
        match op:
            case WriteValue(timestamp=ts) | WriteIntent(timestamp=ts) | DeleteRangeOp(timestamp=ts):
                if lowest is None or ts < lowest:
                    lowest = ts
            case _:
                pass
    return lowest
