"""The interface of a store to the layers above, whether it is in this process or behind a
connection.

`Store` has this face, and so has `remote.RemoteStore`, with which a node reaches the store of
another process. Where the two differ in cost, the face is made for the dearer one: what needs an
answer of the store is awaited (`now`, `started`), and what is not awaited is known here already
(`clock.last`, `gc_threshold`).

    now()           a timestamp drawn from the store's clock, greater than all drawn before it
    clock.last      the greatest that this process has heard of: at or below any `now()` to come

HAZARD: an `Evaluation` is run in the committing step where the store is near, and before it where
the store is far: then the store checks in its step that what was read still stands. So its
`timestamp` may lie below the one at which it commits. What must hold *at the commit* is asked by
`before(limit)`, whose answer the store checks as well.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from random import Random
from typing import Any, Protocol, TypeVar

from .clock import Timestamp, WallClock
from .errors import StoreClosed, WriteConflict
from .events import Event
from .frontier import Frontier
from .history import StorePosition
from .metrics import Metrics
from .replication.replica import ReplicaOrder, ReplicaState
from .savepoint import Savepoint
from .settings import Settings
from .span import Span
from .transaction_modes import Isolation, LockMode, Priority, WhenLocked

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Row = tuple[bytes, bytes]
Change = tuple[bytes, bytes | None]
Version = tuple[bytes, Timestamp, bytes | None]


class ClockReading(Protocol):
    """The store's clock, as far as it can be read without asking for a draw."""

    @property
    def wall(self) -> WallClock:
        """This machine's clock: for stage times, never for ordering."""
        ...

    @property
    def last(self) -> Timestamp:
        """The greatest timestamp heard of. It never goes back."""
        ...


class Evaluation(Protocol):
    """The reads and writes of a one-phase transaction while it is evaluated; see
    `Store.one_phase`."""

    @property
    def timestamp(self) -> Timestamp:
        """Drawn for this evaluation: at or below the one at which it commits."""
        ...

    def before(self, limit: Timestamp) -> bool:
        """Whether the transaction commits below `limit`. What it answers holds at the commit."""
        ...

    def get(self, key: bytes) -> bytes | None: ...
    def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the result of `get` for each of the keys."""
        ...

    def scan(
        self, span: Span, *, limit: int | None = None, bytes_max: int | None = None
    ) -> list[Row]: ...
    def first_existing(self, keys: Sequence[bytes]) -> int | None: ...
    def put(
        self, keys: Sequence[bytes], bodies: Sequence[bytes], *, omit_from_feeds: bool = False
    ) -> None: ...
    def delete(self, keys: Sequence[bytes], *, omit_from_feeds: bool = False) -> None: ...
    def delete_range(self, span: Span, *, omit_from_feeds: bool = False) -> None: ...


class Pending(Protocol[T_co]):
    """A one-phase transaction that is applied and may not be durable yet."""

    async def wait(self) -> tuple[T_co, Timestamp]: ...


class Transaction(Protocol):
    """An explicit transaction; see `txn.transaction.Transaction` for what each call promises."""

    @property
    def id(self) -> bytes: ...

    @property
    def read_timestamp(self) -> Timestamp:
        """To be asked only behind `started()`, or any other awaited call."""
        ...

    @property
    def write_timestamp(self) -> Timestamp: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def isolation(self) -> Isolation: ...
    @property
    def priority(self) -> Priority: ...
    @property
    def untouched(self) -> bool: ...

    lock_timeout: float | None
    """Seconds that each wait may take; None for the store's setting."""

    @property
    def write_count(self) -> int: ...
    @property
    def commit_checks(self) -> list[Callable[[], None]]: ...

    def check_running(self) -> None:
        """Raises KVError once it has ended, as far as that is known without asking."""
        ...

    async def started(self) -> None:
        """Returns when the read timestamp is drawn."""
        ...

    async def get(self, key: bytes, *, for_update: bool = False) -> bytes | None: ...
    async def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the result of `get` for each of the keys."""
        ...

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None: ...
    async def first_existing(self, keys: Sequence[bytes]) -> int | None:
        """The index of one of the keys that has a live value, or None."""
        ...

    async def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[Row]: ...
    def scan_slices(
        self, span: Span, *, when_locked: WhenLocked = WhenLocked.WAIT
    ) -> AsyncGenerator[list[Row], None]: ...
    def changed_slices(self, span: Span, after: Timestamp) -> AsyncGenerator[list[Change], None]:
        """Yields the changes that turn the span's rows as of `after` into those that the
        transaction sees now.

        Later changes of a key replace earlier ones. Raises BatchTimestampBeforeGC.
        """
        ...

    async def lock(
        self,
        keys: Sequence[bytes],
        *,
        mode: LockMode = LockMode.EXCLUSIVE,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[bytes]: ...
    async def unlock(
        self, keys: Sequence[bytes], *, mode: LockMode = LockMode.EXCLUSIVE
    ) -> None: ...
    async def insert(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> bool:
        """Does what `lock`, `get` and `put` do together, where none of the keys has a value and
        nobody is in the way. Returns False otherwise, having done nothing: they say what it is."""
        ...

    async def put(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None: ...
    async def delete(self, keys: Sequence[bytes]) -> None: ...
    def track_read(self, span: Span) -> None: ...
    def tracking(self, enabled: bool) -> AbstractContextManager[None]: ...
    async def begin_statement(self) -> None: ...
    async def look_again(self, savepoint: Savepoint, conflict: WriteConflict) -> Savepoint: ...
    async def savepoint(self) -> Savepoint: ...
    async def release(self, savepoint: Savepoint) -> None: ...
    async def rollback_to(self, savepoint: Savepoint) -> None: ...
    async def commit(
        self, *, deadline: Callable[[], Timestamp] | None = None, commit_called_ns: int = 0
    ) -> Timestamp: ...
    async def rollback(self) -> None: ...


class Snapshot(Protocol):
    """The store as of one timestamp."""

    async def get(self, key: bytes) -> bytes | None: ...
    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None: ...
    def scan_slices(self, span: Span) -> AsyncGenerator[list[Row], None]: ...
    async def scan(self, span: Span) -> list[Row]: ...


class Feed(Protocol):
    """The events of some spans, as `events` promises them."""

    @property
    def frontier(self) -> Frontier:
        """The resolved timestamps of the spans, by the events that were handed out. Read it
        only."""
        ...

    @property
    def behind(self) -> bool:
        """Whether the feed still reads versions that were committed before it was live."""
        ...

    async def next(self) -> list[Event]: ...

    def space_checkpoints(self, seconds: float) -> None:
        """From here on `next` returns for checkpoints alone only so often; zero: for each."""
        ...

    def close(self) -> None: ...


Release = Callable[[Callable[[StoreClosed | None], None]], None]
"""Calls what it is given in the step of the loop in which something is durable, with None, or with
the reason why it may never be. That may be this step: nothing is to stand behind the call in it."""


class Commit(Protocol[T_co]):
    """A commit that is applied. Nobody may be told of it before it is released; where `release` is
    None, it is durable already."""

    @property
    def result(self) -> T_co: ...
    @property
    def timestamp(self) -> Timestamp: ...
    @property
    def release(self) -> Release | None: ...


class Immediate(Protocol):
    """Reads and commits of a store of this process, in the step of the loop that asks.

    Every call raises TakesWaiting, having done nothing, where something is in the way: a lock, a
    version that is not durable, an engine that stalls. See `txn.immediate`.
    """

    def heard(self, client: int) -> None:
        """A client of this process has sent something, by a number that is its own."""
        ...

    def now(self) -> Timestamp:
        """A timestamp drawn from the store's clock."""
        ...

    def get(self, key: bytes, at: Timestamp) -> bytes | None:
        """The body of a key's live value at `at`, which was drawn in this step."""
        ...

    def commit(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        at: Timestamp,
        deadline: Callable[[], Timestamp],
        commit_called_ns: int,
    ) -> Commit[T]:
        """As `StoreAccess.one_phase`, at a timestamp that was drawn in this step. What `evaluate`
        raises is TakesWaiting, too."""
        ...

    def write(self, transaction: Transaction, work: Coroutine[Any, Any, T]) -> T:
        """The result of a write of the transaction that is one step."""
        ...

    def commit_transaction(
        self, transaction: Transaction, *, deadline: Callable[[], Timestamp], commit_called_ns: int
    ) -> Commit[None]:
        """As `Transaction.commit`. It stays open where it takes waiting."""
        ...


class StoreAccess(Protocol):
    """A store, wherever it is."""

    @property
    def immediate(self) -> Immediate | None:
        """Reads and commits of one step; None for a store of another process."""
        ...

    @property
    def id(self) -> str: ...
    @property
    def clock(self) -> ClockReading: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def random(self) -> Random: ...

    @property
    def gc_threshold(self) -> Timestamp:
        """At or below it, versions may be gone. Current as of the last awaited call."""
        ...

    async def gc_threshold_over(self, spans: Sequence[Span]) -> Timestamp:
        """As `gc_threshold`, of the keys of these spans alone. It is asked of the store."""
        ...

    def check_open(self) -> None:
        """Raises StoreClosed, with the reason, once nothing can be asked any more."""
        ...

    async def now(self) -> Timestamp: ...

    @property
    def position(self) -> StorePosition:
        """At or above everything of the log that this process has been given."""
        ...

    async def holds(self, position: StorePosition) -> bool:
        """Whether everything up to `position` is in the store's log: False for what was seen of a
        store that was put back from an older copy since, or of another copy of it."""
        ...

    async def replica(self, span: Span, order: ReplicaOrder) -> ReplicaState | None:
        """Does what is asked of the replica that is `span` (see `replica`), durably, and says where
        it stands then; None where there is no replica to look at or to end.

        Raises ReplicaRefused, KeyTooLarge.
        """
        ...

    def begin(
        self,
        *,
        read_timestamp: Timestamp | None = None,
        read_only: bool = False,
        lock_timeout: float | None = None,
        isolation: Isolation = Isolation.SERIALIZABLE,
        priority: Priority = Priority.NORMAL,
    ) -> Transaction: ...

    async def one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> tuple[T, Timestamp]: ...

    async def submit_one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> Pending[T]: ...

    def snapshot(self, at: Timestamp, *, lock_timeout: float | None = None) -> Snapshot: ...

    def versions(
        self, span: Span, after: Timestamp, upto: Timestamp
    ) -> AsyncGenerator[list[Version], None]: ...

    def span_feed(
        self,
        spans: Iterable[Span],
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> Feed: ...

    def span_feed_from(
        self,
        starts: Iterable[tuple[Span, Timestamp]],
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> Feed: ...


@asynccontextmanager
async def committed(store: StoreAccess) -> AsyncIterator[Transaction]:
    """A transaction that commits behind the block, and is rolled back where either fails."""
    transaction = store.begin()
    try:
        yield transaction
        await transaction.commit()
    except BaseException:
        await transaction.rollback()
        raise
