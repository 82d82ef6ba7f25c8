"""Advisory locks: numbers that clients lock by agreement, among all nodes of a store.

    SELECT pg_advisory_lock(42)         the session's, until it unlocks as often as it locked
    SELECT pg_advisory_xact_lock(7, 1)  the transaction's, until it ends or goes back behind it

A lock is a key of the store that nobody writes, held as locked rows are held: so waiting is in
order of arrival, deadlocks are found, and who dies lets go. What a transaction locks it holds
itself. What a session locks is held by a transaction beside its others, the *holder*, which begins
with the first lock, writes nothing, and gives way to nobody.

The two do not know each other. So a session that holds a lock is granted it in a transaction at
once, and must then keep it to the transaction's end; and what its transaction holds the session
cannot lock for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess, Transaction
from ...kvlayer.errors import KVError, LockTimeout
from ...kvlayer.keys import LOCK_KIND
from ...kvlayer.transaction_modes import Isolation, LockMode, Priority, WhenLocked
from ..results.errors import from_kv

LOCKS_MAX = 10_000
"""Locks that one session may hold: each is an entry of the store's lock table."""

WAIT_SECONDS = 366 * 86_400.0
"""The wait of a session that set no `lock_timeout`: it is statement_timeout, or somebody, that ends
it."""

_WORD = 1 << 32
_LONG = 1 << 64


@dataclass(frozen=True, slots=True)
class AdvisoryKey:
    """One number, or two: they are never the same lock. Each database has its own."""

    database_id: int
    numbers: tuple[int, ...]

    @property
    def encoded(self) -> bytes:
        head = LOCK_KIND + self.database_id.to_bytes(4, "big") + bytes((len(self.numbers),))
        return head + self.high.to_bytes(4, "big") + self.low.to_bytes(4, "big")

    @property
    def high(self) -> int:
        """The `classid` of pg_locks: the first number, or the upper half of a single one."""
        if len(self.numbers) == 1:
            return self.numbers[0] % _LONG // _WORD
        return self.numbers[0] % _WORD

    @property
    def low(self) -> int:
        """`objid`: the second number, or the lower half."""
        return self.numbers[-1] % _WORD


@dataclass(frozen=True, slots=True)
class AdvisoryLock:
    """A lock as pg_locks lists it."""

    key: AdvisoryKey
    mode: LockMode
    granted: bool


@dataclass(slots=True)
class _InTransaction:
    """The locks of one transaction, and the session's locks that it relies on."""

    transaction: Transaction
    held: set[tuple[AdvisoryKey, LockMode]] = field(default_factory=set)
    relied_on: set[tuple[AdvisoryKey, LockMode]] = field(default_factory=set)


class AdvisoryLocks:
    """The advisory locks of one session. Methods raise SQLError 55P03 where the lock timeout
    ends, and 40P01 for a deadlock."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._holder: Transaction | None = None
        self._counts: dict[tuple[AdvisoryKey, LockMode], int] = {}
        self._inside: _InTransaction | None = None
        self._wanted: tuple[AdvisoryKey, LockMode] | None = None

    def __iter__(self) -> Iterator[AdvisoryLock]:
        """Yields the locks of the session, those of its transaction that has not ended, and the
        lock that it waits for."""
        inside = self._inside
        open = inside is not None and _running(inside.transaction)
        held = [*self._counts, *(inside.held if open and inside is not None else ())]
        yield from (AdvisoryLock(key, mode, True) for key, mode in dict.fromkeys(held))
        if self._wanted is not None:
            yield AdvisoryLock(*self._wanted, False)

    @property
    def lost(self) -> bool:
        """Whether the store has let go of what the session believes to hold: their connection was
        lost, and with it the holder."""
        return bool(self._counts) and self._holder is not None and not _running(self._holder)

    async def lock(
        self, key: AdvisoryKey, mode: LockMode, *, seconds: float | None, opened: Transaction | None
    ) -> bool:
        """Locks for the session; says whether it did. It waits for so many seconds at most, and not
        at all for None."""
        if (key, mode) in self._counts:
            self._counts[key, mode] += 1
            return True
        if len(self._counts) >= LOCKS_MAX:
            raise SQLError("53200", f"more than {LOCKS_MAX} advisory locks in one session")
        if opened is not None and any(key == held for held, _ in self._in(opened).held):
            raise SQLError(
                "0A000",
                "the transaction holds this advisory lock: the session cannot lock it, too",
                hint="Lock it for the session before the transaction does.",
            )
        if self._holder is None:
            self._holder = self._store.begin(
                isolation=Isolation.READ_COMMITTED, priority=Priority.HIGH
            )
            await self._holder.started()
        if await self._take(self._holder, key, mode, seconds):
            self._counts[key, mode] = 1
            return True
        return False

    async def lock_in(
        self, opened: Transaction, key: AdvisoryKey, mode: LockMode, *, seconds: float | None
    ) -> bool:
        """Locks for the open transaction, until it ends; says whether it did."""
        inside = self._in(opened)
        for enough in {mode, LockMode.EXCLUSIVE}:
            if (key, enough) in self._counts:
                inside.relied_on.add((key, enough))
                return True
        if opened.read_only:
            raise SQLError(
                "25006",
                "cannot take an advisory lock in a read-only transaction",
                hint="Lock it for the session: pg_advisory_lock().",
            )
        if not await self._take(opened, key, mode, seconds):
            return False
        inside.held.add((key, mode))
        return True

    async def lock_once(self, key: AdvisoryKey, mode: LockMode, *, seconds: float | None) -> bool:
        """Locks for a statement that is a transaction by itself: it lets go at once."""
        if (key, mode) in self._counts or (key, LockMode.EXCLUSIVE) in self._counts:
            return True
        transaction = self._store.begin()
        try:
            await transaction.started()
            return await self._take(transaction, key, mode, seconds)
        finally:
            await transaction.rollback()

    async def unlock(self, key: AdvisoryKey, mode: LockMode, opened: Transaction | None) -> bool:
        """Takes back one of the session's locks; says whether there was one."""
        count = self._counts.get((key, mode), 0)
        if count == 0:
            return False
        if count > 1:
            self._counts[key, mode] = count - 1
            return True
        if opened is not None and (key, mode) in self._in(opened).relied_on:
            raise SQLError(
                "0A000",
                "the transaction relies on this advisory lock of the session",
                hint="Unlock it behind COMMIT.",
            )
        assert self._holder is not None, "who holds locks has a holder"
        del self._counts[key, mode]
        await self._holder.unlock((key.encoded,), mode=mode)
        if not self._counts:
            await self.release_all()
        return True

    async def release_all(self) -> None:
        """Lets go of all that the session holds for itself."""
        holder, self._holder = self._holder, None
        self._counts.clear()
        if holder is not None:
            with suppress(KVError):  # the store has let go already
                await holder.rollback()

    def _in(self, opened: Transaction) -> _InTransaction:
        if self._inside is None or self._inside.transaction is not opened:
            self._inside = _InTransaction(opened)
        return self._inside

    async def _take(
        self, transaction: Transaction, key: AdvisoryKey, mode: LockMode, seconds: float | None
    ) -> bool:
        when_locked = WhenLocked.SKIP if seconds is None else WhenLocked.WAIT
        before, transaction.lock_timeout = transaction.lock_timeout, seconds
        self._wanted = (key, mode)
        try:
            return bool(await transaction.lock((key.encoded,), mode=mode, when_locked=when_locked))
        except LockTimeout:
            raise SQLError("55P03", "canceling statement due to lock timeout") from None
        except KVError as error:
            # Said at once: a statement that locks must not be begun anew.
            raise from_kv(error) from error
        finally:
            transaction.lock_timeout = before
            self._wanted = None


def _running(transaction: Transaction) -> bool:
    try:
        transaction.check_running()
    except KVError:
        return False
    return True


def key_of(database_id: int, numbers: Sequence[int]) -> AdvisoryKey:
    """Raises SQLError 22003 for numbers that PostgreSQL's functions do not take."""
    bits = 63 if len(numbers) == 1 else 31
    for number in numbers:
        if not -(1 << bits) <= number < 1 << bits:
            raise SQLError("22003", "bigint out of range" if bits == 63 else "integer out of range")
    return AdvisoryKey(database_id, tuple(numbers))
