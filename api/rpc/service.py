"""The store's service: carries out the messages of `kvlayer.remote`, whatever brings them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec

from ...kvlayer.access import Evaluation, StoreAccess
from ...kvlayer.clock import MAX_TIMESTAMP, Timestamp
from ...kvlayer.errors import KVError, TransactionAborted
from ...kvlayer.events import ValueBatch
from ...kvlayer.keys import RAW_KIND
from ...kvlayer.remote import messages
from ...kvlayer.remote.evaluation import digest
from ...kvlayer.remote.failures import failure_of
from ...kvlayer.remote.feed import sent_of, together
from ...kvlayer.remote.messages import (
    PROTOCOL,
    Answer,
    Message,
    Read,
    Reply,
    encode,
)
from ...kvlayer.span import Span
from ...kvlayer.transaction_modes import Isolation, Priority, WhenLocked
from .connections import Connections, NodeConnection
from .operations import operate

FEED_SPACING_SECONDS = 0.005
"""Between two messages of a feed. A message costs the node's loop 0.3 ms beside its rows, and the
store's half of that: of commits that follow one another closely the node is told together, and of
a lone one at once."""

RAW_FEED_SPACING_SECONDS = 0.02
RAW_FEED_SPACING_SECONDS_MAX = 0.1
"""Of a feed of raw keyspaces, whose commits are many and small. Who follows from another process
mostly sends on over a link that takes longer. Where there are more than 2,000 rows a second, what a
message costs beside its rows is a part of every commit's latency, and messages are fewer."""

RAW_FEED_ROW_SECONDS = 0.0005
"""For how long a row of one message holds the next one back, within these bounds."""

SPACED_ROWS_MAX = 250
"""A message of more rows of tables costs what its rows cost, and the next one waits for nothing.
Nor does one of a feed that catches up: it is told of a backlog as fast as that is read."""

_NONE = encode(None)

M = TypeVar("M")


class NodeTurnedAway(Exception):
    """A node of another release, or of a history of the store that was lost."""


class MessageUnreadable(Exception):
    """A message that is none of its method's: nodes of one release send none."""


class StoreService:
    """Serves one store. `call` and `stream` take a method's name and a message."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._connections = Connections(store)
        self._calls: dict[str, Callable[[bytes], Awaitable[bytes]]] = {
            "heartbeat": self._heartbeat,
            "now": self._now,
            "holds": self._holds,
            "threshold": self._threshold,
            "replica": self._replica,
            "evaluate": self._evaluate,
            "one_phase": self._one_phase,
            "begin": self._begin,
            "transaction": self._transaction,
            "point": self._point,
        }
        self._streams: dict[str, Callable[[bytes], AsyncGenerator[bytes, None]]] = {
            "session": self._session,
            "scan": self._scan,
            "versions": self._versions,
            "feed": self._feed,
        }

    @property
    def calls(self) -> Sequence[str]:
        return tuple(self._calls)

    @property
    def streams(self) -> Sequence[str]:
        return tuple(self._streams)

    def start(self) -> None:
        self._connections.start()

    async def close(self) -> None:
        """Ends every connection."""
        await self._connections.close()

    async def call(self, method: str, body: bytes) -> bytes:
        """One answer; an error of the KV layer is an answer too."""
        try:
            return self._reply(await self._calls[method](body))
        except KVError as error:
            return self._failed(error)

    async def stream(self, method: str, body: bytes) -> AsyncGenerator[bytes, None]:
        """The answers; an error of the KV layer is the last of them."""
        try:
            async with aclosing(self._streams[method](body)) as answers:
                async for answer in answers:
                    yield self._reply(answer)
        except KVError as error:
            yield self._failed(error)

    def _reply(self, body: bytes) -> bytes:
        return encode(self._message(body))

    def _failed(self, error: KVError) -> bytes:
        return encode(self._message(_NONE, failure_of(error)))

    def _message(self, body: bytes, failure: messages.Failure | None = None) -> Reply:
        store = self._store
        threshold, index = store.gc_threshold, store.position.index
        return Reply(store.clock.last, threshold, index, messages.Raw(body), failure)

    def _connection(self, number: int) -> NodeConnection:
        connection = self._connections.find(number)
        if connection is None:
            raise TransactionAborted("the node's connection has ended: it must connect again")
        return connection

    # The connection

    async def _session(self, body: bytes) -> AsyncGenerator[bytes, None]:
        """The life of a connection: it ends when the node closes the stream, or falls silent."""
        hello = _decoded(body, messages.Hello)
        if hello.protocol != PROTOCOL:
            raise NodeTurnedAway(
                f"the store speaks protocol {PROTOCOL}, the node {hello.protocol}: "
                "run the same version of tailrace on both"
            )
        if hello.seen is not None and not await self._store.holds(hello.seen):
            raise NodeTurnedAway(
                "the store was put back from an older copy since this node joined it: "
                "start the node again"
            )
        connection = self._connections.begin()
        incarnation = self._store.position.incarnation
        try:
            yield encode(messages.Welcome(self._store.id, connection.number, incarnation))
            await connection.ended.wait()
        finally:
            await self._connections.end(connection)

    async def _heartbeat(self, body: bytes) -> bytes:
        self._connection(_decoded(body, messages.Heartbeat).connection)
        return _NONE

    async def _now(self, body: bytes) -> bytes:
        self._connection(_decoded(body, messages.Now).connection)
        return encode(await self._store.now())

    async def _holds(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.Holds)
        self._connection(asked.connection)
        return encode(await self._store.holds(asked.position))

    async def _threshold(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.Threshold)
        self._connection(asked.connection)
        return encode(await self._store.gc_threshold_over(messages.spans_of(asked.spans)))

    async def _replica(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.OfReplica)
        self._connection(asked.connection)
        return encode(await self._store.replica(Span(*asked.span), asked.order))

    # One-phase transactions

    async def _evaluate(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.Evaluate)
        self._connection(asked.connection)

        def evaluate(evaluation: Evaluation) -> messages.Evaluated:
            return _answers(evaluation, asked.reads)

        found, _ = await self._store.one_phase(evaluate, lock_timeout=asked.lock_timeout)
        return encode(found)

    async def _one_phase(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.OnePhase)
        self._connection(asked.connection)

        def evaluate(evaluation: Evaluation) -> messages.Evaluated | None:
            found = _answers(evaluation, asked.reads)
            changed = [digest(answer) for answer in found.answers] != asked.seen
            late = asked.before is not None and not evaluation.before(asked.before)
            if changed or late:
                return found
            _write(evaluation, asked)
            return None

        deadline = MAX_TIMESTAMP if asked.deadline is None else asked.deadline
        refused, at = await self._store.one_phase(
            evaluate,
            deadline=lambda: deadline,
            commit_called_ns=asked.commit_called_ns,
            lock_timeout=asked.lock_timeout,
        )
        return encode(messages.Committed(at) if refused is None else refused)

    # Transactions

    async def _begin(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.Begin)
        connection = self._connection(asked.connection)
        transaction = self._store.begin(
            read_timestamp=asked.read_timestamp,
            read_only=asked.read_only,
            lock_timeout=asked.lock_timeout,
            isolation=Isolation(asked.isolation),
            priority=Priority(asked.priority),
        )
        await transaction.started()
        served = connection.add(transaction)
        return encode(state_of(served.handle, transaction))

    async def _transaction(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.Operate)
        connection = self._connection(asked.connection)
        served = connection.find(asked.handle)
        transaction = served.transaction
        transaction.lock_timeout = asked.lock_timeout
        last = isinstance(asked.operation, messages.Commit | messages.Rollback)
        try:
            with transaction.tracking(True):
                for span in asked.tracked:
                    transaction.track_read(Span(*span))
            with transaction.tracking(asked.tracking):
                result = await operate(served, asked.operation)
        finally:
            if last:
                connection.forget(asked.handle)
        state = state_of(asked.handle, transaction)
        return encode(messages.Operated(state, messages.Raw(encode(result))))

    # Reads at a timestamp, and feeds

    async def _scan(self, body: bytes) -> AsyncGenerator[bytes, None]:
        asked = _decoded(body, messages.ScanSlices)
        connection = self._connection(asked.connection)
        span = Span(*asked.span)
        slices: AsyncGenerator[list[Any], None]
        if asked.handle is None:
            assert asked.at is not None, asked
            slices = self._store.snapshot(asked.at, lock_timeout=asked.lock_timeout).scan_slices(
                span
            )
        else:
            transaction = connection.find(asked.handle).transaction
            transaction.lock_timeout = asked.lock_timeout
            when_locked = WhenLocked(asked.when_locked)
            slices = (
                transaction.scan_slices(span, when_locked=when_locked)
                if asked.after is None
                else transaction.changed_slices(span, asked.after)
            )
            with transaction.tracking(asked.tracking):
                async for encoded in _encoded(slices):
                    yield encoded
            return
        async for encoded in _encoded(slices):
            yield encoded

    async def _point(self, body: bytes) -> bytes:
        asked = _decoded(body, messages.PointRead)
        self._connection(asked.connection)
        reader = self._store.snapshot(asked.at, lock_timeout=asked.lock_timeout)
        return encode(await reader.get_with_timestamp(asked.key))

    async def _versions(self, body: bytes) -> AsyncGenerator[bytes, None]:
        asked = _decoded(body, messages.VersionsRead)
        self._connection(asked.connection)
        slices = self._store.versions(Span(*asked.span), asked.after, asked.upto)
        async for encoded in _encoded(slices):
            yield encoded

    async def _feed(self, body: bytes) -> AsyncGenerator[bytes, None]:
        asked = _decoded(body, messages.Follow)
        self._connection(asked.connection)
        starts = [(Span(start, end), at) for start, end, at in asked.starts]
        feed = self._store.span_feed_from(
            starts,
            with_previous=asked.with_previous,
            checkpoint_seconds=asked.checkpoint_seconds,
            omitted_origins=frozenset(asked.omitted_origins),
        )
        raw = all(span.start.startswith(RAW_KIND) for span, _ in starts)
        spacing = _raw_spacing if raw else _spacing
        loop = asyncio.get_running_loop()
        try:
            while True:
                events = await feed.next()
                rows = sum(len(event) for event in events if isinstance(event, ValueBatch))
                next_at = loop.time() + (0.0 if feed.behind else spacing(rows))
                yield encode([sent_of(event) for event in together(events)])
                await asyncio.sleep(max(0.0, next_at - loop.time()))
        finally:
            feed.close()


def _spacing(rows: int) -> float:
    """Seconds from a message of so many rows to the next."""
    return FEED_SPACING_SECONDS if rows <= SPACED_ROWS_MAX else 0.0


def _raw_spacing(rows: int) -> float:
    """As `_spacing`, of a feed of raw keyspaces."""
    seconds = max(RAW_FEED_SPACING_SECONDS, rows * RAW_FEED_ROW_SECONDS)
    return min(seconds, RAW_FEED_SPACING_SECONDS_MAX)


def state_of(handle: int, transaction: Any) -> messages.TransactionState:
    """The state of a transaction, as its node is told of it."""
    return messages.TransactionState(
        handle=handle,
        id=transaction.id,
        read_timestamp=transaction.read_timestamp,
        write_timestamp=transaction.write_timestamp,
        write_count=transaction.write_count,
        untouched=transaction.untouched,
    )


async def _encoded(slices: AsyncGenerator[list[Any], None]) -> AsyncIterator[bytes]:
    async with aclosing(slices):
        async for part in slices:
            yield encode(part)


def _answers(evaluation: Evaluation, reads: Sequence[Read]) -> messages.Evaluated:
    answers = [_answer(evaluation, read) for read in reads]
    return messages.Evaluated(Timestamp(evaluation.timestamp), answers)


def _answer(evaluation: Evaluation, read: Read) -> Answer:
    match read:
        case messages.Get(key=key):
            return evaluation.get(key)
        case messages.Scan(start=start, end=end, limit=limit, bytes_max=bytes_max):
            return evaluation.scan(Span(start, end), limit=limit, bytes_max=bytes_max)
        case messages.FirstExisting(keys=keys):
            return evaluation.first_existing(keys)


def _write(evaluation: Evaluation, asked: messages.OnePhase) -> None:
    for start, end, omitted in asked.deleted:
        evaluation.delete_range(Span(start, end), omit_from_feeds=omitted)
    puts = [
        (key, body) for key, body in zip(asked.keys, asked.bodies, strict=True) if body is not None
    ]
    deleted = [key for key, body in zip(asked.keys, asked.bodies, strict=True) if body is None]
    if puts:
        evaluation.put([key for key, _ in puts], [body for _, body in puts])
    if deleted:
        evaluation.delete(deleted)


__all__ = ["Message", "NodeTurnedAway", "StoreService", "state_of"]


def _decoded(body: bytes, kind: type[M]) -> M:
    try:
        return messages.decode(body, kind)
    except msgspec.DecodeError as error:
        raise MessageUnreadable(f"not a message of {kind.__name__}: {error}") from error
