"""Advisory locks: numbers that clients lock by agreement, among all nodes of a store.

    SELECT pg_advisory_lock(42)         the session's, until it unlocks as often as it locked
    SELECT pg_advisory_xact_lock(7)     the transaction's, until it ends or goes back behind it

A lock is a key of the store that nobody writes, held as locked rows are held: so waiting is in
order of arrival, deadlocks are found, and who dies lets go. What a transaction locks it holds
itself. What a session locks is held by a transaction beside its others, the *holder*, which begins
with the first lock, writes nothing, and gives way to nobody.

The two do not know each other, so a lock is the session's or its transaction's, and never both.
"""

from __future__ import annotations

from contextlib import suppress

from ...catalog.values.errors import SQLError
from ...kvlayer.access import StoreAccess, Transaction
from ...kvlayer.errors import KVError, LockTimeout
from ...kvlayer.keys import LOCK_KIND
from ...kvlayer.transaction_modes import Isolation, Priority, WhenLocked
from ..results.errors import from_kv

LOCKS_MAX = 10_000
"""Locks that one session may hold: each is an entry of the store's lock table."""

WAIT_SECONDS = 366 * 86_400.0
"""The wait of a session that set no `lock_timeout`: it is statement_timeout, or somebody, that ends
it."""


class AdvisoryLocks:
    """The advisory locks of one session, by their keys. Methods raise SQLError 55P03 where the lock
    timeout ends, and 40P01 for a deadlock. Each waits for `seconds` at most, and not at all for
    None."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._holder: Transaction | None = None
        self._counts: dict[bytes, int] = {}
        self._inside: tuple[Transaction, set[bytes]] | None = None
        """The transaction that has locked last, and its locks."""

    @property
    def lost(self) -> bool:
        """Whether the store has let go of what the session believes to hold: their connection was
        lost, and with it the holder."""
        return bool(self._counts) and self._holder is not None and not _running(self._holder)

    async def lock(self, key: bytes, *, seconds: float | None, opened: Transaction | None) -> bool:
        """Locks for the session; says whether it did."""
        if key in self._counts:
            self._counts[key] += 1
            return True
        if len(self._counts) >= LOCKS_MAX:
            raise SQLError("53200", f"more than {LOCKS_MAX} advisory locks in one session")
        if opened is not None and key in self._of(opened):
            raise _held_twice("Lock it for the session before the transaction begins.")
        if self._holder is None:
            self._holder = self._store.begin(
                isolation=Isolation.READ_COMMITTED, priority=Priority.HIGH
            )
            await self._holder.started()
        if await self._take(self._holder, key, seconds):
            self._counts[key] = 1
            return True
        return False

    async def lock_in(self, opened: Transaction, key: bytes, *, seconds: float | None) -> bool:
        """Locks for the open transaction, until it ends; says whether it did."""
        if key in self._counts:
            raise _held_twice("The session holds it already: nobody else does.")
        if opened.read_only:
            raise SQLError(
                "25006",
                "cannot take an advisory lock in a read-only transaction",
                hint="Lock it for the session: pg_advisory_lock().",
            )
        if not await self._take(opened, key, seconds):
            return False
        self._of(opened).add(key)
        return True

    async def unlock(self, key: bytes) -> bool:
        """Takes back one of the session's locks; says whether there was one."""
        count = self._counts.get(key, 0)
        if count == 0:
            return False
        if count > 1:
            self._counts[key] = count - 1
            return True
        assert self._holder is not None, "who holds locks has a holder"
        del self._counts[key]
        await self._holder.unlock((key,))
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

    def _of(self, opened: Transaction) -> set[bytes]:
        """The locks of the open transaction."""
        if self._inside is None or self._inside[0] is not opened:
            self._inside = opened, set()
        return self._inside[1]

    async def _take(self, transaction: Transaction, key: bytes, seconds: float | None) -> bool:
        when_locked = WhenLocked.SKIP if seconds is None else WhenLocked.WAIT
        before, transaction.lock_timeout = transaction.lock_timeout, seconds
        try:
            return bool(await transaction.lock((key,), when_locked=when_locked))
        except LockTimeout:
            raise SQLError("55P03", "canceling statement due to lock timeout") from None
        except KVError as error:
            # Said at once: a statement that locks must not be begun anew.
            raise from_kv(error) from error
        finally:
            transaction.lock_timeout = before


def _held_twice(hint: str) -> SQLError:
    message = "an advisory lock is its session's or its transaction's, not both"
    return SQLError("0A000", message, hint=hint)


def _running(transaction: Transaction) -> bool:
    try:
        transaction.check_running()
    except KVError:
        return False
    return True


def key_of(database_id: int, number: int) -> bytes:
    """Returns the key of a lock: each database has its own numbers, of 64 bits."""
    return LOCK_KIND + database_id.to_bytes(4, "big") + number.to_bytes(8, "big", signed=True)
