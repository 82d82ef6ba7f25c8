"""A range: the commands, locks, reads and feeds of one span of keys."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from ..clock import ZERO, Clock, Timestamp
from ..closed_timestamp import ClosedTimestamps
from ..command import Command, EnginePut, LogicalOp, decode_command, encode_command, engine_batch
from ..engine import Engine, EngineStall, Reader
from ..errors import BatchTimestampBeforeGC, FeedEnd, StoreClosed
from ..keys import big_endian
from ..log import CommandLog, LogFull, Retention
from ..metrics import Metrics
from ..mvcc import intents_in
from ..offload import Offload
from ..rangefeed import (
    TICK_INTERVAL,
    DurableEntry,
    MemoryBudget,
    PushOutcome,
    PushVerdict,
    RangeFeed,
    RangeFeeds,
)
from ..settings import Settings
from ..span import Span
from ..txn.locks import LockTable, Turn
from ..txn.record import TransactionRecord, TransactionStatus
from ..txn.resolution import abort, push
from ..txn.steps import run_step
from ..txn.timestamp_cache import NOBODY, TimestampCache
from .descriptor import RangeDescriptor, resolved_key

RECENT_COMMITS_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """What all ranges of a store share."""

    log: CommandLog
    engine: Engine
    clock: Clock
    offload: Offload
    settings: Settings
    metrics: Metrics
    random: Random
    closed: ClosedTimestamps
    feed_memory: MemoryBudget


class Range:
    """Serves one span. It is the `TransactionHost` of its transactions and the `RangeFeedHost` of
    its feeds.

    Every change is a *proposal*: a command that is applied to the engine and appended to the log
    in the step that evaluated it. Since the loop runs one step at a time, there are no latches.

    An entry lives three times: applied (visible to later steps), durable (visible outside), and
    consumed (handed to the feeds, in log order, in the moment it becomes durable). A transaction's
    record outlives its end until its last entry is consumed, so that a feed that asks for the
    verdict of a transaction which it still counts always gets the true one.
    """

    def __init__(self, descriptor: RangeDescriptor, parts: StoreParts) -> None:
        self.descriptor = descriptor
        self.span = descriptor.span
        self.log = parts.log
        self.engine = parts.engine
        self.clock = parts.clock
        self.settings = parts.settings
        self.metrics = parts.metrics
        self.random = parts.random
        self.closed = parts.closed
        self.locks = LockTable()
        self.timestamp_cache = TimestampCache()
        self.feeds = RangeFeeds(self)
        self.gc_threshold = ZERO
        self.persisted_resolved = self._load_resolved()
        self.feed_memory = parts.feed_memory
        self.applied_bytes = 0  # of commands, ever
        self._records: dict[bytes, TransactionRecord] = {}
        self._writers: dict[bytes, TransactionRecord] = {}  # those that may still write
        self._unconsumed: deque[tuple[int, Command, int, int]] = deque()
        self._retiring: deque[tuple[int, bytes]] = deque()
        self._recent_commits: deque[Timestamp] = deque()
        self._recent_commit_set: set[Timestamp] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._closed_because: str | None = None
        self.log.on_durable(self._entries_durable)

    def _load_resolved(self) -> Timestamp:
        found = self.engine.get(resolved_key(self.descriptor.id))
        return ZERO if found is None else Timestamp(int.from_bytes(found, "big"))

    # What is seen, and when it may leave.

    @property
    def applied_index(self) -> int:
        return self.engine.applied_index

    @property
    def durable_index(self) -> int:
        return self.log.durable_index

    async def released(self, index: int) -> None:
        # At start-up the engine may be ahead of the log: what it flushed is durable by that.
        if index > self.log.durable_index and index <= self.log.last_index:
            await self.log.wait_durable(index)

    def check_open(self) -> None:
        if self._closed_because is not None:
            raise StoreClosed(self._closed_because)

    def check_readable(self, at: Timestamp) -> None:
        if at <= self.gc_threshold:
            raise BatchTimestampBeforeGC(at, self.gc_threshold)

    def point_read(self, key: bytes, at: Timestamp, reader: TransactionRecord | None) -> None:
        if self._writers and self._matters(at, reader):
            self.timestamp_cache.add_point(key, at, NOBODY if reader is None else reader.id)

    def span_read(self, span: Span, at: Timestamp, reader: TransactionRecord | None) -> None:
        if self._writers and self._matters(at, reader):
            self.timestamp_cache.add_span(span, at, NOBODY if reader is None else reader.id)

    def _matters(self, at: Timestamp, reader: TransactionRecord | None) -> bool:
        # A transaction that begins after this step writes above everything ever drawn, and so
        # above this read; only those that run already can come below it.
        return any(
            writer.write_timestamp <= at and writer is not reader
            for writer in self._writers.values()
        )

    # Changes.

    def propose(
        self,
        operations: Sequence[LogicalOp],
        *,
        lowest: Timestamp | None = None,
        commit_called_ns: int = 0,
    ) -> int:
        """Applies the command, then appends it: both, or neither.

        The engine comes first because it alone may refuse at the last moment (EngineStall, a state
        that its own threads change), while whether the log takes the entry is known before. If the
        process dies in between, the engine has at most one command that the log lacks; nobody was
        told of it, and recovery begins above both.
        """
        self.check_open()
        command = Command(self.descriptor.id, self.closed.closed, list(operations))
        payload = encode_command(command)
        self.log.check_append(payload)
        index = self.log.last_index + 1
        self.engine.write(engine_batch(command), applied_index=index)
        appended = self.log.append(payload)
        assert appended == index, (appended, index)
        self.closed.entry_appended(index, lowest)
        self._unconsumed.append((index, command, len(payload), commit_called_ns))
        self.applied_bytes += len(payload)
        return index

    def committed(self, at: Timestamp) -> None:
        recent = self._recent_commit_set
        assert at not in recent, f"two transactions committed at {at}"
        recent.add(at)
        self._recent_commits.append(at)
        if len(recent) > RECENT_COMMITS_MAX:
            recent.discard(self._recent_commits.popleft())

    def raise_gc_threshold(self, threshold: Timestamp, operation: LogicalOp) -> int:
        """Proposes the entry that says so. Reads at or below fail from this step on."""
        assert threshold > self.gc_threshold, (threshold, self.gc_threshold)
        index = self.propose((operation,))
        self.gc_threshold = threshold
        return index

    # Transactions.

    def began(self, record: TransactionRecord) -> None:
        """An explicit transaction that may write begins in this step."""
        assert record.write_timestamp == self.clock.last, record
        self._records[record.id] = record
        self._writers[record.id] = record
        self.closed.touch(record.id, record.write_timestamp)

    def ended(self, record: TransactionRecord, index: int) -> None:
        assert record.status is not TransactionStatus.PENDING, record
        assert not record.locks, record
        if self._writers.pop(record.id, None) is not None and not self._writers:
            self.timestamp_cache.clear()
        self.closed.release(record.id)
        if record.id in self._records:
            self._retiring.append((index, record.id))
            self._retire(self.log.durable_index)

    @property
    def running(self) -> list[TransactionRecord]:
        """Transactions that may still write."""
        return [
            record
            for record in self._writers.values()
            if record.status is TransactionStatus.PENDING
        ]

    def abort_running(self, because: str) -> None:
        """Aborts every transaction that may still write."""
        for record in self.running:
            abort(self, record, because)

    async def push(self, transaction_id: bytes) -> PushOutcome:
        def step(_: Turn | None) -> PushOutcome:
            record = self._records.get(transaction_id)
            if record is None:
                # Every entry of it is consumed, so whoever still counts it counts wrongly.
                return PushOutcome(
                    verdict=PushVerdict.ABORTED, timestamp=ZERO, index=self.applied_index
                )
            if record.status is TransactionStatus.PENDING:
                push(self, record)
            return PushOutcome(
                verdict=_VERDICTS[record.status],
                timestamp=record.write_timestamp,
                index=self.applied_index,
            )

        return await run_step(self, step, waiter=None, lock_timeout=None)

    def intents(self, reader: Reader, above: Timestamp) -> Iterator[tuple[bytes, Timestamp]]:
        over = {
            record.id
            for record in self._records.values()
            if record.write_timestamp <= above and record.intents
        }
        if len(over) == len(self._records):
            return iter(())  # nobody who could commit has an intent, and there is nothing to read
        return (
            (intent.transaction_id, intent.timestamp)
            for _, intent in intents_in(reader, self.span)
            if intent.transaction_id not in over
        )

    # Feeds.

    def persist_resolved(self, resolved: Timestamp) -> None:
        assert resolved > self.persisted_resolved, (resolved, self.persisted_resolved)
        entry = EnginePut(resolved_key(self.descriptor.id), big_endian(resolved))
        with suppress(EngineStall, LogFull, StoreClosed):
            self.propose((entry,))
            self.persisted_resolved = resolved

    def retain_log(self, first: int) -> Retention:
        return self.log.retain(first)

    def read_log(self, first: int, last: int) -> Iterator[DurableEntry]:
        for index, payload in self.log.read(first, last):
            yield DurableEntry(index, decode_command(payload), len(payload), 0, 0)

    def register(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        """A feed of a span of this range, from `start_after` (exclusive)."""
        self.check_open()
        feed = self.feeds.register(
            span, start_after, with_previous=with_previous, omitted_origins=omitted_origins
        )
        if self._ticker is None or self._ticker.done():
            self._ticker = asyncio.get_running_loop().create_task(self._tick())
        return feed

    async def _tick(self) -> None:
        while self.feeds.feed_count:
            await asyncio.sleep(self.settings.get(TICK_INTERVAL))
            if self._closed_because is None:
                self.feeds.tick()

    def _entries_durable(self, durable_index: int) -> None:
        self.closed.entries_durable(durable_index)
        durable_ns = self.clock.wall.monotonic_ns()
        unconsumed = self._unconsumed
        while unconsumed and unconsumed[0][0] <= durable_index:
            index, command, byte_count, called_ns = unconsumed.popleft()
            self.feeds.consume(DurableEntry(index, command, byte_count, called_ns, durable_ns))
        self._retire(durable_index)

    def _retire(self, durable_index: int) -> None:
        retiring = self._retiring
        while retiring and retiring[0][0] <= durable_index:
            self._records.pop(retiring.popleft()[1], None)

    # Ends.

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def drain(self, seconds: float | None) -> None:
        """Waits for background work, as long as it takes when `seconds` is None."""
        if self._background:
            await asyncio.wait(set(self._background), timeout=seconds)

    def shut(self, because: str) -> None:
        """Refuses everything from now on, and wakes whoever waits."""
        if self._closed_because is not None:
            return
        self._closed_because = because
        self.locks.fail(StoreClosed(because))
        self.feeds.close(FeedEnd.RANGEFEED_CLOSED)
        if self._ticker is not None:
            self._ticker.cancel()

    def check_invariants(self) -> None:
        """For tests, between any two steps: memory and engine agree."""
        self.locks.check_invariants()
        held = {key: intent.transaction_id for key, intent in intents_in(self.engine, self.span)}
        known = {key: record.id for key, record in self.locks.intents.items()}
        assert held == known, (held, known)
        for record in self._writers.values():
            assert record.read_timestamp <= record.write_timestamp, record
            assert record.write_timestamp <= self.clock.last, record

    def __repr__(self) -> str:
        return (
            f"<Range {self.descriptor.id} applied={self.applied_index} "
            f"durable={self.durable_index} {self.locks!r}>"
        )


_VERDICTS: dict[TransactionStatus, PushVerdict] = {
    TransactionStatus.PENDING: PushVerdict.MOVED,
    TransactionStatus.COMMITTED: PushVerdict.COMMITTED,
    TransactionStatus.ABORTED: PushVerdict.ABORTED,
}
