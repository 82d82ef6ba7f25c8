"""The lock table: who holds which key, who waits for it, and who would wait for ever."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable

from ..errors import Deadlock, KVError, LockTimeout
from .record import TransactionRecord


class LockConflict(Exception):
    """A step met a key that another transaction holds: wait, then run the step again.

    Never leaves the transaction layer. `holder` is None when the key is free and somebody who
    waited for it has its turn.
    """

    def __init__(self, key: bytes, holder: TransactionRecord | None, *, reading: bool) -> None:
        super().__init__(key, holder)
        self.key = key
        self.holder = holder
        self.reading = reading


class Turn:
    """The right to take a key before those who came later. Give it back with `finish`."""

    __slots__ = ("future", "key")

    def __init__(self, key: bytes, future: asyncio.Future[None]) -> None:
        self.key = key
        self.future = future


class _Queue:
    """Those who wait for one key. Readers do not queue: once the holder is gone they all go on."""

    __slots__ = ("readers", "turn", "writers")

    def __init__(self) -> None:
        self.readers: list[asyncio.Future[None]] = []
        self.writers: deque[Turn] = deque()
        self.turn: Turn | None = None

    def __bool__(self) -> bool:
        return bool(self.readers or self.writers or self.turn)


class LockTable:
    """Holders of keys, and FIFO queues of writers.

    A key is held by the transaction whose intent it bears (`intents`), or that locked it without
    writing (`locks`), until that transaction's `release`. Then every reader wakes, and of the
    writers the first: it has the *turn*, and until it took the key or gave the turn back
    (`finish`) nobody else may take the key. So a key passes in order of arrival.

    Deadlocks: each waiting transaction waits for the holders of its keys, which may wait in turn.
    A wait that would close a circle is refused. It suffices to look when a wait begins, since the
    edge that closes the circle is always the newest: a key that passes on gives its waiters an
    edge to somebody who runs.
    """

    def __init__(self) -> None:
        self.intents: dict[bytes, TransactionRecord] = {}
        self.locks: dict[bytes, TransactionRecord] = {}
        self._queues: dict[bytes, _Queue] = {}
        self._waiting: dict[bytes, list[tuple[bytes, asyncio.Future[None]]]] = {}

    def holder(self, key: bytes) -> TransactionRecord | None:
        return self.intents.get(key) or self.locks.get(key)

    def check_writable(
        self, written: Collection[bytes], own: TransactionRecord | None, turn: Turn | None
    ) -> None:
        """Raises LockConflict unless `own` may take all the keys now."""
        for held in (self.intents, self.locks):
            if held and not held.keys().isdisjoint(written):
                for key in written:
                    holder = held.get(key)
                    if holder is not None and holder is not own:
                        raise LockConflict(key, holder, reading=False)
        if self._queues and not self._queues.keys().isdisjoint(written):
            for key in written:
                queue = self._queues.get(key)
                if queue is not None and queue.turn is not None and queue.turn is not turn:
                    raise LockConflict(key, None, reading=False)

    def add_intents(self, written: Iterable[bytes], record: TransactionRecord) -> None:
        """The keys bear intents of the transaction, which could take them."""
        for key in written:
            assert self.intents.get(key, record) is record, (key, record)
            self.intents[key] = record
            record.intents[key] = None
            if key in record.locks:
                record.locks.discard(key)
                del self.locks[key]

    def add_lock(self, key: bytes, record: TransactionRecord) -> None:
        """The key is locked by the transaction, which could take it."""
        if key not in record.intents:
            assert self.locks.get(key, record) is record, (key, record)
            self.locks[key] = record
            record.locks.add(key)

    def release_intents(self, keys: Iterable[bytes], record: TransactionRecord) -> None:
        """The keys' intents are resolved."""
        for key in keys:
            del record.intents[key]
            holder = self.intents.pop(key)
            assert holder is record, (key, holder, record)
            self._wake(key)

    def release_locks(self, record: TransactionRecord) -> None:
        """The transaction has ended, and what it locked without writing is free."""
        locked = sorted(record.locks)
        record.locks.clear()
        for key in locked:
            del self.locks[key]
            self._wake(key)

    async def wait(
        self, conflict: LockConflict, waiter: TransactionRecord | None, seconds: float
    ) -> Turn | None:
        """Waits until the conflict may be over. Writers get the turn.

        Raises Deadlock at once, LockTimeout after `seconds`.
        """
        key = conflict.key
        if waiter is not None and self._closes_circle(waiter, key):
            raise Deadlock(f"transaction {waiter.id.hex()} waits for one that waits for it")
        queue = self._queues.setdefault(key, _Queue())
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn = None
        if conflict.reading:
            queue.readers.append(future)
        else:
            turn = Turn(key, future)
            queue.writers.append(turn)
        edge = (key, future)
        if waiter is not None:
            self._waiting.setdefault(waiter.id, []).append(edge)
        taken = False
        try:
            async with asyncio.timeout(seconds):
                await future
            taken = True
            return turn
        except TimeoutError:
            holder = self.holder(key)
            raise LockTimeout(key, holder.id if holder else b"", seconds) from None
        finally:
            if waiter is not None:
                self._forget_edge(waiter, edge)
            if not taken:
                self._leave(key, future, turn)

    def finish(self, turn: Turn) -> None:
        """The one who had the turn took the key, or wants it no more."""
        queue = self._queues[turn.key]
        assert queue.turn is turn, turn.key
        queue.turn = None
        self._pass_on(turn.key, queue)

    def interrupt(self, record: TransactionRecord, error: KVError) -> None:
        """The transaction waits no longer: whatever it waits for raises `error`."""
        for _, future in self._waiting.get(record.id, ()):
            if not future.done():
                future.set_exception(error)

    def fail(self, error: KVError) -> None:
        """Nobody waits any longer: the store is closed."""
        for queue in list(self._queues.values()):
            for future in [*queue.readers, *(turn.future for turn in queue.writers)]:
                if not future.done():
                    future.set_exception(error)

    def _wake(self, key: bytes) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        readers, queue.readers = queue.readers, []
        for future in readers:
            if not future.done():
                future.set_result(None)
        self._pass_on(key, queue)

    def _pass_on(self, key: bytes, queue: _Queue) -> None:
        while queue.turn is None and queue.writers and self.holder(key) is None:
            turn = queue.writers.popleft()
            if not turn.future.done():  # else it timed out, and is about to leave
                queue.turn = turn
                turn.future.set_result(None)
        if not queue:
            del self._queues[key]

    def _leave(self, key: bytes, future: asyncio.Future[None], turn: Turn | None) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        if turn is not None and queue.turn is turn:
            queue.turn = None
        elif turn is not None and turn in queue.writers:
            queue.writers.remove(turn)
        elif future in queue.readers:
            queue.readers.remove(future)
        self._pass_on(key, queue)

    def _closes_circle(self, waiter: TransactionRecord, key: bytes) -> bool:
        to_visit, visited = [key], {key}
        while to_visit:
            holder = self.holder(to_visit.pop())
            if holder is waiter:
                return True
            if holder is None:
                continue
            for awaited, _ in self._waiting.get(holder.id, ()):
                if awaited not in visited:
                    visited.add(awaited)
                    to_visit.append(awaited)
        return False

    def _forget_edge(
        self, waiter: TransactionRecord, edge: tuple[bytes, asyncio.Future[None]]
    ) -> None:
        edges = self._waiting[waiter.id]
        edges.remove(edge)
        if not edges:
            del self._waiting[waiter.id]

    def check_invariants(self) -> None:
        """Table and records agree, and nobody waits for a key that is free."""
        for key, record in self.intents.items():
            assert key in record.intents, (key, record)
            assert key not in self.locks or self.locks[key] is record, key
        for key, record in self.locks.items():
            assert key in record.locks, (key, record)
        for key, queue in self._queues.items():
            assert queue, key
            assert queue.turn is not None or self.holder(key) is not None, key

    def __repr__(self) -> str:
        return (
            f"<LockTable intents={len(self.intents)} locks={len(self.locks)} "
            f"queues={len(self._queues)}>"
        )
