"""An explicit transaction on a distant store: it lives there, and is driven from here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import TypeVar

from ..access import Change, Row
from ..clock import Timestamp
from ..errors import OutcomeUnknown, TransactionAborted, WriteConflict
from ..savepoint import Savepoint, marks
from ..span import Span
from ..transaction_modes import Isolation, LockMode, Priority, WhenLocked
from . import messages
from .channel import ChannelBroken
from .connection import Connection
from .messages import Operate, Operated, Operation, TransactionState, decode, wire

T = TypeVar("T")


class RemoteTransaction:
    """Implements `access.Transaction`.

    It begins at the server with the first awaited call. It ends there with the connection, if that
    is lost: then every call but `rollback` raises TransactionAborted, but for a commit under way,
    of which nobody knows (OutcomeUnknown). What the layers above keep of it, the checks at its
    commit and what savepoints restore of them, stays here.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        read_timestamp: Timestamp | None,
        read_only: bool,
        lock_timeout: float | None,
        isolation: Isolation,
        priority: Priority,
    ) -> None:
        self._connection = connection
        self._as_of = read_timestamp
        self._read_only = read_only or read_timestamp is not None
        self._isolation = isolation if read_timestamp is None else Isolation.SERIALIZABLE
        self._priority = priority
        self._tracks = self._isolation is Isolation.SERIALIZABLE
        self._tracked: list[Span] = []
        self._number = 0
        self._state: TransactionState | None = None
        self._ended = False
        self.lock_timeout = lock_timeout
        self.commit_checks: list[Callable[[], None]] = []

    # What is known of it here

    @property
    def _known(self) -> TransactionState:
        assert self._state is not None, "the transaction is not started: await started()"
        return self._state

    @property
    def id(self) -> bytes:
        return self._known.id

    @property
    def read_timestamp(self) -> Timestamp:
        return self._known.read_timestamp

    @property
    def write_timestamp(self) -> Timestamp:
        return self._known.write_timestamp

    @property
    def read_only(self) -> bool:
        return self._read_only

    @property
    def isolation(self) -> Isolation:
        return self._isolation

    @property
    def priority(self) -> Priority:
        return self._priority

    @property
    def untouched(self) -> bool:
        return self._state is None or (self._state.untouched and not self._tracked)

    @property
    def write_count(self) -> int:
        return 0 if self._state is None else self._state.write_count

    def check_running(self) -> None:
        if self._state is not None:
            self._check_connection()

    async def started(self) -> None:
        if self._state is not None:
            return
        self._number = await self._connection.ready()
        begin = messages.Begin(
            connection=self._number,
            read_timestamp=self._as_of,
            read_only=self._read_only,
            lock_timeout=self.lock_timeout,
            isolation=self._isolation.value,
            priority=self._priority.value,
        )
        self._state = await self._connection.read("begin", begin, TransactionState)

    # Reading and writing

    async def get(self, key: bytes, *, for_update: bool = False) -> bytes | None:
        asked = messages.GetForUpdate(key) if for_update else messages.Get(key)
        return await self._ask(asked, bytes | None)  # type: ignore[arg-type]

    async def get_each(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return await self._ask(messages.GetEach(list(keys)), list[bytes | None])

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        found: type[tuple[bytes, Timestamp] | None] = tuple[bytes, Timestamp] | None  # type: ignore[assignment]
        return await self._ask(messages.GetWithTimestamp(key), found)

    async def first_existing(self, keys: Sequence[bytes]) -> int | None:
        return await self._ask(messages.FirstExisting(tuple(keys)), int | None)  # type: ignore[arg-type]

    async def scan(
        self,
        span: Span,
        *,
        limit: int | None = None,
        reverse: bool = False,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[Row]:
        asked = messages.ScanRows(wire(span), limit, reverse, when_locked.value)
        return await self._ask(asked, list[tuple[bytes, bytes]])

    async def scan_slices(
        self, span: Span, *, when_locked: WhenLocked = WhenLocked.WAIT
    ) -> AsyncGenerator[list[Row], None]:
        slices = self._slices(span, list[tuple[bytes, bytes]], when_locked=when_locked)
        async with aclosing(slices):
            async for rows in slices:
                yield rows

    async def changed_slices(
        self, span: Span, after: Timestamp
    ) -> AsyncGenerator[list[Change], None]:
        slices = self._slices(span, list[tuple[bytes, bytes | None]], after=after)
        async with aclosing(slices):
            async for changes in slices:
                yield changes

    async def _slices(
        self,
        span: Span,
        type: type[T],
        *,
        when_locked: WhenLocked = WhenLocked.WAIT,
        after: Timestamp | None = None,
    ) -> AsyncGenerator[T, None]:
        await self.started()
        self._check_connection()
        question = messages.ScanSlices(
            connection=self._number,
            span=wire(span),
            handle=self._known.handle,
            tracking=self._tracks,
            when_locked=when_locked.value,
            lock_timeout=self.lock_timeout,
            after=after,
        )
        slices = self._connection.stream("scan", question, type)
        async with aclosing(slices):
            async for part in slices:
                yield part

    async def lock(
        self,
        keys: Sequence[bytes],
        *,
        mode: LockMode = LockMode.EXCLUSIVE,
        when_locked: WhenLocked = WhenLocked.WAIT,
    ) -> list[bytes]:
        asked = messages.Lock(list(keys), mode.value, when_locked.value)
        return await self._ask(asked, list[bytes])

    async def unlock(self, keys: Sequence[bytes], *, mode: LockMode = LockMode.EXCLUSIVE) -> None:
        await self._ask(messages.Unlock(list(keys), mode.value), type(None))

    async def insert(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> bool:
        return await self._ask(messages.Insert(list(keys), list(bodies)), bool)

    async def put(self, keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
        await self._ask(messages.Put(list(keys), list(bodies)), type(None))

    async def delete(self, keys: Sequence[bytes]) -> None:
        await self._ask(messages.Delete(list(keys)), type(None))

    def track_read(self, span: Span) -> None:
        if self._tracks and not self._read_only:
            self._tracked.append(span)

    @contextmanager
    def tracking(self, enabled: bool) -> Iterator[None]:
        before, self._tracks = self._tracks, enabled
        try:
            yield
        finally:
            self._tracks = before

    # Statements and savepoints

    async def begin_statement(self) -> None:
        if self._isolation is Isolation.READ_COMMITTED:
            await self._ask(messages.BeginStatement(), type(None))

    async def savepoint(self) -> Savepoint:
        return self._savepoint(await self._ask(messages.MakeSavepoint(), int))

    async def look_again(self, savepoint: Savepoint, conflict: WriteConflict) -> Savepoint:
        again = await self._ask(messages.LookAgain(savepoint.sequence, conflict.key), int)
        self._restore(savepoint)
        return self._savepoint(again)

    async def release(self, savepoint: Savepoint) -> None:
        await self._ask(messages.Release(savepoint.sequence), type(None))

    async def rollback_to(self, savepoint: Savepoint) -> None:
        await self._ask(messages.RollbackTo(savepoint.sequence), type(None))
        self._restore(savepoint)

    def _savepoint(self, sequence: int) -> Savepoint:
        checks = self.commit_checks
        return Savepoint(sequence, self.write_count, tuple(checks), marks(checks))

    def _restore(self, savepoint: Savepoint) -> None:
        self.commit_checks[:] = savepoint.checks
        for restore in savepoint.restore:
            restore()

    # The end

    async def commit(
        self, *, deadline: Callable[[], Timestamp] | None = None, commit_called_ns: int = 0
    ) -> Timestamp:
        try:
            for check in self.commit_checks:
                check()
        except BaseException:
            await self.rollback()
            raise
        limit = None if deadline is None else deadline()
        committed = await self._ask(messages.Commit(limit, commit_called_ns), Timestamp)
        self._ended = True
        return committed

    async def rollback(self) -> None:
        if self._ended or self._state is None:
            return
        self._ended = True
        if self._number != self._connection.number:
            return  # it ended with its connection
        try:
            await self._operate(messages.Rollback(), type(None))
        except (ChannelBroken, TransactionAborted):
            pass  # likewise

    async def _ask(self, operation: Operation, type: type[T]) -> T:
        await self.started()
        self._check_connection()
        try:
            return await self._operate(operation, type)
        except ChannelBroken as broken:
            if isinstance(operation, messages.Commit) and broken.sent and self.write_count:
                self._ended = True
                raise OutcomeUnknown(str(broken)) from broken
            raise TransactionAborted(f"the connection to the store was lost: {broken}") from broken

    async def _operate(self, operation: Operation, type: type[T]) -> T:
        tracked, self._tracked = self._tracked, []
        question = Operate(
            connection=self._number,
            handle=self._known.handle,
            operation=operation,
            tracked=[wire(span) for span in tracked],
            tracking=self._tracks,
            lock_timeout=self.lock_timeout,
        )
        answer = await self._connection.call("transaction", question, Operated)
        self._state = answer.state
        return decode(answer.result, type)

    def _check_connection(self) -> None:
        if self._number != self._connection.number:
            raise TransactionAborted("the connection to the store was lost")
