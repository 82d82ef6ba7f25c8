"""All ranges of a store, as its transactions see them: one face, one log, one step at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Any

from ..access import Release
from ..clock import ZERO, Timestamp
from ..command import (
    Command,
    EngineDelete,
    EnginePut,
    LogicalOp,
    Part,
    encode_command,
    engine_batch,
)
from ..engine import EngineFailed
from ..errors import BatchTimestampBeforeGC, FeedEnd, RangeFeedEnded, StoreClosed
from ..keys import ALL_KEYS
from ..mvcc import intents_in
from ..rangefeed import Closing, PushOutcome, PushVerdict, RangeFeed
from ..span import Span
from ..txn.locks import LockTable, Turn
from ..txn.record import PENDING, TransactionRecord, TransactionStatus
from ..txn.resolution import abort, push
from ..txn.steps import run_step
from ..txn.timestamp_cache import NOBODY, TimestampCache
from ..write_shares import charge
from .delivery import Delivery, Ending, PartOf
from .descriptor import FIRST_RANGE, thresholds_key
from .division import Parts, divide, key_count
from .parts import StoreParts
from .range import Range
from .range_map import RangeMap
from .replica import Replica, check_own_writes
from .thresholds import Thresholds
from .whereabouts import Whereabouts

RECENT_COMMITS_MAX = 4096


class RangeStore:
    """The `TransactionHost` of a store's transactions, and the owner of its ranges.

    Every change is a *proposal*: a command that is applied to the engine and appended to the log
    in the step that evaluated it. Since the loop runs one step at a time, there are no latches; and
    since a command may hold parts of several ranges, a step is atomic whatever keys it writes.

    An entry lives three times: applied (visible to later steps), durable (visible outside), and
    consumed (handed to the feeds, in log order, in the moment it becomes durable). A read may leave
    when what it saw is durable: of a span all entries but intents (`visible_index`), of a version
    the commit that wrote it (`undurable`). A transaction's
    record outlives its end until its last entry is consumed, so that a feed that asks for the
    verdict of a transaction which it still counts always gets the true one.
    """

    def __init__(self, parts: StoreParts, fail: Callable[[BaseException], None]) -> None:
        """`fail` is told when the engine can write no more."""
        self.parts = parts
        self.log = parts.log
        self.engine = parts.engine
        self.clock = parts.clock
        self.settings = parts.settings
        self.metrics = parts.metrics
        self.random = parts.random
        self.closed = parts.closed
        self.locks = LockTable()
        self.timestamp_cache = TimestampCache()
        self.delivery = Delivery(parts)
        self.ranges = RangeMap([Range(FIRST_RANGE, parts, self)])
        self.whereabouts = Whereabouts()
        self.replicas: list[Replica] = []
        self.greatest_threshold = ZERO  # of any key: garbage collection went no further anywhere
        self.applied_bytes = 0  # of commands, ever
        self._records: dict[bytes, TransactionRecord] = {}
        self._writers: dict[bytes, TransactionRecord] = {}  # those that may still write
        self._retiring: deque[tuple[int, bytes]] = deque()
        self._undurable: dict[Timestamp, int] = {}  # commits and their entries, in log order
        self._visible_index = 0
        self._recent_commits: deque[Timestamp] = deque()
        self._recent_commit_set: set[Timestamp] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._closed_because: str | None = None
        self._fail = fail
        self.log.on_durable(self._entries_durable)

    # What is seen, and when it may leave.

    @property
    def applied_index(self) -> int:
        return self.engine.applied_index

    @property
    def visible_index(self) -> int:
        return self._visible_index

    @property
    def durable_index(self) -> int:
        return self.log.durable_index

    @property
    def all_durable(self) -> bool:
        return not self._undurable

    def undurable(self, at: Timestamp) -> int | None:
        return self._undurable.get(at)

    async def released(self, index: int) -> None:
        # At start-up the engine may be ahead of the log: what it flushed is durable by that.
        if index <= self.log.last_index:
            await self.log.wait_durable(index)

    def release(self, index: int) -> Release | None:
        log = self.log
        if log.durable_index < index <= log.last_index:
            return partial(log.settle, index)
        return None

    def serve_alone(self, alone: bool) -> None:
        self.log.alone = alone

    def check_open(self) -> None:
        if self._closed_because is not None:
            raise StoreClosed(self._closed_because)

    def check_readable(self, where: Span | bytes, at: Timestamp) -> None:
        if at <= self.greatest_threshold:
            span = Span.point(where) if isinstance(where, bytes) else where
            threshold = self.gc_threshold_of(span)
            if at <= threshold:
                raise BatchTimestampBeforeGC(at, threshold)

    def gc_threshold_of(self, span: Span) -> Timestamp:
        """The greatest garbage-collection threshold of any key of the span."""
        overlapping = self.ranges.overlapping(span)
        return max((found.thresholds.over(span) for found in overlapping), default=ZERO)

    def point_read(self, key: bytes, at: Timestamp, reader: TransactionRecord | None) -> None:
        self.ranges.holding(key).load.note_read(key)
        if self._writers and self._matters(at, reader):
            self.timestamp_cache.add_point(key, at, NOBODY if reader is None else reader.id)

    def points_read(
        self, keys: Sequence[bytes], at: Timestamp, reader: TransactionRecord | None
    ) -> None:
        only = self.ranges.only
        if only is not None and keys:
            only.load.note_reads(keys[len(keys) // 2], len(keys))
        else:
            for key in keys:
                self.ranges.holding(key).load.note_read(key)
        if self._writers and self._matters(at, reader):
            own = NOBODY if reader is None else reader.id
            for key in keys:
                self.timestamp_cache.add_point(key, at, own)

    def span_read(self, span: Span, at: Timestamp, reader: TransactionRecord | None) -> None:
        self.ranges.holding(span.start).load.note_read(span.start)
        if self._writers and self._matters(at, reader):
            self.timestamp_cache.add_span(span, at, NOBODY if reader is None else reader.id)

    def _matters(self, at: Timestamp, reader: TransactionRecord | None) -> bool:
        # A transaction that begins after this step writes above everything ever drawn, and so
        # above this read; only those that run already can come below it.
        for writer in self._writers.values():
            if writer.write_timestamp <= at and writer is not reader:
                return True
        return False

    # Changes.

    def propose(
        self,
        operations: Sequence[LogicalOp],
        *,
        lowest: Timestamp | None = None,
        commit_called_ns: int = 0,
        provisional: bool = False,
    ) -> int:
        """Applies the command, then appends it: both, or neither.

        Raises ReplicaRefused for what is written in a replica, and does not come from its source.
        """
        only = self.ranges.only
        if only is not None:
            command = Command(only.id, self.closed.closed, list(operations))
            index, byte_count = self._write(command, lowest, provisional=provisional)
            only.note_entry(operations, byte_count)
            shares: tuple[PartOf, ...] = ((only, command, byte_count),)
        else:
            parts = divide(operations, self.ranges, self.whereabouts.of)
            if self.replicas:
                check_own_writes(parts)
            command = self._command(parts)
            index, byte_count = self._write(command, lowest, provisional=provisional)
            self.whereabouts.note(parts)
            shares = _shares(command, parts, byte_count)
            for found, part, share in shares:
                found.note_entry(part.ops, share)
        self.delivery.appended(index, shares, commit_called_ns=commit_called_ns)
        return index

    def propose_plain(self, operations: Sequence[EnginePut | EngineDelete]) -> int:
        """Proposes what is no concern of feeds: facts of the store's own."""
        command = Command(next(iter(self.ranges)).id, self.closed.closed, list(operations))
        index, _ = self._write(command, None)
        return index

    def propose_ending(self, operations: Sequence[LogicalOp], endings: tuple[Ending, ...]) -> int:
        """Proposes the entry with which ranges end. No feed is told of its operations."""
        command = Command(endings[0].range.id, self.closed.closed, list(operations))
        index, _ = self._write(command, None)
        self.delivery.appended(index, (), commit_called_ns=0, endings=endings)
        return index

    def replica_of(self, span: Span) -> Replica | None:
        """The replica that holds all keys of the span, if there is one."""
        return next((found for found in self.replicas if found.covers(span)), None)

    def closing_of(self, span: Span) -> Closing:
        """The closing of the timestamps of the span, which is that of a range."""
        return self.replica_of(span) or self.closed

    def raise_threshold(self, span: Span, threshold: Timestamp) -> int | None:
        """Raises the garbage-collection threshold of the keys of `span`, in every range.

        The index of the entry, or None when none was below. Reads of these keys at or below it fail
        from this step on.
        """
        raised: list[tuple[Range, Thresholds]] = []
        for found in self.ranges.overlapping(span):
            thresholds = found.thresholds.copy()
            if thresholds.raise_to(span, threshold):
                raised.append((found, thresholds))
        if not raised:
            return None
        index = self.propose_plain(
            [EnginePut(thresholds_key(found.id), made.encode()) for found, made in raised]
        )
        for found, made in raised:
            found.thresholds = made
        self.greatest_threshold = max(self.greatest_threshold, threshold)
        return index

    def _command(self, parts: Parts) -> Command:
        (first, operations), *others = parts.items()
        further = [Part(found.id, ops) for found, ops in others]
        return Command(first.id, self.closed.closed, operations, further)

    def _write(
        self, command: Command, lowest: Timestamp | None, *, provisional: bool = False
    ) -> tuple[int, int]:
        """The entry's index, and its length.

        The engine comes first because it alone may refuse at the last moment (EngineStall, a state
        that its own threads change), while whether the log takes the entry is known before. If the
        process dies in between, the engine has at most one command that the log lacks; nobody was
        told of it, and recovery begins above both.
        """
        self.check_open()
        payload = encode_command(command)
        self.log.check_append(payload)
        index = self.log.last_index + 1
        try:
            self.engine.write(engine_batch(command), applied_index=index)
        except EngineFailed as failed:
            # In a step of its own: whoever is told may not be told in the middle of this one.
            asyncio.get_running_loop().call_soon(self._fail, failed)
            raise StoreClosed(f"the store has failed: {failed}") from failed
        appended = self.log.append(payload, urgent=not provisional)
        assert appended == index, (appended, index)
        if not provisional:
            self._visible_index = index
        self.closed.entry_appended(index, lowest)
        self.applied_bytes += len(payload)
        charge(len(payload))
        return index, len(payload)

    def committed(self, at: Timestamp, index: int) -> None:
        recent = self._recent_commit_set
        assert at not in recent, f"two transactions committed at {at}"
        recent.add(at)
        self._undurable[at] = index
        self._recent_commits.append(at)
        if len(recent) > RECENT_COMMITS_MAX:
            recent.discard(self._recent_commits.popleft())

    # Transactions.

    def began(self, record: TransactionRecord) -> None:
        """An explicit transaction that may write begins in this step."""
        assert record.write_timestamp == self.clock.last, record
        self._records[record.id] = record
        self._writers[record.id] = record
        self.closed.touch(record.id, record.write_timestamp)

    def ended(self, record: TransactionRecord, index: int) -> None:
        assert record.status is not PENDING, record
        if self._writers.pop(record.id, None) is not None and not self._writers:
            self.timestamp_cache.clear()
        self.closed.release(record.id)
        self.whereabouts.forget(record.id)
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

    def holders_above(self, timestamp: Timestamp) -> Collection[TransactionRecord]:
        holders = self.locks.intents.holders
        return [holder for holder in holders if holder.write_timestamp > timestamp]

    def with_intents(self) -> list[bytes]:
        """The transactions that have unresolved intents."""
        return [record.id for record in self._records.values() if record.intents]

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

    # Ranges and feeds.

    def take_up(self, found: Sequence[Range]) -> None:
        """The ranges that the engine held at the start."""
        self.ranges = RangeMap(found)
        self.greatest_threshold = max(each.thresholds.greatest for each in found)

    def replace(self, old: Sequence[Range], new: Sequence[Range]) -> None:
        """Ranges were split or merged, in this step."""
        self.ranges.replace(old, new)
        for gone in old:
            gone.replaced = True
        self.whereabouts.replace(old, new)

    def register(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        """A feed of a span that one range holds, from `start_after` (exclusive)."""
        self.check_open()
        found = self.ranges.holding(span.start)
        if not found.span.covers(span):
            raise RangeFeedEnded(FeedEnd.RANGE_KEY_MISMATCH, f"{span} and {found.span}")
        return found.feeds.register(
            span, start_after, with_previous=with_previous, omitted_origins=omitted_origins
        )

    def feeds_changed(self, changed: Range) -> None:
        self.delivery.feeds_changed(changed)

    def _entries_durable(self, durable_index: int) -> None:
        self.closed.entries_durable(durable_index)
        for replica in self.replicas:
            replica.entries_durable(durable_index)
        self.delivery.entries_durable(durable_index)
        self._retire(durable_index)
        durable: list[Timestamp] = []
        for at, index in self._undurable.items():
            if index > durable_index:
                break
            durable.append(at)
        for at in durable:
            del self._undurable[at]

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
        self.delivery.stop()

    def check_invariants(self) -> None:
        """For tests, between any two steps: memory and engine agree."""
        self.locks.check_invariants()
        self.ranges.check_invariants()
        held = {key: intent.transaction_id for key, intent in intents_in(self.engine, ALL_KEYS)}
        known = {key: record.id for key, record in self.locks.intents.items()}
        assert held == known, (held, known)
        for record in self._writers.values():
            record.buffer.check_invariants()
            assert self.locks.locked(record.buffer.written, record) or not record.buffer, record
            assert record.read_timestamp <= record.write_timestamp, record
            assert record.write_timestamp <= self.clock.last, record
        if self.ranges.only is None:
            for key, record in self.locks.intents.items():
                assert self.ranges.holding(key) in self.whereabouts.of(record.id), (key, record)

    def __repr__(self) -> str:
        return (
            f"<RangeStore {self.ranges!r} applied={self.applied_index} "
            f"durable={self.durable_index} {self.locks!r}>"
        )


_VERDICTS: dict[TransactionStatus, PushVerdict] = {
    TransactionStatus.PENDING: PushVerdict.MOVED,
    TransactionStatus.COMMITTED: PushVerdict.COMMITTED,
    TransactionStatus.ABORTED: PushVerdict.ABORTED,
}


def _shares(command: Command, parts: Parts, byte_count: int) -> tuple[PartOf, ...]:
    """Each range's part as a command of its own, with its share of the entry's bytes."""
    if len(parts) == 1:
        return ((next(iter(parts)), command, byte_count),)
    counts = [1 + key_count(ops) for ops in parts.values()]
    whole = sum(counts)
    return tuple(
        (found, Command(found.id, command.closed, ops), max(1, byte_count * count // whole))
        for (found, ops), count in zip(parts.items(), counts, strict=True)
    )
