"""A session's open transaction: its modes, its savepoints, and how it fails and begins again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ...catalog.descriptors.elements import ForeignKey
from ...catalog.store.catalog_changes import tables_changed
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ...catalog.values.physical import Physical
from ...kvlayer.access import Commit, Immediate, StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import KVError, RetryableTransaction, StoreUnreachable, WriteConflict
from ...kvlayer.savepoint import Savepoint
from ...kvlayer.transaction_modes import Isolation
from ...kvlayer.txn import Transaction
from ...kvlayer.txn.immediate import finished
from ..syntax.trees import unsupported
from ..variables.variables import LOCK_TIMEOUT, SessionVariables, VariableMark
from .relations import LeaseScope
from .services import Services

T = TypeVar("T")

STATEMENT_ATTEMPTS_MAX = 100
"""Times that READ COMMITTED begins a statement anew. Each attempt has locked one more of the rows
that were changed under it, so only a statement over rows that change all the time comes so far."""

SAVEPOINTS_MAX = 10_000
"""Savepoints of one transaction: a driver that makes one a row and never releases it is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """The modes that a transaction was begun with."""

    isolation: Isolation = Isolation.SERIALIZABLE
    read_only: bool = False
    deferrable: bool = False
    as_of: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class _Marked:
    """A savepoint by name. Names may repeat: the last one counts, and hides those before it."""

    name: str
    savepoint: Savepoint
    variables: VariableMark
    number: int
    deferrals: Deferrals


class OpenTransaction:
    """A transaction between BEGIN and COMMIT, with the leases that its statements took.

    After an error it has *failed*. Without savepoints it is rolled back already, holds nothing, and
    only waits for its client to say ROLLBACK (or COMMIT, which then means the same). With some, it
    is rolled back to the last of them, and ROLLBACK TO makes it usable again.

    It may *begin anew*, as another transaction of the same modes, while its client has been shown
    nothing of it (`shown`).
    """

    def __init__(self, services: Services, variables: SessionVariables, modes: Modes) -> None:
        self.modes = modes
        self.scope = LeaseScope(services.leases)
        self.failed = False
        self.shown = False
        self.statement_count = 0
        self.savepoints_made = 0
        """Savepoints made so far: what has this number belongs to the last of them."""
        self._undone: int | None = None
        self.committed_at: Timestamp | None = None
        self._store = services.store
        self._descriptors = services.catalog.descriptors
        self._variables = variables
        self._savepoints: list[_Marked] = []
        self._before = variables.mark()
        self.deferred = DeferredKeys()
        self._began: Timestamp | None = None
        self.opened_at = services.store.clock.last
        self.transaction = self._new()

    def _new(self) -> Transaction:
        modes = self.modes
        transaction = self._store.begin(
            read_timestamp=modes.as_of, read_only=modes.read_only, isolation=modes.isolation
        )
        if modes.as_of is not None:
            self.scope.look_back(self._descriptors, transaction)
        return transaction

    @property
    def began(self) -> Timestamp:
        """The timestamp of its beginning, which is what now() says in it."""
        if self._began is None:
            self._began = self.transaction.read_timestamp
        return self._began

    def refuse_read_only(self, what: str) -> None:
        """Raises SQLError 25006 in a transaction that was begun READ ONLY or in the past."""
        if self.modes.read_only:
            raise SQLError("25006", f"cannot execute {what} in a read-only transaction")

    async def change_modes(self, modes: Modes) -> None:
        """SET TRANSACTION. Raises SQLError 25001 behind a statement or a savepoint."""
        if modes == self.modes:
            return
        if self.statement_count or self._savepoints:
            raise SQLError(
                "25001", "SET TRANSACTION must be called before any statement or savepoint"
            )
        self.modes = modes
        await self.begin_anew()

    async def statement(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs one statement, under READ COMMITTED as often as rows change beneath it."""
        self.statement_count += 1
        transaction = self.transaction
        transaction.lock_timeout = lock_timeout(self._variables)
        if self.modes.isolation is not Isolation.READ_COMMITTED or self.modes.as_of is not None:
            return await work()
        await transaction.begin_statement()
        if transaction.read_only:
            return await work()
        savepoint = await transaction.savepoint()
        for _ in range(STATEMENT_ATTEMPTS_MAX):
            try:
                result = await work()
            except WriteConflict as conflict:
                savepoint = await transaction.look_again(savepoint, conflict)
            else:
                await transaction.release(savepoint)
                return result
        raise RetryableTransaction(
            f"rows that the statement is about changed {STATEMENT_ATTEMPTS_MAX} times under it"
        )

    # Savepoints

    async def make_savepoint(self, name: str) -> None:
        if name == "cockroach_restart":
            raise unsupported(
                "CockroachDB's savepoint for retries",
                hint="At SQLSTATE 40001 begin anew: ROLLBACK, and BEGIN.",
            )
        if len(self._savepoints) >= SAVEPOINTS_MAX:
            raise SQLError(
                "54000",
                f"more than {SAVEPOINTS_MAX} savepoints in one transaction",
                hint="RELEASE SAVEPOINT forgets those that are not needed any more.",
            )
        savepoint = await self.transaction.savepoint()
        self.savepoints_made += 1
        mark, number = self._variables.mark(), self.savepoints_made
        self._savepoints.append(_Marked(name, savepoint, mark, number, self.deferred.deferrals))

    async def release_savepoint(self, name: str, position: int) -> None:
        """RELEASE: what was done since becomes part of what was done before it."""
        place = self._find(name, position)
        await self.transaction.release(self._savepoints[place].savepoint)
        del self._savepoints[place:]

    async def rollback_to(self, name: str, position: int) -> None:
        """ROLLBACK TO: the savepoint stands, those after it do not, and the failure is cured.

        Raises RetryableTransaction where the transaction is past it, having been aborted.
        """
        place = self._find(name, position)
        marked = self._savepoints[place]
        await self.transaction.rollback_to(marked.savepoint)
        del self._savepoints[place + 1 :]
        self.deferred.deferrals = marked.deferrals
        earlier = self._undone
        self._undone = marked.number if earlier is None else min(earlier, marked.number)
        self._variables.restore(marked.variables)
        self.failed = False

    def take_undone(self) -> int | None:
        """The first savepoint, by its number, that was gone back to since this was asked last."""
        undone, self._undone = self._undone, None
        return undone

    def _find(self, name: str, position: int) -> int:
        for place in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[place].name == name:
                return place
        raise SQLError("3B001", f'savepoint "{name}" does not exist', position=position)

    async def begin_anew(self, *, keep_savepoints: int | None = None) -> None:
        """Another transaction instead of this one, of which nothing remains.

        Of the savepoints the first `keep_savepoints` stand, all by default: they were made before
        any statement, and mark its beginning.
        """
        await self._let_go()
        self.transaction = self._new()
        await self.transaction.started()
        self._began = None
        self.failed = False
        self.deferred = DeferredKeys()
        self.statement_count = 0
        kept = self._savepoints[:keep_savepoints]
        self._savepoints = [
            replace(marked, savepoint=await self.transaction.savepoint()) for marked in kept
        ]

    @property
    def savepoint_count(self) -> int:
        return len(self._savepoints)

    # Ends

    async def commit(self, commit_called_ns: int) -> tuple[Timestamp, tuple[int, ...]]:
        """The commit timestamp, and the tables that have a new version by it."""
        assert not self.failed, "a failed transaction is committed"
        changed = tables_changed(self.transaction)
        try:
            await self.scope.renew(self._store.clock.last, changed)
            at = await self.transaction.commit(
                deadline=self.scope.deadline, commit_called_ns=commit_called_ns
            )
        finally:
            self.scope.release()
        self.committed_at = at
        self._variables.end_transaction()
        return at, changed

    def commit_at_once(self, store: Immediate) -> Commit[None]:
        """Commits in this step. Raises TakesWaiting where `commit` waits before, or fails."""
        called_ns = self._store.clock.wall.monotonic_ns()
        finished(self.scope.renew(self._store.clock.last, ()))
        commit = store.commit_transaction(
            self.transaction, deadline=self.scope.deadline, commit_called_ns=called_ns
        )
        # What it relied on needs to hold up to its timestamp, which stands.
        self.scope.release()
        self.committed_at = commit.timestamp
        self._variables.end_transaction()
        return commit

    async def fail(self) -> None:
        """Undoes what can be, so that nobody waits for a client's ROLLBACK."""
        if self.failed:
            return
        self.failed = True
        if self._savepoints:
            with suppress(KVError):  # it is over already: there is only ROLLBACK, or to begin anew
                await self.transaction.rollback_to(self._savepoints[-1].savepoint)
                return
        await self._let_go()

    async def rollback(self) -> None:
        """The end, and nothing remains of it."""
        self.failed = True
        self._variables.restore(self._before)
        await self._let_go()

    async def _let_go(self) -> None:
        try:
            await self.transaction.rollback()
        finally:
            self.scope.release()


def lock_timeout(variables: SessionVariables) -> float | None:
    """Seconds that a statement of the session waits for a row; None for the store's setting."""
    return variables.get(LOCK_TIMEOUT) or None


DEFERRED_VALUES_MAX = 100_000
"""Values that refer to no row, in one transaction: they are held in memory until its commit."""


@dataclass(frozen=True, slots=True)
class Deferrals:
    """The effect of SET CONSTRAINTS: on `all` keys, and then on some, by table and name."""

    all: bool | None = None
    some: Mapping[tuple[int, str], bool] = field(default_factory=dict)

    def defers(self, table_id: int, key: ForeignKey) -> bool:
        if not key.deferrable:
            return False
        otherwise = key.initially_deferred if self.all is None else self.all
        return self.some.get((table_id, key.name), otherwise)


_NONE_SET = Deferrals()

Orphans = dict[tuple[Datum, ...], tuple[tuple[Physical, ...], bool]]
"""Values of a foreign key that referred to no row when a statement had ended: as they are stored,
and whether rows with them were written, for otherwise the row that they referred to went."""


class DeferredKeys:
    """The foreign keys of one transaction: which are deferred, and the values to look at again.

    Every statement looks at its deferred keys like at others, and notes what is wrong instead of
    refusing it. What was right then is wrong later only by another statement, which looks too. So
    what the commit has to look at is what was noted, and what is noted stays: a savepoint that is
    gone back to may take away the row that had set it right.
    """

    def __init__(self) -> None:
        self.deferrals = _NONE_SET
        self.orphans: dict[tuple[int, str], Orphans] = {}
        self._value_count = 0

    def defers(self, table_id: int, key: ForeignKey) -> bool:
        return self.deferrals.defers(table_id, key)

    def note(
        self,
        table_id: int,
        key: ForeignKey,
        values: Mapping[tuple[Datum, ...], tuple[Physical, ...]],
        *,
        inserted: bool,
    ) -> None:
        """Values that refer to no row. Raises SQLError 54000 for too many in the transaction."""
        orphans = self.orphans.setdefault((table_id, key.name), {})
        before = len(orphans)
        orphans.update({datums: (stored, inserted) for datums, stored in values.items()})
        self._value_count += len(orphans) - before
        if self._value_count > DEFERRED_VALUES_MAX:
            raise SQLError(
                "54000",
                f"more than {DEFERRED_VALUES_MAX} values of deferred foreign keys refer to no row",
                hint="Write the rows that are referred to before those that refer to them, or in "
                "smaller transactions.",
            )


# Statements that are transactions by themselves, and are run again where the store asks; and
# changes of the catalog, which are that, or statements of the open transaction.

ATTEMPTS_MAX = 10
"""Times that a statement is run before its client hears of conflicts."""

RETRY_SECONDS = 0.002
"""The first pause between two attempts; each later one is twice as long, and all are jittered."""


async def pause_before(store: StoreAccess, attempt: int) -> None:
    """Waits a little before attempt number `attempt` + 1, so that who conflicted may end."""
    store.metrics.add("sql_statement_retries_total")
    await asyncio.sleep(RETRY_SECONDS * 2 ** (attempt - 1) * (0.5 + store.random.random()))


async def attempts(services: Services, attempt: Callable[[LeaseScope], Awaitable[T]]) -> T:
    """Returns the result of `attempt`. Each attempt gets a scope of its own, released behind it.

    A store that is away is tried once more, for its connection may just have been lost: each try
    waits for it for seconds.
    """
    away = False
    for number in range(1, ATTEMPTS_MAX + 1):
        scope = LeaseScope(services.leases)
        try:
            return await attempt(scope)
        except RetryableTransaction as error:
            unreachable = isinstance(error, StoreUnreachable)
            if number == ATTEMPTS_MAX or (away and unreachable):
                raise
            away = unreachable
        finally:
            scope.release()
        await pause_before(services.store, number)
    raise AssertionError("the last attempt returns or raises")


async def in_transaction(
    store: StoreAccess,
    scope: LeaseScope,
    work: Callable[[Transaction], Awaitable[T]],
    *,
    lock_timeout: float | None = None,
) -> tuple[T, Timestamp, tuple[int, ...]]:
    """Work in a transaction of its own, committed: its result, when, and which tables changed."""
    transaction = store.begin(lock_timeout=lock_timeout)
    try:
        await transaction.started()
        result = await work(transaction)
        changed = tables_changed(transaction)
        called_ns = store.clock.wall.monotonic_ns()
        await scope.renew(store.clock.last, changed)
        at = await transaction.commit(deadline=scope.deadline, commit_called_ns=called_ns)
    except BaseException:
        await transaction.rollback()
        raise
    return result, at, changed


async def alone(
    services: Services, work: Callable[[Transaction, LeaseScope], Awaitable[T]]
) -> tuple[T, Timestamp, tuple[int, ...]]:
    """Work in a transaction of its own, as `in_transaction`, tried until it is committed."""
    return await attempts(
        services,
        lambda scope: in_transaction(
            services.store, scope, lambda transaction: work(transaction, scope)
        ),
    )


async def in_opened(
    opened: OpenTransaction, work: Callable[[Transaction, LeaseScope], Awaitable[T]]
) -> T:
    """Work as a statement of the open transaction. What it reads is tracked whatever the isolation:
    the invariants of the catalog rest on it."""

    async def tracked() -> T:
        with opened.transaction.tracking(True):
            return await work(opened.transaction, opened.scope)

    return await opened.statement(tracked)
