"""The transaction part of a session: BEGIN to COMMIT, retries, and time that runs out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from ...catalog.store.catalog_changes import jobs_begun
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Commit, Immediate
from ...kvlayer.errors import KVError, RetryableTransaction, StoreClosed, TakesWaiting
from ...kvlayer.txn import Transaction
from ...kvlayer.write_shares import SessionShare
from ..analyze.scalars import Bindings
from ..execute.ddl.ddl import wait_until_seen
from ..execute.write.foreign_keys import check_deferred
from ..results.as_of import datetime_of, resolve_as_of
from ..results.results import Result, listing
from ..runtime.activity import SessionState
from ..runtime.advisory_locks import AdvisoryLocks
from ..runtime.authorization import changes_rights
from ..runtime.services import Services
from ..runtime.transactions import ATTEMPTS_MAX, Modes, OpenTransaction, pause_before
from ..syntax import changefeed_statements
from ..syntax import transaction_statements as statements
from ..syntax.changefeed_statements import ConnectionChange, SubscriptionChange
from ..syntax.keyspace_statements import BackupKeyspace, RebalanceReplication, RestoreKeyspace
from ..syntax.statement import DDL, kinds_of
from ..syntax.statements import (
    SHOWN,
    AwaitJobs,
    ControlJobs,
    Delete,
    ExplainChangefeed,
    Insert,
    SetClusterSetting,
    SplitAt,
    UnsplitAt,
    Update,
    VerifyChangefeed,
    WithWrites,
)
from ..variables.variables import (
    DEFAULT_READ_ONLY,
    IDLE_IN_TRANSACTION_TIMEOUT,
    STATEMENT_TIMEOUT,
    SessionVariables,
    Variable,
    find,
)
from .standing import MODES, Standing, standing_of

_MODE_VARIABLES = tuple(f"transaction_{mode}" for mode in MODES)
"""The names by which SHOW knows the modes of the open transaction."""

_NOTHING_SAID = statements.TransactionModes()


class SessionTransactions:
    """Holds what is open, and carries out the statements about it.

    `batch` says that the session opened it for a batch of statements, and that nobody said BEGIN.
    While a statement runs, which is within `async with transactions:`, the session is not idle.
    """

    def __init__(
        self, services: Services, variables: SessionVariables, share: SessionShare
    ) -> None:
        self.opened: OpenTransaction | None = None
        self.batch = False
        self.advisory_locks = AdvisoryLocks(services.store)
        self.terminated: SQLError | None = None
        """The error that ended the session, which answers every further statement."""
        self._services = services
        self._variables = variables
        self._share = share
        self._store = services.store
        self._committing: OpenTransaction | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._standing = standing_of(variables)

    # Beginning and ending

    def open(self, modes: Modes) -> OpenTransaction:
        assert self.opened is None, "transactions do not nest"
        self.opened = OpenTransaction(self._services, self._variables, modes)
        return self.opened

    @property
    def reader(self) -> Transaction | None:
        """Returns the open transaction, in which statements read; None where none is open."""
        return None if self.opened is None else self.opened.transaction

    def open_batch(self) -> None:
        """A transaction around statements of a batch that did not say BEGIN."""
        self.open(self.standing.modes)
        self.batch = True

    @property
    def standing(self) -> Standing:
        """The settings of statements by the variables of now."""
        if self._standing.version != self._variables.version:
            self._standing = standing_of(self._variables)
        return self._standing

    async def run(
        self, statement: statements.TransactionStatement, given: Sequence[object]
    ) -> Result:
        """Carries out a statement about transactions or variables."""
        called_ns = self._store.clock.wall.monotonic_ns()
        match statement:
            case statements.Begin(modes=modes):
                return await self._begin(modes, given)
            case statements.Commit():
                return await self.commit(called_ns)
            case statements.Rollback():
                return await self.rollback()
            case statements.RollbackTo(name=name, position=position):
                await self._in_block("ROLLBACK TO SAVEPOINT").rollback_to(name, position)
                return Result(tag="ROLLBACK")
        self.refuse_failed()
        match statement:
            case statements.MakeSavepoint(name=name):
                await self._in_block("SAVEPOINT").make_savepoint(name)
                return Result(tag="SAVEPOINT")
            case statements.ReleaseSavepoint(name=name, position=position):
                await self._in_block("RELEASE SAVEPOINT").release_savepoint(name, position)
                return Result(tag="RELEASE")
            case statements.SetTransaction(modes=modes):
                return await self._set_transaction(modes, given)
            case statements.SetCharacteristics(modes=modes):
                self._set_characteristics(modes)
                return Result(tag="SET")
        assert isinstance(statement, statements.SetVariable), statement
        return self._set_variable(statement)

    # At once

    @property
    def hindered(self) -> bool:
        """Whether a statement has to see to something before it: a session that is over, an idle
        timer, a debt."""
        return (
            self.terminated is not None
            or self._idle is not None
            or (self.opened is None and self._share.due)
            or self.advisory_locks.lost
        )

    def begin_at_once(self) -> None:
        """BEGIN, of no modes of its own. Raises TakesWaiting."""
        if self.opened is not None:
            raise TakesWaiting
        self.open(self.standing.modes)

    def commit_at_once(self, store: Immediate) -> Commit[None]:
        """COMMIT of the open transaction. Raises TakesWaiting where it waits before it is applied,
        or there is more to it: then it is still open."""
        opened = self.opened
        if opened is None or self.batch or opened.failed or opened.deferred.orphans:
            raise TakesWaiting
        commit = opened.commit_at_once(store)
        self.opened = None
        return commit

    async def commit(self, called_ns: int) -> Result:
        opened, self.batch = self.opened, False
        if opened is None:
            return Result(tag="COMMIT", notice="there is no transaction in progress")
        if opened.failed:
            await self.rollback()
            return Result(tag="ROLLBACK", notice="the transaction had failed and is rolled back")
        self.opened, self._committing = None, opened
        if opened.deferred.orphans:
            await check_deferred(opened)
        at, changed = await opened.commit(called_ns)
        self._committing = None
        notice = None
        if opened.transaction.commit_checks:  # it may have changed the catalog
            if changes_rights(opened.transaction):
                await self._services.rights.catch_up(at)
            jobs = jobs_begun(opened.transaction)
            notice = await wait_until_seen(self._services, changed, jobs)
            if jobs:
                at = self._services.store.clock.last  # their versions are of later transactions
        return Result(tag="COMMIT", commit_timestamp=at, notice=notice)

    async def rollback(self) -> Result:
        opened, self.opened, self.batch = self.opened, None, False
        if opened is None:
            return Result(tag="ROLLBACK", notice="there is no transaction in progress")
        with suppress(StoreClosed):  # what ends the store ends its transactions
            await opened.rollback()
        return Result(tag="ROLLBACK")

    async def fail(self) -> None:
        """A statement has failed, or was cancelled and has done who knows what."""
        committing, self._committing = self._committing, None
        with suppress(StoreClosed):
            if committing is not None:
                await committing.rollback()
            elif self.opened is not None:
                await self.opened.fail()

    def refuse_failed(self) -> None:
        """Raises SQLError 25P02 in a failed transaction."""
        opened = self.opened
        if opened is not None and opened.failed:
            hint = "Run ROLLBACK."
            if opened.savepoint_count:
                hint = "Run ROLLBACK TO SAVEPOINT, or ROLLBACK."
            raise SQLError(
                "25P02",
                "current transaction is aborted, commands ignored until end of transaction block",
                hint=hint,
            )

    def refuse_read_only(self, what: str) -> None:
        """Raises SQLError 25006 in a transaction that reads only, or where all of them do."""
        if self.opened is not None:
            self.opened.refuse_read_only(what)
        elif self._variables.get(DEFAULT_READ_ONLY):
            raise SQLError("25006", f"cannot execute {what} in a read-only transaction")

    def refuse_block(self, what: str) -> None:
        """Raises SQLError 25001 in a transaction."""
        if self.opened is not None:
            raise SQLError("25001", f"{what} cannot run inside a transaction block")

    def refuse_written(self, what: str) -> None:
        """Raises SQLError 25001 in a transaction that has written, or holds locks: whatever waits
        for them would wait for `what`, which does not end by itself."""
        if self.opened is not None and not self.opened.transaction.untouched:
            raise SQLError(
                "25001", f"{what} cannot run inside a transaction block that has read or written"
            )

    def _in_block(self, what: str) -> OpenTransaction:
        if self.opened is None or self.batch:
            raise SQLError("25P01", f"{what} can only be used in transaction blocks")
        return self.opened

    async def _begin(
        self, given_modes: statements.TransactionModes, given: Sequence[object]
    ) -> Result:
        if self.opened is not None and not self.batch:
            raise SQLError("25001", "there is already a transaction in progress")
        if self.opened is None:
            opened = self.open(await self._modes(self.standing.modes, given_modes, given))
            await opened.transaction.started()
        else:
            # What ran before it in the batch belongs to it.
            modes = await self._modes(self.opened.modes, given_modes, given)
            await self.opened.change_modes(modes)
        self.batch = False
        return Result(tag="BEGIN")

    async def _modes(
        self, modes: Modes, said: statements.TransactionModes, given: Sequence[object]
    ) -> Modes:
        """`modes` with what a statement says otherwise."""
        if said == _NOTHING_SAID:
            return modes
        for name in MODES:
            if getattr(said, name) is not None:
                modes = replace(modes, **{name: getattr(said, name)})
        if said.as_of is not None:
            now = await self._store.now()
            bindings = Bindings(given, now)
            at = resolve_as_of(said.as_of, bindings.parameters, now)
            modes = replace(modes, as_of=at, read_only=True)
        elif said.read_only is False and modes.as_of is not None:
            raise SQLError("25006", "a transaction AS OF SYSTEM TIME reads only")
        return modes

    # Running again

    async def run_all(self, count: int, run: Callable[[int], Awaitable[Result]]) -> list[Result]:
        """The results of statements `0 … count - 1`, which the client gets together.

        A transaction that cannot be serialized is begun anew while the client has seen nothing of
        it: from its first statement here, or from the one behind its BEGIN.
        """
        results: list[Result] = []
        start, savepoints = 0, self.opened.savepoint_count if self.opened is not None else 0
        tries = 0
        while len(results) < count:
            before = self.opened
            try:
                results.append(await run(len(results)))
            except SQLError as error:
                opened = self.opened or self._committing
                tries += 1
                if tries >= ATTEMPTS_MAX or not _may_begin_anew(opened, error):
                    raise
                assert opened is not None
                await pause_before(self._store, tries)
                self.opened, self._committing = opened, None
                await opened.begin_anew(keep_savepoints=savepoints)
                del results[start:]
                continue
            if self.opened is not before and self.opened is not None:
                start, savepoints = len(results), 0
        if self.opened is not None and self.opened.statement_count:
            self.opened.shown = True
        return results

    # Time

    async def __aenter__(self) -> None:
        """The session is not idle from here on. Raises what ended it, if it is over.

        Where no transaction is open it waits until what the session wrote is paid for.
        """
        if self._share.due and self.opened is None:
            await self._share.settle()
        if self.terminated is None and self.advisory_locks.lost:
            self.terminated = SQLError(
                "08006", "terminating connection: its advisory locks were lost with the store's"
            )
        if self.terminated is not None:
            raise self.terminated
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def __aexit__(self, *raised: object) -> None:
        """The session is idle from here on."""
        if self.opened is None and self.terminated is None:
            return
        seconds = self._variables.get(IDLE_IN_TRANSACTION_TIMEOUT)
        if self.terminated is not None:
            await self._end()
        elif seconds and self.opened is not None and not self.batch:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(seconds, self._idle_for_too_long)

    def _idle_for_too_long(self) -> None:
        self.terminated = SQLError(
            "25P03", "terminating connection due to idle-in-transaction timeout"
        )
        task = asyncio.get_running_loop().create_task(self._end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _end(self) -> None:
        await self.advisory_locks.release_all()
        with suppress(KVError):  # it has ended already, or the store will end it at its next start
            await self.rollback()

    def terminate(self) -> SQLError:
        """The session is over: what is open is rolled back, once nothing runs in it."""
        if self.terminated is None:
            self.terminated = SQLError(
                "57P01", "terminating connection due to administrator command"
            )
        return self.terminated

    @asynccontextmanager
    async def time_limit(self, otherwise: float = 0.0) -> AsyncIterator[None]:
        """Limits the block to `statement_timeout`, or to `otherwise` where the session has none.
        Raises SQLError 57014."""
        seconds = self._variables.get(STATEMENT_TIMEOUT) or otherwise
        try:
            async with asyncio.timeout(seconds or None) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise SQLError("57014", "canceling statement due to statement timeout") from None

    async def close(self) -> None:
        """Rolls back what is open."""
        if self._idle is not None:
            self._idle.cancel()
        await self.advisory_locks.release_all()
        await self.rollback()
        if self._ending:
            await asyncio.wait(set(self._ending))

    # Variables

    async def _set_transaction(
        self, said: statements.TransactionModes, given: Sequence[object]
    ) -> Result:
        if self.opened is None or self.batch:
            return Result(
                tag="SET", notice="SET TRANSACTION can only be used in transaction blocks"
            )
        modes = await self._modes(self.opened.modes, said, given)
        await self.opened.change_modes(modes)
        return Result(tag="SET")

    def _set_characteristics(self, said: statements.TransactionModes) -> None:
        for name, variable in MODES.items():
            if getattr(said, name) is not None:
                self._variables.put(variable, getattr(said, name))

    def _set_variable(self, statement: statements.SetVariable) -> Result:
        name, value = statement.name, statement.value
        if value is None:
            self._variables.reset(name, position=statement.position)
            return Result(tag="RESET" if not statement.local else "SET")
        notice = None
        if statement.local and (self.opened is None or self.batch):
            find(name, statement.position)
            notice = "SET LOCAL can only be used in transaction blocks"
        else:
            self._variables.set(name, value, local=statement.local, position=statement.position)
        return Result(tag="SET", notice=notice)

    def show(self, name: str, position: int) -> Result:
        """SHOW of a variable."""
        if name in _MODE_VARIABLES:
            text = self._mode_shown(name)
        else:
            variable = _shown_variable(name, position)
            name, text = variable.title or name, self._variables.show(variable)
        return listing("SHOW", name, [(text,)])

    def _mode_shown(self, name: str) -> str:
        modes = self.standing.modes if self.opened is None else self.opened.modes
        mode = name.removeprefix("transaction_")
        return MODES[mode].show(getattr(modes, mode))

    @property
    def state(self) -> SessionState:
        opened = self.opened
        if opened is None or self.batch:
            return _IDLE
        return SessionState.FAILED if opened.failed else _IN_TRANSACTION

    @property
    def opened_at(self) -> datetime | None:
        """The time of the client's BEGIN, if a transaction is open."""
        if self.opened is None or self.batch:
            return None
        return datetime_of(self.opened.opened_at)


def _shown_variable(name: str, position: int) -> Variable[object]:
    """`find`; the error for an unknown name also suggests other things that SHOW takes."""
    try:
        return find(name, position)
    except SQLError as error:
        near = get_close_matches(name, SHOWN, n=1, cutoff=0.7)
        if near:
            error.hint = f"Did you mean SHOW {near[0].upper()}?"
        raise


def _may_begin_anew(opened: OpenTransaction | None, error: SQLError) -> bool:
    """Whether an error is one that another attempt may not meet, and the client saw nothing yet."""
    if opened is None or opened.shown:
        return False
    return isinstance(error.__cause__, RetryableTransaction)


# By themselves, for each answer: to find a member in its class takes sixteen times as long.
_IDLE, _IN_TRANSACTION = SessionState.IDLE, SessionState.IN_TRANSACTION


_NOT_IN_BLOCK: dict[type, str] = {
    SplitAt: "a split of ranges",
    UnsplitAt: "a split of ranges",
    ExplainChangefeed: "EXPLAIN CHANGEFEED",
    AwaitJobs: "SHOW JOBS WHEN COMPLETE",
    VerifyChangefeed: "VERIFY CHANGEFEED",
    changefeed_statements.RetryDeadLetters: "RETRY DEAD LETTERS",
    changefeed_statements.SkipDeadLetters: "SKIP DEAD LETTERS",
    BackupKeyspace: "BACKUP",
    RestoreKeyspace: "RESTORE",
    SetClusterSetting: "SET CLUSTER SETTING",
}
_NOT_READ_ONLY: dict[type, str] = {
    Insert: "INSERT",
    Update: "UPDATE",
    Delete: "DELETE",
    WithWrites: "a WITH that writes",
    SplitAt: "ALTER",
    UnsplitAt: "ALTER",
    changefeed_statements.AlterChangefeed: "ALTER CHANGEFEED",
    RebalanceReplication: "REBALANCE REPLICATION",
    changefeed_statements.CreateSchedule: "CREATE SCHEDULE",
    **dict.fromkeys(kinds_of(DDL), "DDL"),
    **dict.fromkeys(kinds_of(SubscriptionChange), "a change of subscriptions"),
    **dict.fromkeys(kinds_of(ConnectionChange), "a change of external connections"),
}
"""By the type of the statement, what the error calls it."""


def refuse_where_it_stands(statement: object, transactions: SessionTransactions) -> None:
    """Raises SQLError 25001 in a transaction block, and 25006 where the transaction only reads."""
    name = _NOT_IN_BLOCK.get(type(statement))
    if isinstance(statement, ControlJobs):
        name = f"{statement.action.value} JOB"
    if name is not None:
        transactions.refuse_block(name)
    name = _NOT_READ_ONLY.get(type(statement))
    if name is not None:
        transactions.refuse_read_only(name)
