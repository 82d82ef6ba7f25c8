"""The lock table: who holds which key, who waits for it, and who would wait for ever."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from enum import Enum

from ..dealt_keys import DealtKeys
from ..errors import Deadlock, KVError, LockTimeout
from ..locked_keys import PORTION_KEYS
from ..span import Span
from ..transaction_modes import LockMode
from .intent_table import IntentTable
from .record import TransactionRecord

_EXCLUSIVE = LockMode.EXCLUSIVE
"""By itself: to find a member in its class takes sixteen times as long."""


class Wish(Enum):
    """A wish for a lock of a key."""

    READ = "read"  # its value at a timestamp: only an intent is in the way
    SHARE = "share"  # to hold it beside others
    TAKE = "take"  # to hold it alone


class LockConflict(Exception):
    """A step met a key that another transaction holds: wait, then run the step again.

    Never leaves the transaction layer. `holder` is one of those in the way, and None when the key
    is free and somebody who waited for it has its turn.
    """

    def __init__(self, key: bytes, holder: TransactionRecord | None, wish: Wish) -> None:
        super().__init__(key, holder)
        self.key = key
        self.holder = holder
        self.wish = wish


class Turn:
    """The right to take a key before those who came later. Give it back with `finish`.

    `taker` is None for a one-phase transaction, which holds nothing while it waits.
    """

    __slots__ = ("future", "key", "shared", "taker")

    def __init__(
        self,
        key: bytes,
        future: asyncio.Future[None],
        taker: TransactionRecord | None,
        *,
        shared: bool,
    ) -> None:
        self.key = key
        self.future = future
        self.taker = taker
        self.shared = shared


class _Queue:
    """The writers that wait for one key. Readers do not queue: once the intent is gone they all go
    on."""

    __slots__ = ("readers", "turns", "waiting")

    def __init__(self) -> None:
        self.readers: list[asyncio.Future[None]] = []
        self.waiting: deque[Turn] = deque()
        self.turns: set[Turn] = set()

    def __bool__(self) -> bool:
        return bool(self.readers or self.waiting or self.turns)


class LockTable:
    """Holders of keys, and FIFO queues of those who want them.

    A key is held alone by the transaction whose intent it bears (`intents`), or that locked it
    without writing (`locks`); or it is shared by several (`shares`). Each holds until it releases.
    At its end a transaction releases all of its locks in one step, however many they are: locks
    hold while their transaction is among the `_lockers`, and what is left of them is forgotten in
    portions (`forget_locks`).
    Then every reader wakes, and of the queue its head, with those behind it that can share the key
    with it: they have the *turn*, and until they took the key or gave the turn back (`finish`)
    nobody else may. So a key passes in order of arrival, and no stream of sharers can keep it from
    one who wants it alone. Only one who shares a key already and wants it alone goes to the head
    (an *upgrade*): all who wait wait for it anyway.

        x shares k, y shares k      shares {x, y}
        z wants k alone             queue [z], which waits for x and y
        w wants to share k          queue [z, w], though x and y would let it
        x wants k alone             queue [x, z, w], waits for y
        y releases                  x has the turn

    Deadlocks: each waiting transaction waits for the holders of its key, which may wait in turn
    for others anywhere in the store. A wait that would close a circle is refused. It suffices to
    look when a wait begins, since the edge that closes the circle is always the newest: a key that
    passes on gives its waiters an edge to somebody who runs.
    """

    def __init__(self) -> None:
        self.intents = IntentTable()
        self.locks: DealtKeys[bytes] = DealtKeys()  # ids of transactions
        self.shares: DealtKeys[dict[bytes, None]] = DealtKeys()
        self._lockers: dict[bytes, TransactionRecord] = {}  # those with locks or shares, by id
        self._queues: dict[bytes, _Queue] = {}
        self._waiting: dict[bytes, list[tuple[LockConflict, asyncio.Future[None]]]] = {}

    def holder(self, key: bytes) -> TransactionRecord | None:
        """The transaction that holds the key alone."""
        return self.intents.get(key) or self._locker(key)

    def holders(self, key: bytes) -> Iterator[TransactionRecord]:
        """Everybody who holds the key. One who holds it in two ways may come twice."""
        for holder in (self.intents.get(key), self._locker(key)):
            if holder is not None:
                yield holder
        yield from self._sharers(key)

    def _locker(self, key: bytes) -> TransactionRecord | None:
        locker_id = self.locks.get(key)
        return None if locker_id is None else self._lockers.get(locker_id)

    def _sharers(self, key: bytes) -> Iterator[TransactionRecord]:
        for sharer_id in self.shares.get(key) or ():
            if sharer_id in self._lockers:
                yield self._lockers[sharer_id]

    def locked(self, keys: Collection[bytes], own: TransactionRecord) -> bool:
        """Whether `own` has locked all of the keys exclusively."""
        return bool(own.locks) and all(self.locks.get(key) == own.id for key in keys)

    def locked_in(self, span: Span) -> tuple[bytes, TransactionRecord] | None:
        """A locked key of the span, and one of those who locked it; None where none is."""
        for locker in self._lockers.values():
            for locked in (locker.locks, locker.shares):
                key = locked.first_in(span)
                if key is not None:
                    return key, locker
        return None

    def check_writable(
        self, written: Collection[bytes], own: TransactionRecord | None, turn: Turn | None
    ) -> list[bytes]:
        """Raises LockConflict unless `own` may take all the keys for itself now. Returns those that
        bear its intents."""
        borne = self.intents.among(written)
        for key in borne:
            if self.intents[key] is not own:
                raise LockConflict(key, self.intents[key], Wish.TAKE)
        if self._lockers:
            for key in self.locks.among(written):
                holder = self._locker(key)
                if holder is not None and holder is not own:
                    raise LockConflict(key, holder, Wish.TAKE)
            for key in self.shares.among(written):
                for sharer in self._sharers(key):
                    if sharer is not own:
                        raise LockConflict(key, sharer, Wish.TAKE)
        if self._queues and not self._queues.keys().isdisjoint(written):
            for key in written:
                queue = self._queues.get(key)
                if queue is not None and any(other is not turn for other in queue.turns):
                    raise LockConflict(key, None, Wish.TAKE)
        return borne

    def check_lockable(
        self, key: bytes, own: TransactionRecord, turn: Turn | None, mode: LockMode
    ) -> None:
        """Raises LockConflict unless `own` may lock the key in that mode now."""
        if mode is _EXCLUSIVE:
            self.check_writable((key,), own, turn)
            return
        holder = self.holder(key)
        if holder is not None and holder is not own:
            raise LockConflict(key, holder, Wish.SHARE)
        queue = self._queues.get(key)
        if queue is None or turn in queue.turns or holder is own or self._shares(own, key):
            return
        if queue.waiting or any(not other.shared for other in queue.turns):
            raise LockConflict(key, None, Wish.SHARE)

    def add_lock(self, key: bytes, record: TransactionRecord, mode: LockMode) -> None:
        """The key is locked by the transaction, which could take it. Twice is once."""
        if mode is _EXCLUSIVE:
            self.add_locks((key,), record)
            return
        assert self.holder(key) in (None, record), (key, record)
        if not self._shares(record, key):
            self._lockers[record.id] = record
            if not self.shares.among((key,)):
                self.shares.put((key,), {})
            self.shares[key][record.id] = None
            record.shares.add((key,), record.sequence)

    def add_locks(self, written: Sequence[bytes], record: TransactionRecord) -> None:
        """The keys are locked exclusively by the transaction, which could take them all."""
        self._lockers[record.id] = record
        record.locks.add(self.locks.put(written, record.id), record.sequence)

    def _shares(self, record: TransactionRecord, key: bytes) -> bool:
        return record.id in (self.shares.get(key) or ())

    def release_intents(self, keys: Collection[bytes], record: TransactionRecord) -> None:
        """The keys' intents, which the transaction has dropped, are resolved."""
        self.intents.remove(record, keys)
        if self._queues:
            for key in keys:
                self._wake(key)

    def decided(self, record: TransactionRecord) -> None:
        """The transaction has committed or aborted, and intents of it remain: those who would read
        beneath them know by its record what they see."""
        for key, queue in list(self._queues.items()):
            if self.intents.get(key) is record:
                self._wake_readers(queue)
                self._pass_on(key, queue)

    def release_locks(self, record: TransactionRecord) -> bool:
        """Frees the keys of a transaction that has ended. Says whether there is more to forget of
        them, by `forget_locks`."""
        if self._lockers.pop(record.id, None) is None:
            return False
        for key in self._waited_for(record):
            self._wake(key)
        return self.forget_locks(record)

    def forget_locks(self, record: TransactionRecord) -> bool:
        """Forgets a portion of the keys that an ended transaction had locked. Says whether there
        are more."""
        assert record.id not in self._lockers, record
        self._forget(record, record.locks.take_first(), record.shares.take_first())
        return bool(record.locks or record.shares)

    def release_last(self, record: TransactionRecord, *, after: int) -> bool:
        """Frees a portion of the last keys that a transaction, which goes on, has locked since
        sequence `after`. Says whether there may be more."""
        free = record.locks.take_last(PORTION_KEYS, after=after)
        shared = record.shares.take_last(PORTION_KEYS - len(free), after=after)
        self._forget(record, free, shared)
        if self._queues:
            for key in dict.fromkeys((*free, *shared)):
                self._wake(key)
        return len(free) + len(shared) == PORTION_KEYS

    def release_lock(self, key: bytes, record: TransactionRecord, mode: LockMode) -> None:
        """The transaction, which goes on, does not hold the key in that mode any more."""
        exclusive = mode is _EXCLUSIVE
        (record.locks if exclusive else record.shares).remove(key)
        self._forget(record, [key] if exclusive else [], [] if exclusive else [key])
        self._wake(key)

    def _forget(
        self, record: TransactionRecord, free: Collection[bytes], shared: Collection[bytes]
    ) -> None:
        self.locks.remove(free, record.id)  # but what another has locked since
        for key in shared:
            sharers = self.shares[key]
            del sharers[record.id]
            if not sharers:
                self.shares.pop(key)

    def _waited_for(self, record: TransactionRecord) -> list[bytes]:
        """The keys that the transaction has locked and others wait for. Costs what the fewer of
        them are."""
        if not self._queues:
            return []
        if len(record.locks) + len(record.shares) < len(self._queues):
            named = dict.fromkeys((*record.locks, *record.shares))
            return [key for key in named if key in self._queues]
        return [
            key
            for key in self._queues
            if self.locks.get(key) == record.id or self._shares(record, key)
        ]

    async def wait(
        self, conflict: LockConflict, waiter: TransactionRecord | None, seconds: float
    ) -> Turn | None:
        """Waits until the conflict may be over. Those who want to hold the key get the turn.

        Raises Deadlock at once, LockTimeout after `seconds`.
        """
        key = conflict.key
        if waiter is not None and self._closes_circle(waiter, conflict):
            raise Deadlock(f"transaction {waiter.id.hex()} waits for one that waits for it")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn = self._enter(conflict, waiter, future)
        edge = (conflict, future)
        if waiter is not None:
            self._waiting.setdefault(waiter.id, []).append(edge)
        taken = False
        try:
            async with asyncio.timeout(seconds):
                await future
            taken = True
            return turn
        except TimeoutError:
            holder = next(self.holders(key), None)
            raise LockTimeout(key, holder.id if holder else b"", seconds) from None
        finally:
            if waiter is not None:
                self._forget_edge(waiter, edge)
            if not taken:
                self._leave(key, future, turn)

    def finish(self, turn: Turn) -> None:
        """The one who had the turn took the key, or wants it no more."""
        queue = self._queues[turn.key]
        assert turn in queue.turns, turn.key
        queue.turns.discard(turn)
        self._pass_on(turn.key, queue)

    def interrupt(self, record: TransactionRecord, error: KVError) -> None:
        """The transaction waits no longer: whatever it waits for raises `error`."""
        for _, future in self._waiting.get(record.id, ()):
            if not future.done():
                future.set_exception(error)

    def fail(self, error: KVError) -> None:
        """Nobody waits any longer: the store is closed."""
        for queue in list(self._queues.values()):
            for future in [*queue.readers, *(turn.future for turn in queue.waiting)]:
                if not future.done():
                    future.set_exception(error)

    def _enter(
        self,
        conflict: LockConflict,
        waiter: TransactionRecord | None,
        future: asyncio.Future[None],
    ) -> Turn | None:
        key = conflict.key
        queue = self._queues.setdefault(key, _Queue())
        if conflict.wish is Wish.READ:
            queue.readers.append(future)
            return None
        turn = Turn(key, future, waiter, shared=conflict.wish is Wish.SHARE)
        if waiter is not None and self._shares(waiter, key):
            queue.waiting.appendleft(turn)
        else:
            queue.waiting.append(turn)
        return turn

    def _wake(self, key: bytes) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        if self.intents.get(key) is None:
            self._wake_readers(queue)
        self._pass_on(key, queue)

    def _wake_readers(self, queue: _Queue) -> None:
        readers, queue.readers = queue.readers, []
        for future in readers:
            if not future.done():
                future.set_result(None)

    def _pass_on(self, key: bytes, queue: _Queue) -> None:
        while queue.waiting:
            head = queue.waiting[0]
            if head.future.done():  # it timed out, and is about to leave
                queue.waiting.popleft()
                continue
            if not self._grantable(key, head, queue):
                break
            queue.waiting.popleft()
            queue.turns.add(head)
            head.future.set_result(None)
        if not queue:
            del self._queues[key]

    def _grantable(self, key: bytes, turn: Turn, queue: _Queue) -> bool:
        if any(not (turn.shared and other.shared) for other in queue.turns):
            return False
        if turn.shared:
            return self.holder(key) in (None, turn.taker)
        return all(holder is turn.taker for holder in self.holders(key))

    def _leave(self, key: bytes, future: asyncio.Future[None], turn: Turn | None) -> None:
        queue = self._queues.get(key)
        if queue is None:
            return
        if turn is not None:
            queue.turns.discard(turn)
            if turn in queue.waiting:
                queue.waiting.remove(turn)
        elif future in queue.readers:
            queue.readers.remove(future)
        self._pass_on(key, queue)

    def _awaited(
        self, waiter: TransactionRecord, conflict: LockConflict
    ) -> list[TransactionRecord]:
        """Whom a waiting transaction waits for.

        One who queues waits for everybody who holds the key, even where it could share it: then
        somebody ahead of it cannot.
        """
        if conflict.wish is Wish.READ:
            holder = self.intents.get(conflict.key)
            return [] if holder is None else [holder]
        return [holder for holder in self.holders(conflict.key) if holder is not waiter]

    def _closes_circle(self, waiter: TransactionRecord, conflict: LockConflict) -> bool:
        to_visit, visited = self._awaited(waiter, conflict), {waiter}
        while to_visit:
            holder = to_visit.pop()
            if holder is waiter:
                return True
            if holder in visited:
                continue
            visited.add(holder)
            for awaited, _ in self._waiting.get(holder.id, ()):
                to_visit += self._awaited(holder, awaited)
        return False

    def _forget_edge(
        self, waiter: TransactionRecord, edge: tuple[LockConflict, asyncio.Future[None]]
    ) -> None:
        edges = self._waiting[waiter.id]
        edges.remove(edge)
        if not edges:
            del self._waiting[waiter.id]

    def check_invariants(self) -> None:
        """Table and records agree, and nobody waits for a key that is free."""
        self.intents.check_invariants()
        for key, record in self.intents.items():
            assert record.intents.held_in(Span(key, key + b"\x00")) is not None, (key, record)
            assert self._locker(key) in (None, record), key
        held: set[tuple[bytes, bytes]] = set()
        for record in self._lockers.values():
            held |= {(key, record.id) for key in (*record.locks, *record.shares)}
            assert all(self.locks.get(key) == record.id for key in record.locks), record
            assert all(self._shares(record, key) for key in record.shares), record
        for key, locker_id in self.locks.items():
            assert locker_id not in self._lockers or (key, locker_id) in held, key
        for key, sharers in self.shares.items():
            assert sharers, key
            alive = [self._lockers[each] for each in sharers if each in self._lockers]
            assert all((key, each.id) in held for each in alive), key
            assert not alive or self.holder(key) is None or alive == [self.holder(key)], key
        for key, queue in self._queues.items():
            assert queue, key
            assert queue.turns or next(self.holders(key), None) is not None, key

    def __repr__(self) -> str:
        return (
            f"<LockTable intents={len(self.intents)} locks={len(self.locks)} "
            f"shares={len(self.shares)} queues={len(self._queues)}>"
        )
