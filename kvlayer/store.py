"""The store: one log, one engine, one clock, and the ranges that share them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import TypeVar
from weakref import ref

from . import keys
from .clock import Clock, Timestamp
from .closed_timestamp import ClosedTimestamps
from .command import EnginePut
from .engine import Engine, EngineFailed, EngineStall
from .errors import ClockStopped, StoreClosed, StoreFull, TransactionState
from .files.disk import Disk
from .history import StoreHistory, StorePosition
from .log import RETAINED_BYTES_MAX, CommandLog, FailureListener
from .metrics import Metrics
from .mvcc import DeadBody
from .process.memory import share
from .process.offload import Offload
from .rangefeed import MemoryBudget, RangeFeed, ScanPace, SpanFeed, TickedFeed
from .ranges import (
    RangeInfo,
    RangeQueue,
    RangeStore,
    StoreParts,
    begin_incarnation,
    carry_out,
    change_role,
    collect_garbage,
    load_ranges,
    recover,
    replay,
)
from .ranges.descriptor import FIRST_RANGE, NEVER, descriptor_key, encode_descriptor
from .ranges.reshape import merge, split, unsplit
from .ranges.span_size import span_bytes
from .replication.replica import ReplicaOrder, ReplicaState, RoleChange
from .settings import Settings, declare_bytes
from .span import Span
from .span_config import SpanConfigs
from .transaction_modes import Isolation, Priority
from .txn import TransactionRecord
from .txn.heartbeat import Heartbeats
from .txn.immediate import ImmediateStore
from .txn.one_phase import Evaluation, Pending, submit
from .txn.snapshot import SnapshotReader, Version, sliced_versions
from .txn.steps import run_step
from .txn.transaction import Transaction

T = TypeVar("T")

FLUSH_BYTES = declare_bytes(
    "kv.engine.flush_bytes",
    share(32, at_most=64 * 1024 * 1024),
    "bytes of commands after which the engine is flushed and the log cut behind it",
)

CLOSE_PATIENCE_SECONDS = 10.0
"""How long `close` waits for intents to be resolved; the next start does what is left."""

STORE_ID_KEY = keys.LOCAL + b"store_id"


class Store:
    """Transactions over keys and values, and feeds of what they commit. The face of this layer.

    A store begins by recovery (`open`), and ends by `close` or by a failure of its log, after
    which every call raises StoreClosed with the reason: a store that cannot write must not answer
    from a state that nobody can make durable.

    Keys are `keyspace | rest` (see `keys`), and values bodies without the version header. The
    store takes over the log and the engine, and closes them.
    """

    def __init__(
        self, parts: StoreParts, store_id: str, history: StoreHistory, clock_lane: Offload
    ) -> None:
        self.id = store_id
        self._history = history
        self.log = parts.log
        self.engine = parts.engine
        self.clock = parts.clock
        self.settings = parts.settings
        self.metrics = parts.metrics
        self.random = parts.random
        self._ranges = RangeStore(parts, self.fail)
        self._immediate = ImmediateStore(self._ranges)
        self.span_configs = SpanConfigs(self)
        self._range_queue = RangeQueue(self._ranges, self.span_configs, self._ranges.background)
        self._heartbeats = Heartbeats(self._ranges, lambda: self._ranges.running)
        self._flush_lane = parts.offload.lane("flush")
        self._clock_lane = clock_lane
        self._flushed_bytes = 0
        self._flushing = False
        self._extending = False
        self._closed = False
        self._failure: BaseException | None = None
        self._failure_listeners: list[FailureListener] = []
        self.log.on_durable(self._maintain)

    @classmethod
    async def start(
        cls,
        *,
        disk: Disk,
        engine: Engine,
        clock: Clock,
        offload: Offload,
        settings: Settings,
        metrics: Metrics,
        random: Random,
    ) -> Store:
        """Recovers the log on `disk`, and then the store; a failing log closes it."""
        failures: list[BaseException] = []
        opened: list[Store] = []

        def failed(error: BaseException) -> None:
            failures.append(error)
            for store in opened:
                store.fail(error)

        log = await CommandLog.open(
            disk, offload, flushed_index=engine.applied_index, on_failure=failed
        )
        try:
            store = await cls.open(
                log=log,
                engine=engine,
                clock=clock,
                offload=offload,
                settings=settings,
                metrics=metrics,
                random=random,
            )
        except BaseException:
            await log.close()
            raise
        opened.append(store)
        for error in failures:
            store.fail(error)
        return store

    @classmethod
    async def open(
        cls,
        *,
        log: CommandLog,
        engine: Engine,
        clock: Clock,
        offload: Offload,
        settings: Settings,
        metrics: Metrics,
        random: Random,
    ) -> Store:
        """Brings the engine up to the log and ends what was under way. `start` opens the log too.

        Whoever opens the log itself hands its failure to `fail`.
        """
        clock.physical.obey(settings)
        clock.forward(await replay(log, engine))
        closed = ClosedTimestamps(clock, settings)
        closed.entries_durable(log.durable_index)
        parts = StoreParts(
            log=log,
            engine=engine,
            clock=clock,
            offload=offload,
            settings=settings,
            metrics=metrics,
            random=random,
            closed=closed,
            feed_memory=MemoryBudget(settings),
            scan_pace=ScanPace(settings),
        )
        found_id = engine.get(STORE_ID_KEY)
        if found_id is None:
            store_id = str(uuid.UUID(int=random.getrandbits(128), version=4))
        else:
            store_id = found_id.decode()
        store = cls(parts, store_id, StoreHistory.load(engine), offload.lane("clock"))
        if found_id is None:
            store._bootstrap()
        else:
            load_ranges(store._ranges)
        await begin_incarnation(store._ranges, store._history)
        await recover(store._ranges)
        clock.now()  # `clock.last` is when people read: it must not be the beginning of time
        await log.wait_durable(log.last_index)
        return store

    def _bootstrap(self) -> None:
        self._ranges.propose_plain(
            (
                EnginePut(STORE_ID_KEY, self.id.encode()),
                EnginePut(descriptor_key(FIRST_RANGE.id), encode_descriptor(FIRST_RANGE)),
            )
        )

    @property
    def position(self) -> StorePosition:
        """The released part of the log: see `access.StoreAccess`."""
        return StorePosition(incarnation=self._history.incarnation, index=self.log.durable_index)

    async def holds(self, position: StorePosition) -> bool:
        """Whether `position` lies in this store's past: see `access.StoreAccess`."""
        return self._history.holds(position)

    @property
    def immediate(self) -> ImmediateStore:
        """Reads and commits of one step: see `access.StoreAccess`."""
        return self._immediate

    async def now(self) -> Timestamp:
        """A timestamp drawn from the clock: see `access.StoreAccess`."""
        return self.clock.now()

    # Transactions.

    def begin(
        self,
        *,
        read_timestamp: Timestamp | None = None,
        read_only: bool = False,
        lock_timeout: float | None = None,
        isolation: Isolation = Isolation.SERIALIZABLE,
        priority: Priority = Priority.NORMAL,
    ) -> Transaction:
        """An explicit transaction. With a `read_timestamp` it reads as of then, and only reads."""
        host = self._ranges
        host.check_open()
        if read_timestamp is not None:
            self._check_past(read_timestamp)
            read_only = True
            isolation = Isolation.SERIALIZABLE  # what stands still is
            at = read_timestamp
        else:
            at = self.clock.now()
        transaction_id = self.random.randbytes(16)
        now = asyncio.get_running_loop().time()
        record = TransactionRecord(
            transaction_id, at, heartbeat_at=now, isolation=isolation, priority=priority
        )
        transaction = Transaction(host, record, read_only=read_only, lock_timeout=lock_timeout)
        if not read_only:
            host.began(record)
            record.held = ref(transaction)
            self._heartbeats.watch()
        return transaction

    async def one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> tuple[T, Timestamp]:
        """Runs `evaluate` in one step and commits what it wrote, at a timestamp drawn in that step.

        Returns its result and the commit timestamp once that is durable. It may be run again after
        waiting for a lock. What it raises passes through, and then nothing is written.
        """
        pending = await submit(
            self._ranges,
            evaluate,
            deadline=deadline,
            commit_called_ns=commit_called_ns,
            lock_timeout=lock_timeout,
        )
        return await pending.wait()

    async def submit_one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> Pending[T]:
        """As `one_phase`, but returns when the transaction is applied: `wait` for it later.

        So a bulk load evaluates its next transaction while the log syncs this one. The caller
        bounds how many are pending.
        """
        return await submit(
            self._ranges,
            evaluate,
            deadline=deadline,
            commit_called_ns=commit_called_ns,
            lock_timeout=lock_timeout,
        )

    # Reads at a timestamp, and feeds.

    def snapshot(self, at: Timestamp, *, lock_timeout: float | None = None) -> SnapshotReader:
        """Reads as of `at`, for long scans. They raise BatchTimestampBeforeGC when versions of
        what they read may be gone."""
        self._ranges.check_open()
        self._check_past(at)
        return SnapshotReader(self._ranges, at, lock_timeout=lock_timeout)

    def versions(
        self, span: Span, after: Timestamp, upto: Timestamp
    ) -> AsyncGenerator[list[Version], None]:
        """Every version of the span in `(after, upto]`, in slices of (key, timestamp, body or
        None), per key from oldest to newest. Costs what was written, not what is stored."""
        self._check_past(upto)
        return sliced_versions(self._ranges, span, after, upto)

    def range_feed(
        self,
        span: Span,
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RangeFeed:
        """A feed of a span that one range holds, from `start_after` (exclusive).

        Raises RangeFeedEnded when no one range holds it.
        Values first written on one of the stores in `omitted_origins` are left out.
        """
        return self._ranges.register(
            span, start_after, with_previous=with_previous, omitted_origins=omitted_origins
        )

    def span_feed(
        self,
        spans: Iterable[Span],
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> SpanFeed:
        """A feed of any spans from `start_after` (exclusive). Never raises what can be retried.

        For a checkpoint alone its consumer is woken each `checkpoint_seconds` at most. Values first
        written on one of the stores in `omitted_origins` are left out.
        """
        return self.span_feed_from(
            [(span, start_after) for span in spans],
            with_previous=with_previous,
            checkpoint_seconds=checkpoint_seconds,
            omitted_origins=omitted_origins,
        )

    def span_feed_from(
        self,
        starts: Iterable[tuple[Span, Timestamp]],
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> SpanFeed:
        """As `span_feed`, each span from its own timestamp: a frontier's entries, for instance."""
        return SpanFeed(
            self,
            starts,
            with_previous=with_previous,
            checkpoint_seconds=checkpoint_seconds,
            omitted_origins=omitted_origins,
        )

    def divide(self, span: Span) -> Sequence[Span]:
        """`span` cut at the borders of ranges, in key order."""
        return self._ranges.ranges.divide(span)

    def gather(self, feed: TickedFeed) -> None:
        """A span feed asks to be told of closings once for all ranges (see `RangeRouter`)."""
        self._ranges.delivery.gather(feed)

    def release(self, feed: TickedFeed) -> None:
        """The span feed is closed."""
        self._ranges.delivery.release(feed)

    # Ranges.

    def ranges(self, span: Span = keys.ALL_KEYS) -> list[RangeInfo]:
        """The ranges that hold a key of the span, in key order, as they stand in this step."""
        return [RangeInfo.of(found) for found in self._ranges.ranges.overlapping(span)]

    async def span_bytes(self, span: Span) -> int | None:
        """The estimated bytes of the versions of the span; None where that is not known."""
        return await span_bytes(self._ranges, span)

    async def split(self, key: bytes, *, sticky_until: Timestamp = NEVER) -> None:
        """Makes `key` the first of a range. It stays so at least until `sticky_until`.

        Splitting where a range begins only makes that border stay longer. Raises RangeRefused.
        """
        await self._reshape(lambda: split(self._ranges, key, sticky_until))

    async def unsplit(self, key: bytes) -> None:
        """The border that `split` made at `key` may be merged away again. Raises RangeRefused."""
        await self._reshape(lambda: unsplit(self._ranges, key))
        self._range_queue.wake()

    async def merge(self, range_id: int) -> None:
        """Joins a range with the one behind it, sticky or not. Raises RangeRefused."""
        await self._reshape(lambda: merge(self._ranges, range_id))

    async def _reshape(self, change: Callable[[], int]) -> None:
        """Runs a split or a merge in a step, and waits until it is durable."""
        index = await run_step(self._ranges, lambda _: change(), waiter=None, lock_timeout=None)
        await self._ranges.released(index)

    async def replica(self, span: Span, order: ReplicaOrder) -> ReplicaState | None:
        """Does what is asked of the replica that is `span`: see `access.StoreAccess`."""
        if isinstance(order, RoleChange):
            return await change_role(self._ranges, span, order)
        return await carry_out(self._ranges, span, order)

    def replicas(self) -> list[tuple[Span, ReplicaState]]:
        """The replicas that are or were, as they stand in this step."""
        return [(found.span, found.state) for found in self._ranges.replicas]

    # Garbage.

    @property
    def gc_threshold(self) -> Timestamp:
        """Above it, every key can be read: garbage collection went no further anywhere."""
        return self._ranges.greatest_threshold

    def gc_threshold_of(self, span: Span) -> Timestamp:
        """At or below it, versions of the span's keys may be gone, and a read of them fails."""
        return self._ranges.gc_threshold_of(span)

    async def gc_threshold_over(self, spans: Sequence[Span]) -> Timestamp:
        """The greatest of `gc_threshold_of`: see `StoreAccess`."""
        return max(map(self.gc_threshold_of, spans))

    async def collect_garbage(
        self,
        span: Span,
        threshold: Timestamp,
        *,
        dead_at: Callable[[Timestamp, Timestamp], DeadBody] | None = None,
    ) -> int:
        """Removes versions of the span that no reader above `threshold` can see; says how many.

        The span's threshold rises to `threshold`, or to just below what is protected in it. Of
        which bodies there `dead_at(threshold, now)` holds count as deletions.
        """
        self._check_past(threshold)
        return await collect_garbage(self._ranges, span, threshold, dead_at)

    # Health and the end.

    @property
    def closed_timestamps(self) -> ClosedTimestamps:
        return self._ranges.closed

    def check_open(self) -> None:
        """Raises StoreClosed, with the reason, once the store has ended."""
        self._ranges.check_open()

    def fail(self, error: BaseException) -> None:
        """Log or engine can write no more: closes the store at once, for that reason."""
        if self._failure is not None:
            return
        self._failure = error
        self.metrics.add("kv_store_failures_total")
        self._ranges.shut(f"the store has failed: {error}")
        self._heartbeats.stop()
        self._range_queue.stop()
        for listener in self._failure_listeners:
            listener(error)

    def on_failure(self, listener: FailureListener) -> None:
        """Calls `listener` when the store fails; at once where it has."""
        self._failure_listeners.append(listener)
        if self._failure is not None:
            listener(self._failure)

    async def close(self) -> None:
        """Ends running transactions, feeds, log and engine. Closing twice is closing once."""
        if self._closed:
            return
        self._closed = True
        self._heartbeats.stop()
        self._range_queue.stop()
        self._ranges.abort_running("the store is closing")
        await self._ranges.drain(CLOSE_PATIENCE_SECONDS)
        with suppress(EngineStall, StoreFull, StoreClosed):
            await self._range_queue.save_sizes()
        self._ranges.shut("the store is closed")
        await self._ranges.drain(None)
        await self.log.close()
        await self._flush_lane.run(self.engine.close)
        self.clock.close()

    def check_invariants(self) -> None:
        """For tests, between any two steps."""
        self._ranges.check_invariants()

    def _check_past(self, at: Timestamp) -> None:
        """A read above the clock would have to make every later write wait for its turn."""
        if at > self.clock.last and at > self.clock.now():
            raise TransactionState(f"timestamp {at} is in the future")

    def _maintain(self, durable_index: int) -> None:
        """Now and then: flushes the engine, cuts the log, and extends the clock's bound."""
        self.clock.physical.report(self.metrics)
        self.metrics.put("kv_clock_stands", float(self.clock.stands))
        if self.clock.bound_due and not self._extending and not self._closed:
            self._extending = True
            self._ranges.background(self._extend_clock())
        self._range_queue.wake()
        if self._flushing or self._closed:
            return
        if self._ranges.applied_bytes - self._flushed_bytes >= self.settings.get(FLUSH_BYTES):
            self._flushing = True
            self._ranges.background(self._flush())

    async def _extend_clock(self) -> None:
        try:
            await self._clock_lane.run(self.clock.extend)
        except ClockStopped:
            # Nobody needs the bound yet. Whoever does tries again, and so does this.
            self.metrics.add("kv_clock_bound_failures_total")
        finally:
            self._extending = False

    async def _flush(self) -> None:
        flushed_bytes, self._flushed_bytes = self._flushed_bytes, self._ranges.applied_bytes
        try:
            await self._flush_lane.run(self.engine.flush)
            # The engine may have flushed what is not durable in the log yet.
            await self.log.truncate(
                min(self.engine.flushed_index, self.log.durable_index),
                retained_bytes_max=self.settings.get(RETAINED_BYTES_MAX),
            )
        except StoreClosed:
            pass
        except StoreFull:
            self._flushed_bytes = flushed_bytes  # tried again behind the next entry
        except EngineFailed as failed:
            self.fail(failed)
        finally:
            self._flushing = False

    def __repr__(self) -> str:
        return f"<Store {self.id} {self._ranges!r}>"
