"""A session's open transaction."""

from __future__ import annotations

from ..catalog.errors import SQLError
from ..catalog.leases import LeaseManager
from ..kvlayer.clock import Timestamp
from ..kvlayer.txn import Transaction
from .executor.ddl import tables_changed
from .relations import LeaseScope


class OpenTransaction:
    """A transaction between BEGIN and COMMIT, with the leases that its statements took.

    After an error it has *failed*: it is rolled back already, holds nothing, and only waits for
    its client to say ROLLBACK (or COMMIT, which then means the same).
    """

    def __init__(self, transaction: Transaction, leases: LeaseManager) -> None:
        self.transaction = transaction
        self.scope = LeaseScope(leases)
        self.failed = False

    def refuse_read_only(self, what: str) -> None:
        """Raises SQLError 25006 in a transaction that was begun READ ONLY or in the past."""
        if self.transaction.read_only:
            raise SQLError("25006", f"cannot execute {what} in a read-only transaction")

    async def commit(self, commit_called_ns: int) -> tuple[Timestamp, tuple[int, ...]]:
        """The commit timestamp, and the tables that have a new version by it."""
        assert not self.failed, "a failed transaction is committed"
        changed = tables_changed(self.transaction)
        try:
            at = await self.transaction.commit(
                deadline=self.scope.deadline, commit_called_ns=commit_called_ns
            )
        finally:
            self.scope.release()
        return at, changed

    async def fail(self) -> None:
        """Rolls back and lets go of everything, so that nobody waits for a client's ROLLBACK."""
        if self.failed:
            return
        self.failed = True
        try:
            await self.transaction.rollback()
        finally:
            self.scope.release()
