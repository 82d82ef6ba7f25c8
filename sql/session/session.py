"""Sessions: a client's statements, one after another, in its database and its transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import NoReturn, TypeVar
from weakref import ref

from ...catalog.descriptors.system_tables import DEFAULT_DATABASE
from ...catalog.rights.audit import ASKED, DONE, AuditEvent
from ...catalog.rights.key_errors import told_to
from ...catalog.rights.rights import Rights
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ..analyze.types.parameter_types import check_parameters
from ..execute.admin.jobs import await_jobs, control_jobs, named_jobs
from ..execute.admin.listings import run_listing
from ..execute.admin.session_calls import CallingSession
from ..execute.admin.subscriptions import SubscriptionReaders
from ..execute.catalog_statements import as_variables_say, change_catalog, run_undone
from ..execute.ddl.schema_changes import set_constraints
from ..execute.query.result_shape import check_columns_same, known_columns
from ..execute.run import Execution, Invocation, run_explain, run_planned
from ..execute.write.copy import CopyIn, begin_copy, copy_refused
from ..execute.write.dml import Apart
from ..parse import ParsedText
from ..results.client_types import DeclaredTypes
from ..results.errors import told_of
from ..results.results import ClosedOnError, Result, ResultColumn
from ..runtime.activity import Activity, SessionState
from ..runtime.analytic_lanes import ANALYTICAL_TIMEOUT, Asker, untimed
from ..runtime.audited import AUDITED, told
from ..runtime.authorization import ROLE, Actor, act_as, begin_as, check_database
from ..runtime.plan_cache import Prepared
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction
from ..syntax import statements
from ..syntax.changefeed_statements import FetchSubscription
from ..syntax.rights_statements import ActAs
from ..syntax.statement import CatalogStatement, Statement, refuse_twice
from ..syntax.statements import PlannedStatement
from ..syntax.transaction_statements import CursorStatement, FetchCursor, TransactionStatement
from ..variables.variables import APPLICATION_NAME, STATEMENT_TIMEOUT, SessionVariables
from .cursors import Cursors
from .immediate import ImmediateStatements
from .prepared import PreparedStatement, Preparing, invocation_of, joins_batch, statements_of
from .prepared_names import PreparedNames
from .session_transactions import SessionTransactions, refuse_where_it_stands
from .session_turn import SessionTurn
from .temporary_tables import drop_all

T = TypeVar("T")
OfJobs = TypeVar("OfJobs", statements.ControlJobs, statements.AwaitJobs)


class Session:
    """Runs statements. One task at a time; others wait for their turn.

    Every error that leaves it is an SQLError, but for faults of the program itself. A text of
    several statements runs them in order, each by itself unless the text says BEGIN, and stops at
    the first error.
    """

    def __init__(
        self, services: Services, *, database: str = DEFAULT_DATABASE, user: str = ROOT
    ) -> None:
        self.database = database
        self.login = user
        self.variables = SessionVariables()
        begin_as(self.variables, user, services.rights)
        self._services = services
        self._store = services.store
        share = services.write_shares.of_session(user)
        self._transactions = SessionTransactions(services, self.variables, share)
        self._turn = SessionTurn(self.variables, partial(_asker, ref(self)), share)
        self._current_values: dict[int, int] = {}  # drawn last, by the ids of sequences
        self.prepared_names = PreparedNames(self._preparing, self._run_prepared)
        self.cursors = Cursors(
            lambda: self._open, self._run_text, services.waiting_results.of(user)
        )
        self._subscriptions = SubscriptionReaders(services)
        self._calls = CallingSession(services, self, self._transactions)
        self.activity = Activity(services.sessions.next_number(), user, services.store)
        self.immediate = ImmediateStatements(
            services, self, self._turn, self._transactions, self.cursors
        )
        services.sessions.add(self)

    @property
    def state(self) -> SessionState:
        return self._transactions.state

    @property
    def in_batch(self) -> bool:
        """Whether `end_batch` has something to commit."""
        return self._transactions.batch

    @property
    def user(self) -> str:
        """The user whose rights its statements have: see `authorization`."""
        return self._transactions.standing.user

    @property
    def terminated(self) -> SQLError | None:
        """The error that ended the session, which is then for closing."""
        return self._transactions.terminated

    @property
    def asker(self) -> Asker:
        """The user of the session's analytical queries, and the seconds that they may compute."""
        own_limit = self.variables.get(STATEMENT_TIMEOUT)
        seconds = 0.0 if own_limit else self._store.settings.get(ANALYTICAL_TIMEOUT)
        return Asker(self.user, self._services.rights.current.admin(self.user), seconds)

    def follow(self) -> None:
        """From here on the running task's time zone and temporary schema are the session's: of a
        task that does nothing else."""
        self._turn.follow()

    def context(self) -> Context:
        """A context of the session's own, in which `immediate` is to be asked."""
        return self._turn.context()

    @property
    def rights(self) -> Rights:
        """Everybody's rights as they are now, a value that never changes."""
        return self._services.rights.current

    @property
    def transaction_opened_at(self) -> datetime | None:
        return self._transactions.opened_at

    def terminate(self) -> None:
        """Ends the running statement and the session. Raises the reason where the session ends
        itself."""
        self.activity.interrupt(self._transactions.terminate())
        if self.activity.on_terminate is not None:
            self.activity.on_terminate()

    @property
    def _open(self) -> OpenTransaction | None:
        return self._transactions.opened

    async def execute(
        self, text: str, parameters: Sequence[object] = (), *, streamed: bool = False
    ) -> list[Result]:
        """The results of the statements of `text`, whose `$1` is `parameters[0]`.

        If `streamed`, the last one's may have batches that are still to come: see `sending`.
        """
        async with self._turn, self._transactions:
            try:
                prepared = await self._services.plans.prepared(text)
                given = check_parameters(parameters, prepared.parameter_count)
                with self.activity.running(text):
                    count = len(prepared.statements)
                    results = await self._transactions.run_all(
                        count,
                        lambda index: self._run_at(
                            Invocation(
                                prepared, index, given, streamed=streamed and index + 1 == count
                            )
                        ),
                    )
                await self.cursors.forget_ended()
                return results
            except BaseException as error:
                await self._failed(error)

    async def _failed(self, error: BaseException) -> NoReturn:
        """Raises what the client is told of an error, the transaction having failed with it."""
        # A cancelled statement has done who knows what: the transaction cannot go on.
        await self._transactions.fail()
        await self.cursors.forget_ended()
        if isinstance(error, SQLError):
            raise told_to(error, self._services.rights.current, self.user) from error.__cause__
        if not isinstance(error, Exception):
            raise error
        raise told_of(error) from error

    # Prepared statements, and batches of them that are one transaction

    async def parse(self, text: str) -> list[PreparedStatement]:
        """The statements of a text without parameters, ready for `run`. Raises SQLError."""
        if self._services.plans.knows(text):  # nothing of it depends on whose turn it is
            return await statements_of(self._services, text)
        async with self._turn:
            return await statements_of(self._services, text)

    async def prepare(self, text: str, hints: DeclaredTypes = ()) -> PreparedStatement:
        """Prepares the one statement of `text`, its parameters typed. Raises SQLError.

        `hints[i]` is the type that the client declares for `$i+1`, or None.
        """
        async with self._turn:
            try:
                return await self._prepare(text, hints)
            except BaseException as error:
                await self._failed(error)

    async def describe(self, prepared: PreparedStatement) -> tuple[ResultColumn, ...]:
        """The columns of a statement's result; empty where it returns no rows.

        A statement that only shows something is run for it, and run again later.
        """
        async with self._turn:
            try:
                return await self._describe(prepared)
            except BaseException as error:
                await self._failed(error)

    async def run(
        self,
        prepared: PreparedStatement,
        parameters: Sequence[object] = (),
        *,
        more: bool = False,
        streamed: bool = False,
        further: Sequence[Sequence[object]] = (),
    ) -> Result:
        """Runs one statement. With `more`, others of the same batch follow.

        The statements of a batch are one transaction, which `end_batch` commits, unless a
        transaction is open already or the batch says BEGIN. If `streamed`, the result may have
        batches that are still to come: see `sending`.

        `further` are the parameters of runs behind it, of a statement whose runs may be one write
        (`together`), as part of a batch. Raises Apart where they may not after all: nothing has
        been done, and each is to be run by itself.
        """
        async with self._turn, self._transactions:
            try:
                if (more or further) and self._open is None and joins_batch(prepared.statement):
                    self._transactions.open_batch()
                wanted = prepared.prepared.parameter_count
                given = check_parameters(parameters, wanted)
                further = [check_parameters(each, wanted) for each in further]
                if prepared.statement is None:
                    return Result(tag="")
                with self.activity.running(prepared.text):
                    invocation = invocation_of(prepared, given, streamed=streamed, further=further)
                    (result,) = await self._transactions.run_all(
                        1, lambda _: self._run_at(invocation)
                    )
                await self.cursors.forget_ended()
                if prepared.columns is not result.columns and prepared.planned:
                    async with ClosedOnError(result):
                        check_columns_same(prepared.columns, result.columns)
                return result
            except Apart:
                raise
            except BaseException as error:
                await self._failed(error)

    def refuse_failed(self) -> None:
        """Raises SQLError 25P02 in a failed transaction, whose results have no more rows."""
        self._transactions.refuse_failed()

    @asynccontextmanager
    async def sending(self, result: Result) -> AsyncIterator[None]:
        """Around the taking of a result's batches: its statement runs until then.

        So it can be cancelled, its time can run out, and its errors fail the transaction. What is
        not taken is still there when it is left without an error.
        """
        async with self._turn, self._transactions:
            try:
                async with ClosedOnError(result):
                    with self.activity.running(self.activity.last_text or ""):
                        async with self._transactions.time_limit():
                            yield
            except (KVError, SQLError) as error:
                await self._failed(error)
            except BaseException:  # of whoever takes them, and tells of it
                await self.fail()
                raise

    async def run_apart(self, text: str, work: Callable[[], Awaitable[T]]) -> T:
        """Returns the result of `work`, a query of a mirror rather than a statement of the store.

        It is listed as `text`, may be cancelled, and has the time of an analytical query.
        """
        async with self._turn, self._transactions:
            try:
                with self.activity.running(text):
                    async with self._transactions.time_limit(
                        self._store.settings.get(ANALYTICAL_TIMEOUT)
                    ):
                        return await work()
            except BaseException as error:
                await self._failed(error)

    async def end_batch(self) -> None:
        """Commits what `run` began by itself. Raises SQLError where that fails."""
        if not self.in_batch:
            return
        async with self._turn:
            try:
                ended = await self._transactions.commit(self._store.clock.wall.monotonic_ns())
                self.activity.note_commit(ended.commit_timestamp)
                await self.cursors.forget_ended()
            except BaseException as error:
                await self._failed(error)

    async def copy_in(self, statement: statements.CopyFrom) -> CopyIn:
        """Begins a COPY FROM in the open transaction, or in that of the batch. Raises SQLError.

        `end_batch` commits it, where no transaction was open; `fail` leaves nothing of it.
        """
        async with self._turn, self._transactions:
            try:
                self._transactions.refuse_failed()
                self._transactions.refuse_read_only("COPY FROM")
                if self._open is None:
                    self._transactions.open_batch()
                opened = self._open
                assert opened is not None, "a batch was opened"
                opened.shown = True  # the rows come once, so it cannot begin anew
                opened.statement_count += 1
                return await begin_copy(self._services, self.database, statement, opened, self.user)
            except BaseException as error:
                await self._failed(error)

    async def copy_out(
        self, statement: statements.CopyTo, text: str, *, more: bool = False
    ) -> Result:
        """The rows of a COPY TO, which is listed as `text`. Raises SQLError."""
        prepared = Prepared(ParsedText((statement.query,), 0))
        copied = PreparedStatement(text, prepared, 0, (), timed=False)
        return await self.run(copied, more=more, streamed=True)

    async def fail(self) -> None:
        """Marks the open transaction as failed because its client could not be served."""
        await self._transactions.fail()

    def columns_of(self, prepared: PreparedStatement) -> tuple[ResultColumn, ...] | None:
        """The columns of a statement's result as far as they are known without running it."""
        statement = prepared.statement
        if prepared.planned:
            return prepared.columns
        if isinstance(statement, statements.ExecutePrepared):
            return self.columns_of(self.prepared_names.executed(statement))
        if isinstance(statement, FetchCursor) and not statement.moves:
            return self.cursors.columns(statement.name)
        if prepared.columns is not None:
            return prepared.columns
        return known_columns(statement)

    async def _run_text(self, text: str, parameters: Sequence[object], *, streamed: bool) -> Result:
        """The result of a query that is part of a statement."""
        query = await self._preparing().prepare(text, ())
        untimed()  # a cursor's, whose rows are fetched as slowly as its client likes
        return await self._run_prepared(query, parameters, streamed=streamed)

    async def _run_prepared(
        self, prepared: PreparedStatement, parameters: Sequence[object], *, streamed: bool
    ) -> Result:
        return await self._run_at(invocation_of(prepared, parameters, streamed=streamed))

    async def _prepare(self, text: str, hints: DeclaredTypes) -> PreparedStatement:
        parsed = await self._services.plans.reading(text)
        if not all(isinstance(found, TransactionStatement) for found in parsed.statements):
            self._transactions.refuse_failed()
        return await self._preparing().prepare(text, hints, parsed)

    def _preparing(self) -> Preparing:
        return Preparing(self._services, self.database, self._transactions.reader, self.user)

    async def _describe(self, prepared: PreparedStatement) -> tuple[ResultColumn, ...]:
        statement = prepared.statement
        if isinstance(statement, statements.ExecutePrepared):
            return await self._describe(self.prepared_names.executed(statement))
        if prepared.planned:
            self._transactions.refuse_failed()
            return await self._preparing().describe(prepared)
        if prepared.columns is None:
            prepared.columns = self.columns_of(prepared)
        if prepared.columns is None:
            self._transactions.refuse_failed()
            unknown = (None,) * prepared.prepared.parameter_count
            shown = await self._run(Invocation(prepared.prepared, prepared.index, unknown))
            prepared.columns = shown.columns
        return prepared.columns

    async def close(self) -> None:
        """Rolls back what is open, and drops temporary tables: those of a store that ends before
        are swept up when it starts again."""
        self._services.sessions.remove(self)
        await self.cursors.close_all()
        await self._subscriptions.close()
        await self._transactions.close()
        with suppress(KVError, SQLError):
            await drop_all(self._services, self._turn.temporary)
        await self.prepared_names.clear()

    async def _run_at(self, invocation: Invocation) -> Result:
        """`_run`, with errors as SQLErrors that say which statement failed."""
        statement = invocation.statement
        if not invocation.timed:
            untimed()
        try:
            if isinstance(statement, TransactionStatement):
                result = await self._transactions.run(statement, invocation.parameters)
                self.activity.note_commit(result.commit_timestamp)
                return result
            if type(statement) in AUDITED:
                self._record(statement, ASKED)
            if self.variables.get(STATEMENT_TIMEOUT):
                async with self._transactions.time_limit():
                    result = await self._run(invocation)
            else:
                result = await self._run(invocation)
            self.activity.note_commit(result.commit_timestamp)
            if type(statement) in AUDITED:
                self._record(statement, DONE)
            return result
        except Apart:
            raise
        except Exception as error:
            refusal = told_of(error)
            refusal.statement = invocation.index
            if type(statement) in AUDITED:
                self._record(statement, refusal.sqlstate)
            raise refusal from error.__cause__ if refusal is error else error

    def _record(self, statement: object, outcome: str) -> None:
        """Tells the audit log of one of the `AUDITED` statements. Raises SQLError 58030.

        What was done in a transaction may yet be rolled back.
        """
        self._services.audit.record(
            AuditEvent(
                event=type(statement).__name__,
                user=self.user,
                outcome=outcome,
                address=self.activity.client_address,
                application=self.variables.get(APPLICATION_NAME),
                database=self.database,
                what=told(statement),
            )
        )

    async def _run(self, invocation: Invocation) -> Result:
        """Queries, writes, and what a session has of its own; the rest is `_run_on_store`."""
        statement, parameters, streamed = (
            invocation.statement,
            invocation.parameters,
            invocation.streamed,
        )
        assert not isinstance(statement, TransactionStatement), statement
        self._transactions.refuse_failed()
        refuse_where_it_stands(statement, self._transactions)
        if isinstance(statement, PlannedStatement):
            execution, opened = self._execution(invocation, statement), self._open
            if opened is None:
                result = await run_planned(execution, None)
            else:
                result = await opened.statement(lambda: run_planned(execution, opened))
            return self._calls.told(result)
        match statement:
            case statements.Explain() as explained:
                return await self._statement(lambda: self._explain(explained, parameters))
            case statements.UseDatabase(name=name):
                return await self._use(name)
            case _ if isinstance(statement, CursorStatement):
                return await self.cursors.run(statement, parameters, streamed=streamed)
            case statements.Discard(target=target):
                return await self._discard(target)
            case statements.Prepare() | statements.ExecutePrepared() | statements.Deallocate():
                if self._open is not None and not isinstance(statement, statements.ExecutePrepared):
                    self._open.shown = True  # what it does to names is not undone, nor done twice
                return await self.prepared_names.run(statement, streamed=streamed)
            case statements.ShowSession(name=name, position=position):
                return self._transactions.show(name, position)
            case statements.SetConstraints():
                return await self._statement(
                    lambda: set_constraints(self._services, self._open, self.database, statement)
                )
            case ActAs():
                return await self._act_as(statement)
            case statements.CopyFrom() | statements.CopyTo():
                raise copy_refused()
            case statements.ReadMirror():
                raise AssertionError("only a mirror's session makes one, and takes it itself")
            case statements.ControlJobs():
                found = await self._with_jobs(statement, parameters)
                return await control_jobs(self._services, found, self.user)
            case statements.AwaitJobs():
                awaited = await self._with_jobs(statement, parameters)
                return await await_jobs(self._services, awaited, self.user)
        return await self._run_on_store(statement, parameters)

    async def _run_on_store(self, statement: Statement, parameters: Sequence[object]) -> Result:
        """Runs a statement that changes or shows the catalog, feeds, jobs, users or settings."""
        services, opened, database, user = self._services, self._open, self.database, self.user
        match statement:
            case statements.CreateChangefeed():
                return await self._run_changefeed(statement)
            case statements.ExplainChangefeed():
                return await run_undone(services, statement, database, user)
            case _ if isinstance(statement, CatalogStatement):
                meant = as_variables_say(statement, self.variables)
                return await change_catalog(services, meant, opened, database, user)
            case FetchSubscription():
                async with self._acting() as actor:
                    return await self._subscriptions.fetch(actor, statement)

        async def listed() -> Result:
            async with self._acting() as actor:
                return await run_listing(actor, statement, parameters)

        return await self._statement(listed)

    async def _statement(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Runs a statement, within the open transaction if there is one."""
        return await (work() if self._open is None else self._open.statement(work))

    def _execution(self, invocation: Invocation, statement: PlannedStatement) -> Execution:
        standing = self._transactions.standing
        return Execution(
            services=self._services,
            invocation=invocation,
            statement=statement,
            database=self.database,
            user=standing.user,
            session_user=self.login,
            process_id=self.activity.process_id,
            text_began_us=self.activity.text_began_us,
            lock_timeout=standing.lock_timeout,
            current_values=self._current_values,
            variables=self.variables,
            calls=self._calls,
        )

    async def _with_jobs(self, statement: OfJobs, given: Sequence[object]) -> OfJobs:
        """The statement with the ids of jobs that its query finds, if it has one."""
        if statement.query is None:
            return statement
        own = Prepared(ParsedText((statement.query,), len(given)))
        execution = self._execution(Invocation(own, 0, given), statement.query)
        found = await run_planned(execution, self._open)
        return replace(statement, job_ids=named_jobs(found), query=None)

    async def _explain(self, explained: statements.Explain, given: Sequence[object]) -> Result:
        statement, analyze = explained.statement, explained.analyze
        if analyze and not isinstance(statement, statements.Query):
            self._transactions.refuse_read_only("EXPLAIN ANALYZE")
        own = Prepared(ParsedText((statement,), len(given)), lengthy=True)
        execution = self._execution(Invocation(own, 0, given), statement)
        async with self._acting() as actor:
            return await run_explain(execution, self._open, actor.reader, analyze=analyze)

    @asynccontextmanager
    async def _acting(self) -> AsyncIterator[Actor]:
        """The user, reading in the open transaction or in a new one that only reads."""
        async with self._services.reading(self._transactions.reader) as reader:
            yield Actor(self._services, self.user, self.database, reader)

    async def _run_changefeed(self, statement: statements.CreateChangefeed) -> Result:
        refuse_twice(statement.options)
        if statement.sink is None:
            self._transactions.refuse_written("a changefeed without a sink")
            return await run_undone(self._services, statement, self.database, self.user)
        self._transactions.refuse_read_only("CREATE CHANGEFEED")
        return await change_catalog(self._services, statement, self._open, self.database, self.user)

    async def _discard(self, target: str) -> Result:
        """DISCARD, CLOSE ALL, UNLISTEN: there are no channels."""
        if target == "DISCARD ALL":
            self._transactions.refuse_block("DISCARD ALL")
            await self._transactions.advisory_locks.release_all()
            self.variables.reset(ROLE.name)
            self.variables.reset("all")
            await self._subscriptions.close()
            await self.prepared_names.clear()
        if target in ("DISCARD ALL", "CLOSE CURSOR ALL"):
            await self.cursors.close_all()
        if target in ("DISCARD ALL", "DISCARD TEMP"):
            await drop_all(self._services, self._turn.temporary)
        if target in ("DISCARD ALL", "DISCARD SEQUENCES"):
            self._current_values = {}
        return Result(tag=target)

    async def _act_as(self, statement: ActAs) -> Result:
        block = None if self._transactions.batch else self._open
        async with self._acting() as actor:
            return await act_as(actor, statement, self.variables, block)

    async def _use(self, name: str) -> Result:
        async with self._acting() as actor:
            await check_database(actor, name)
        self.database = name
        return Result(tag="SET")


def _asker(session: ref[Session]) -> Asker | None:
    found = session()
    return None if found is None else found.asker
