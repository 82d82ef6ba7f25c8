"""The changes of descriptors in one transaction, from its first statement to its commit.

Two rules are about a transaction as a whole, and are kept here. A transaction publishes at most one
new version of a descriptor, however many of its statements change it: each later one is compared
with what the transaction found, not with what it wrote. And a change of a lock is the only change
of its transaction: no other descriptor, no row, but for the job on whose behalf it happens. Several
tables may be unlocked together, each on behalf of a job of its own, and beside them jobs may begin
on tables that are not locked, with a version that changes nothing. The second is looked at when a
descriptor is published and again at commit, so a driver that opens a transaction around everything
can lock a table, and a statement that already stands beside another change is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable

from ...kvlayer.access import Transaction
from ..descriptors.descriptor import Descriptor, TableDescriptor
from ..descriptors.publish_rules import changes_lock, changes_nothing, lock_not_alone


class CatalogChanges:
    """The descriptor changes of one transaction. It is a commit check of that transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._before: dict[int, Descriptor | None] = {}
        self._published: dict[int, Descriptor] = {}
        self._lock_change: TableDescriptor | None = None
        self._unchanged: set[int] = set()
        """The tables published that may be beside an unlocking: unlocked ones, and those with a
        job that has only begun."""
        self._writes_expected = 0
        """The values that the transaction wrote to publish them, and no other."""
        self._writes_before = 0  # the version that is being published
        self._bookkeeping = 0
        self.jobs: list[int] = []
        """The schema changes that begin with this transaction."""
        self.rights_changed = False
        """Whether the transaction sees rights that nobody else does."""
        self.drafts: dict[int, object] = {}
        """By table, what whoever wrote a schema change's job needs to add to it."""

    @classmethod
    def of(cls, transaction: Transaction) -> CatalogChanges:
        """The changes of `transaction`, which are made to be checked at its commit."""
        for check in transaction.commit_checks:
            if isinstance(check, CatalogChanges):
                return check
        changes = cls(transaction)
        transaction.commit_checks.append(changes)
        return changes

    @property
    def published(self) -> tuple[Descriptor, ...]:
        """The versions that the commit will publish, in the order of their first statements."""
        return tuple(self._published.values())

    def created(self, descriptor_id: int) -> bool:
        """Whether this transaction brought the descriptor into being."""
        return descriptor_id in self._before and self._before[descriptor_id] is None

    def before(self, descriptor_id: int, read: Descriptor | None) -> Descriptor | None:
        """The version that the transaction found: `read`, unless it has published since."""
        return self._before.get(descriptor_id, read)

    def next_version(self, descriptor: Descriptor) -> int:
        """The version number of the next change to what the transaction reads as `descriptor`."""
        published = descriptor.id in self._published
        return descriptor.version if published else descriptor.version + 1

    @property
    def _other_writes(self) -> int:
        """Values that the transaction wrote, but for bookkeeping."""
        return self._transaction.write_count - self._bookkeeping

    async def put_bookkeeping(self, key: bytes, body: bytes) -> None:
        """Writes a row of the system's that may stand beside a lock change: a job, its progress."""
        await self._transaction.put([key], [body])
        self._bookkeeping += 1

    def check_no_lock_change(self) -> None:
        """Raises SQLError 25001 where the transaction has locked or unlocked a table."""
        if self._lock_change is not None:
            raise lock_not_alone(self._lock_change)

    def check_publish(self, before: Descriptor | None, after: Descriptor) -> None:
        """Raises SQLError 25001 where publishing would set a lock change beside another change."""
        self._writes_before = self._other_writes
        if not changes_lock(before, after):
            locks = self._lock_change is not None and self._lock_change.locked
            if locks or not changes_nothing(before, after):
                self.check_no_lock_change()
            return
        assert isinstance(after, TableDescriptor), after
        beside = set() if after.locked else self._unchanged
        others = not beside.issuperset(self._published)
        if others or self._other_writes != self._writes_expected:
            raise lock_not_alone(after)

    def record(self, before: Descriptor | None, after: Descriptor) -> None:
        """Notes that `after` has been written."""
        self._before.setdefault(after.id, before)
        self._published[after.id] = after
        if changes_lock(before, after):
            assert isinstance(after, TableDescriptor), after
            self._lock_change = after
        elif not changes_nothing(before, after):
            self._unchanged.discard(after.id)
            return
        if not (isinstance(after, TableDescriptor) and after.locked):
            self._unchanged.add(after.id)
        self._writes_expected += self._other_writes - self._writes_before

    def mark(self) -> Callable[[], None]:
        """For savepoints: what brings the changes back to where they are now."""
        before, published = dict(self._before), dict(self._published)
        lock_change, writes_expected = self._lock_change, self._writes_expected
        unchanged = set(self._unchanged)
        bookkeeping, rights_changed = self._bookkeeping, self.rights_changed
        jobs, drafts = list(self.jobs), dict(self.drafts)

        def restore() -> None:
            self._before, self._published = dict(before), dict(published)
            self._lock_change, self._writes_expected = lock_change, writes_expected
            self._unchanged = set(unchanged)
            self._bookkeeping, self.rights_changed = bookkeeping, rights_changed
            self.jobs, self.drafts = list(jobs), dict(drafts)

        return restore

    def __call__(self) -> None:
        """The commit check. A statement may call it too, to be refused earlier."""
        if self._lock_change is None:
            return
        if self._other_writes != self._writes_expected:
            raise lock_not_alone(self._lock_change)


def tables_changed(transaction: Transaction) -> tuple[int, ...]:
    """The tables that existed before the transaction and have a new version in it."""
    if not transaction.commit_checks:
        return ()
    changes = CatalogChanges.of(transaction)
    return tuple(
        descriptor.id
        for descriptor in changes.published
        if isinstance(descriptor, TableDescriptor) and not changes.created(descriptor.id)
    )


def jobs_begun(transaction: Transaction) -> tuple[int, ...]:
    """The schema changes that begin with the transaction."""
    if not transaction.commit_checks:
        return ()
    return tuple(CatalogChanges.of(transaction).jobs)
