"""A store that another process serves, with the face of one that is here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from random import Random
from typing import Generic, TypeVar

from ..access import Evaluation, Version
from ..clock import Timestamp, WallClock
from ..errors import StoreUnreachable
from ..history import StorePosition
from ..metrics import Metrics
from ..replication.replica import ReplicaOrder, ReplicaState
from ..settings import Settings
from ..span import Span
from ..transaction_modes import Isolation, Priority
from .channel import Channel
from .connection import Connection, ConnectionListener, RemoteClock
from .evaluation import run_one_phase
from .feed import RemoteFeed
from .messages import NOTHING, Holds, Now, OfReplica, Raw, Threshold, decode, wire
from .snapshot import RemoteSnapshot, remote_versions
from .transaction import RemoteTransaction

T = TypeVar("T")


class RemotePending(Generic[T]):
    """A one-phase transaction that is durable already: its answer came with that."""

    __slots__ = ("_outcome",)

    def __init__(self, outcome: tuple[T, Timestamp]) -> None:
        self._outcome = outcome

    async def wait(self) -> tuple[T, Timestamp]:
        return self._outcome


class RemoteStore:
    """Implements `access.StoreAccess` over a channel. Made by `connect`, ended by `close`.

    Settings and metrics are this node's own; whoever assembles the node keeps the settings as the
    store has them.
    """

    def __init__(
        self, connection: Connection, *, settings: Settings, metrics: Metrics, random: Random
    ) -> None:
        self._connection = connection
        self.settings = settings
        self.metrics = metrics
        self.random = random

    @classmethod
    async def connect(
        cls,
        channel: Channel,
        wall: WallClock,
        *,
        settings: Settings,
        metrics: Metrics,
        random: Random,
    ) -> RemoteStore:
        """Raises StoreUnreachable, and StoreClosed where the server refuses."""
        connection = Connection(channel, wall, metrics)
        await connection.start()
        return cls(connection, settings=settings, metrics=metrics, random=random)

    @property
    def id(self) -> str:
        return self._connection.store_id

    @property
    def clock(self) -> RemoteClock:
        return self._connection.clock

    @property
    def immediate(self) -> None:
        return None

    @property
    def gc_threshold(self) -> Timestamp:
        return self._connection.gc_threshold

    async def gc_threshold_over(self, spans: Sequence[Span]) -> Timestamp:
        # Answers bear one threshold: that of the keys which were collected furthest.
        question = Threshold(await self._connection.ready(), [wire(span) for span in spans])
        return await self._connection.read("threshold", question, Timestamp)

    def check_open(self) -> None:
        """Raises StoreUnreachable also while the connection is lost."""
        self._connection.check_open()
        if not self._connection.connected:
            raise StoreUnreachable("the store does not answer")

    def on_connection(self, listener: ConnectionListener) -> None:
        """Calls `listener` when the connection is lost, when there is another, and when the store
        refuses any other."""
        self._connection.on_change(listener)

    async def now(self) -> Timestamp:
        question = Now(await self._connection.ready())
        return await self._connection.read("now", question, Timestamp)

    @property
    def position(self) -> StorePosition:
        return self._connection.position

    async def holds(self, position: StorePosition) -> bool:
        question = Holds(await self._connection.ready(), position)
        return await self._connection.read("holds", question, bool)

    async def replica(self, span: Span, order: ReplicaOrder) -> ReplicaState | None:
        question = OfReplica(await self._connection.ready(), wire(span), order)
        state = await self._connection.read("replica", question, Raw)
        return None if bytes(state) == NOTHING else decode(state, ReplicaState)

    def begin(
        self,
        *,
        read_timestamp: Timestamp | None = None,
        read_only: bool = False,
        lock_timeout: float | None = None,
        isolation: Isolation = Isolation.SERIALIZABLE,
        priority: Priority = Priority.NORMAL,
    ) -> RemoteTransaction:
        return RemoteTransaction(
            self._connection,
            read_timestamp=read_timestamp,
            read_only=read_only,
            lock_timeout=lock_timeout,
            isolation=isolation,
            priority=priority,
        )

    async def one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> tuple[T, Timestamp]:
        return await run_one_phase(
            self._connection,
            evaluate,
            deadline=deadline,
            commit_called_ns=commit_called_ns,
            lock_timeout=lock_timeout,
        )

    async def submit_one_phase(
        self,
        evaluate: Callable[[Evaluation], T],
        *,
        deadline: Callable[[], Timestamp] | None = None,
        commit_called_ns: int = 0,
        lock_timeout: float | None = None,
    ) -> RemotePending[T]:
        """Waits until it is durable: the next transaction may rest on this one's outcome."""
        return RemotePending(
            await self.one_phase(
                evaluate,
                deadline=deadline,
                commit_called_ns=commit_called_ns,
                lock_timeout=lock_timeout,
            )
        )

    def snapshot(self, at: Timestamp, *, lock_timeout: float | None = None) -> RemoteSnapshot:
        return RemoteSnapshot(self._connection, at, lock_timeout=lock_timeout)

    def versions(
        self, span: Span, after: Timestamp, upto: Timestamp
    ) -> AsyncGenerator[list[Version], None]:
        return remote_versions(self._connection, span, after, upto)

    def span_feed(
        self,
        spans: Iterable[Span],
        start_after: Timestamp,
        *,
        with_previous: bool = False,
        checkpoint_seconds: float = 0.0,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> RemoteFeed:
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
    ) -> RemoteFeed:
        return RemoteFeed(
            self._connection,
            starts,
            with_previous=with_previous,
            checkpoint_seconds=checkpoint_seconds,
            omitted_origins=omitted_origins,
        )

    async def close(self) -> None:
        await self._connection.close()

    def __repr__(self) -> str:
        state = "connected" if self._connection.connected else "not connected"
        return f"<RemoteStore {self.id} {state}>"
