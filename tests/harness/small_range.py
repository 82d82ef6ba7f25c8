"""A range small enough to move by hand: what range feeds and closing are unit-tested against.

It keeps the rules that a real range keeps (apply and append in one step, durable later, delivered
in order) and leaves every moment to the test. Timestamps are small: wall time begins at 2020-01-01,
and `moment(7)` is seven milliseconds later.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tailrace.kvlayer.clock import (
    EPOCH_UNIX_US,
    LOGICAL_BITS,
    ZERO,
    Clock,
    MemoryBoundStore,
    Timestamp,
)
from tailrace.kvlayer.closed_timestamp import ClosedTimestamps, lowest_timestamp
from tailrace.kvlayer.command import (
    AbortIntent,
    Command,
    CommitIntent,
    LogicalOp,
    WriteIntent,
    WriteValue,
    encode_command,
    engine_batch,
)
from tailrace.kvlayer.engine import MemoryEngine, Reader
from tailrace.kvlayer.errors import KVError
from tailrace.kvlayer.events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from tailrace.kvlayer.keys import ALL_KEYS
from tailrace.kvlayer.log import Retention
from tailrace.kvlayer.log.retention import Retentions
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.mvcc import encode_value, intents_in
from tailrace.kvlayer.rangefeed import (
    DurableEntry,
    MemoryBudget,
    PushOutcome,
    RangeFeed,
    RangeFeeds,
    ScanPace,
    TickedFeed,
)
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span


def moment(milliseconds: float) -> Timestamp:
    """The timestamp of a wall time, in milliseconds since the range began."""
    return Timestamp(round(milliseconds * 1000) << LOGICAL_BITS)


class HandWall:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.milliseconds = 1.0

    def unix_us(self) -> int:
        return EPOCH_UNIX_US + round(self.milliseconds * 1000)

    def monotonic_ns(self) -> int:
        # Its zero is another one than the wall's.
        return round((1000 + self.milliseconds) * 1e6)


class SmallRange:
    """Implements `RangeFeedHost`. `propose` applies, `sync` makes durable and delivers."""

    def __init__(self, span: Span = ALL_KEYS, settings: dict[str, str] | None = None) -> None:
        self.span = span
        self.wall = HandWall()
        self.clock = Clock(self.wall, MemoryBoundStore())
        self.settings = Settings(settings or {})
        self.metrics = Metrics()
        self.random = Random(0)
        self.engine = MemoryEngine()
        self.closed = ClosedTimestamps(self.clock, self.settings)
        self.gc_threshold = ZERO
        self.durable_index = 0
        self.verdicts: dict[bytes, PushOutcome] = {}
        self.pushed: list[bytes] = []
        self.push_error: KVError | None = None
        self.feeds = RangeFeeds(self)
        self.feed_memory = MemoryBudget(self.settings)
        self.scan_pace = ScanPace(self.settings)
        self.persisted_resolved = ZERO
        self.retentions = Retentions()
        self.entries_read = 0  # from the log, by feeds
        self._undelivered: list[tuple[int, Command]] = []
        self._log: dict[int, DurableEntry] = {}

    @property
    def applied_index(self) -> int:
        return self.engine.applied_index

    def gc_threshold_of(self, span: Span) -> Timestamp:
        return self.gc_threshold

    def feeds_changed(self) -> None: ...

    def intents(self, reader: Reader, above: Timestamp) -> Iterator[tuple[bytes, Timestamp]]:
        for _, intent in intents_in(reader, self.span):
            yield intent.transaction_id, intent.timestamp

    def persist_resolved(self, resolved: Timestamp) -> None:
        self.persisted_resolved = resolved

    def retain_log(self, first: int) -> Retention:
        return self.retentions.hold(first)

    def read_log(self, first: int, last: int) -> Iterator[DurableEntry]:
        assert self.retentions.needs(first), "an entry is read that the log may have deleted"
        for index in range(first, last + 1):
            self.entries_read += 1
            yield self._log[index]

    async def push(self, transaction_id: bytes) -> PushOutcome:
        self.pushed.append(transaction_id)
        if self.push_error is not None:
            raise self.push_error
        return self.verdicts[transaction_id]

    def propose(self, *ops: LogicalOp) -> int:
        """Applies and appends; not durable yet."""
        command = Command(1, ZERO, list(ops))
        index = self.applied_index + 1
        self.closed.entry_appended(index, lowest_timestamp(command))
        self.engine.write(engine_batch(command), applied_index=index)
        self._undelivered.append((index, command))
        return index

    def sync(self, upto: int | None = None) -> None:
        """Makes entries durable and delivers them."""
        limit = self.applied_index if upto is None else upto
        ready = [entry for entry in self._undelivered if entry[0] <= limit]
        self._undelivered = self._undelivered[len(ready) :]
        self.durable_index = max(self.durable_index, limit)
        self.closed.entries_durable(self.durable_index)
        for index, command in ready:
            size = len(encode_command(command))
            entry = DurableEntry(index, command, size, 0, 0, self.wall.monotonic_ns())
            self._log[index] = entry
            self.feeds.consume(entry)

    def put(self, *written: tuple[bytes, bytes | None]) -> Timestamp:
        """A one-phase commit, durable at once."""
        ts = self.clock.now()
        self.propose(write(ts, *written))
        self.sync()
        return ts

    def lay_intents(self, transaction_id: bytes, ts: Timestamp, *written: bytes) -> None:
        values = [encode_value(b"intent")] * len(written)
        self.propose(WriteIntent(transaction_id, ts, 1, list(written), values))

    def commit_intents(self, transaction_id: bytes, ts: Timestamp, *written: bytes) -> None:
        values = [encode_value(b"intent")] * len(written)
        self.propose(CommitIntent(transaction_id, ts, list(written), values))

    def abort_intents(self, transaction_id: bytes, *written: bytes) -> None:
        self.propose(AbortIntent(transaction_id, list(written)))

    def advance(self, milliseconds: float) -> None:
        """Lets time pass, and then a tick."""
        self.wall.milliseconds += milliseconds
        self.feeds.tick()

    # A router of one range.

    def divide(self, span: Span) -> list[Span]:
        return [span]

    def gather(self, feed: TickedFeed) -> None:
        """Its feeds are ticked each by itself."""

    def release(self, feed: TickedFeed) -> None: ...

    def range_feed(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        return self.feeds.register(
            span, start_after, with_previous=with_previous, omitted_origins=omitted_origins
        )


def write(ts: Timestamp, *written: tuple[bytes, bytes | None]) -> WriteValue:
    """A one-phase commit's operation."""
    return WriteValue(ts, [key for key, _ in written], [encode_value(body) for _, body in written])


def told(events: list[Event]) -> list[str]:
    """Events in a word or two each: `a=x`, `b deleted`, `steady`, `checkpoint`."""
    words: list[str] = []
    for event in events:
        match event:
            case ValueBatch():
                words += [
                    f"{_name(key)} deleted" if body is None else f"{_name(key)}={body.decode()}"
                    for key, body in zip(event.keys, event.values, strict=True)
                ]
            case DeleteRange(span=span):
                words.append(f"[{_name(span.start)}, {_name(span.end)}) deleted")
            case SteadyState():
                words.append("steady")
            case Checkpoint():
                words.append("checkpoint")
    return words


def _name(key: bytes) -> str:
    return key[5:].decode()


def resolved_in(events: list[Event]) -> list[Timestamp]:
    """The timestamps of the checkpoints among the events."""
    return [event.resolved for event in events if isinstance(event, Checkpoint)]


def key(name: str, keyspace: int = 1) -> bytes:
    """A key of a keyspace."""
    return b"t" + keyspace.to_bytes(4, "big") + name.encode()
