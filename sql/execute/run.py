"""Queries and DML, from prepared text to result, by themselves or in a transaction.

A plan is used only while the tables that it was made from are leased in the very versions that it
knows. Where they are not, the statement is planned again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace as replaced

from msgspec import Struct, field
from msgspec.structs import replace

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.leases import DescriptorUnavailable
from ...catalog.rights.users import ROOT
from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp
from ...kvlayer.timestamp import unix_us
from ...kvlayer.txn import Transaction
from ..access.key_access import KeyAccess
from ..analyze.binder import Relations, tables_of
from ..analyze.calls.client_functions import ClientFacts
from ..analyze.calls.row_calls import Generators, SessionCalls, ValueNeeded
from ..analyze.enum_casts import unbound_types
from ..analyze.given_tables import is_virtual
from ..analyze.scalars import Bindings, Deferral
from ..introspection.registry import Introspection
from ..lower.transpile import TableScan
from ..plan.needs import Needs, needs_of, with_locks
from ..plan.planner import plan_statement
from ..plan.plans import DeletePlan, InsertPlan, Plan, SelectPlan, UpdatePlan, WithPlan
from ..results.as_of import resolve_as_of
from ..results.results import Result, ResultColumn, Row, listing
from ..results.table_reads import Images, Source, Trace
from ..runtime.authorization import require
from ..runtime.plan_cache import Prepared, lengthy_relations, planned
from ..runtime.relations import LeaseScope, Resolver, changed_tables, is_sequence
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction, attempts, in_transaction
from ..syntax import statements
from ..syntax.statement import AsOf, Statement
from ..syntax.statements import PlannedStatement
from ..variables.variables import DEFAULT_READ_ONLY, SessionVariables
from .ddl.enum_types import bind_named_enums
from .query.locking import run_locking
from .query.reading import run_select
from .query.result_shape import check_columns_same, plain_columns
from .query.streaming import stream_select
from .write.dml import DML, evaluating, one_phase_applies, result_of, run_together, run_whole
from .write.sequences import DrawnValues, SequencesOfUser
from .write.steps import TooWide


class Invocation(Struct, frozen=True):
    """A request to run one statement of a prepared text.

    `described` are the columns that the client was told of; `streamed` says that it takes batches;
    `further` are the parameters of runs that are to be one write with this one.
    """

    prepared: Prepared
    index: int
    parameters: Sequence[object]
    described: tuple[ResultColumn, ...] | None = None
    streamed: bool = False
    timed: bool = True
    further: Sequence[Sequence[object]] = ()

    @property
    def statement(self) -> Statement:
        return self.prepared.statements[self.index]


class Execution(Struct, frozen=True, kw_only=True):
    """One statement of a prepared text, about to run with its parameters. Each has one, and a
    frozen dataclass of so many fields would take two microseconds to make."""

    services: Services
    invocation: Invocation
    statement: PlannedStatement
    database: str
    user: str = ROOT
    session_user: str = ROOT
    process_id: int = 0
    text_began_us: int = 0
    """The wall's time at which the client's text came in."""
    lock_timeout: float | None = None
    variables: SessionVariables = field(default_factory=SessionVariables)
    trace: Trace | None = None
    current_values: dict[int, int] = field(default_factory=dict)
    generators: Generators | None = None
    """Generators of default values, where they are not the node's."""
    now: Timestamp | None = None
    """The time that now() tells, where it is not the attempt's own."""
    calls: SessionCalls | None = None
    """Runs the `SessionCalls` of a query."""


async def run_planned(execution: Execution, opened: OpenTransaction | None) -> Result:
    """Runs a query or DML in the open transaction, or as a transaction by itself, with which what
    it sets of the session's variables ends or fails."""
    variables = execution.variables
    before = variables.mark() if opened is None else None
    try:
        try:
            return await _run_planned(execution, opened)
        except ValueNeeded:
            return await _run_drawing(execution, opened)
    except BaseException:
        if before is not None:
            variables.restore(before)
        raise
    finally:
        if before is not None:
            variables.end_transaction()


async def _run_drawing(execution: Execution, opened: OpenTransaction | None) -> Result:
    """Runs a statement that needs values of sequences until it has all: its result is whole."""
    if opened is None:
        transaction, now = None, await execution.services.store.now()
        reads_only = execution.variables.get(DEFAULT_READ_ONLY)
    else:
        transaction, now, reads_only = opened.transaction, opened.began, opened.modes.read_only
    execution = replace(execution, now=now)
    user, database = execution.user, execution.database
    drawn = DrawnValues(
        _bindings(execution, now),
        SequencesOfUser(execution.services, user, database, transaction, reads_only=reads_only),
        execution.current_values,
    )
    whole = replace(execution.invocation, streamed=False)
    drawing = replace(execution, generators=drawn, invocation=whole)
    return await drawn.run(lambda: _run_planned(drawing, opened))


async def _run_planned(execution: Execution, opened: OpenTransaction | None) -> Result:
    statement = execution.statement
    if isinstance(statement, statements.Query):
        as_of = statement.as_of
        if statement.lock is not None and opened is None:
            return await attempts(execution.services, lambda scope: _lock(execution, scope))
        if opened is None:
            return await attempts(execution.services, lambda scope: _query(execution, as_of, scope))
        if as_of is not None:
            raise SQLError(
                "0A000",
                "AS OF SYSTEM TIME cannot be used inside a transaction",
                position=as_of.position,
                hint="Write it behind BEGIN.",
            )
        return await _query_in(execution, opened)
    if opened is None:
        return await attempts(execution.services, lambda scope: _write(execution, scope))
    return await _write_in(execution, opened)


async def _query(execution: Execution, as_of: AsOf | None, scope: LeaseScope) -> Result:
    store = execution.services.store
    now: Timestamp | None = None
    read_at: Timestamp | None = None
    if as_of is not None:
        now = await store.now()
        read_at = resolve_as_of(as_of, execution.invocation.parameters, now)
    transaction = store.begin(
        read_timestamp=read_at, read_only=True, lock_timeout=execution.lock_timeout
    )
    try:
        await transaction.started()
        if read_at is not None:
            scope.look_back(execution.services.catalog.descriptors, transaction)
        plan = await _query_plan(execution, scope, transaction)
        at = transaction.read_timestamp if now is None else now
        bindings = _bindings(execution, at, calls=execution.calls)
        return await _select(execution, plan, transaction, bindings)
    finally:
        await transaction.rollback()


async def _query_in(execution: Execution, opened: OpenTransaction) -> Result:
    transaction = opened.transaction
    bindings = _bindings(execution, opened.began, calls=execution.calls)
    plan = await _query_plan(execution, opened.scope, transaction)
    if plan.locking is not None:
        opened.refuse_read_only("SELECT FOR UPDATE")
        return await run_locking(plan, transaction, bindings)
    return await _select(execution, plan, transaction, bindings)


async def _select(
    execution: Execution, plan: SelectPlan, transaction: Transaction, bindings: Bindings
) -> Result:
    if execution.invocation.streamed and plan.drawn is None:
        waiting = execution.services.waiting_results.of(execution.session_user)
        return await stream_select(plan, transaction, bindings, waiting)
    return await run_select(plan, transaction, bindings)


async def _lock(execution: Execution, scope: LeaseScope) -> Result:
    """Runs a locking query outside of a transaction: it waits for the rows' locks, and releases
    its own at the end."""

    async def work(transaction: Transaction) -> Result:
        bindings = _bindings(execution, transaction.read_timestamp)
        plan = await _query_plan(execution, scope, transaction)
        return await run_locking(plan, transaction, bindings)

    result, _, _ = await in_transaction(
        execution.services.store, scope, work, lock_timeout=execution.lock_timeout
    )
    return result


async def _write(execution: Execution, scope: LeaseScope) -> Result:
    store = execution.services.store
    at = await store.now()
    bindings = _bindings(execution, at)
    plan = await _write_plan(execution, scope, at, None)
    if not isinstance(plan, WithPlan) and one_phase_applies(plan):
        with suppress(TooWide):
            evaluate = await evaluating(plan, bindings)
            called_ns = store.clock.wall.monotonic_ns()
            done, done_at = await store.one_phase(
                evaluate,
                deadline=scope.deadline,
                commit_called_ns=called_ns,
                lock_timeout=execution.lock_timeout,
            )
            return result_of(plan, done, done_at)
    written, committed_at, _ = await in_transaction(
        store,
        scope,
        lambda transaction: run_whole(plan, transaction, bindings),
        lock_timeout=execution.lock_timeout,
    )
    return result_of(plan, written, committed_at)


async def _write_in(execution: Execution, opened: OpenTransaction) -> Result:
    transaction = opened.transaction
    bindings = _bindings(execution, opened.began, deferral=opened.deferred)
    at = transaction.read_timestamp
    plan = await _write_plan(execution, opened.scope, at, transaction)
    if execution.invocation.further:
        runs = [bindings, *map(bindings.given, execution.invocation.further)]
        first, *others = await run_together(plan, transaction, runs)
        return replaced(first, further=tuple(others))
    written = await run_whole(plan, transaction, bindings)
    return result_of(plan, written, None)


def _bindings(
    execution: Execution,
    at: Timestamp,
    *,
    calls: SessionCalls | None = None,
    deferral: Deferral | None = None,
) -> Bindings:
    services, database, user = execution.services, execution.database, execution.user
    variables = execution.variables
    now = execution.now or at
    facts = ClientFacts(
        user=user,
        session_user=execution.session_user,
        database=database,
        process_id=execution.process_id,
        # Never before now(), which is drawn behind it where the statement is its transaction.
        statement_began_us=max(execution.text_began_us, unix_us(now)),
        read_at=at,
        variables=variables,
    )
    return Bindings(
        execution.invocation.parameters,
        now,
        Introspection(services, database, user, variables),
        execution.generators or services.generators,
        facts,
        services.images,
        execution.trace,
        execution.invocation.prepared.slots,
        calls,
        deferral,
        services.analytics,
    )


# Plans


async def _plan(
    execution: Execution, scope: LeaseScope, at: Timestamp, transaction: Transaction | None
) -> Plan:
    """The plan of a statement. One in a transaction may see tables that nobody else does."""
    kept = execution.invocation.prepared.kept(execution.invocation.index, execution.database)
    if kept is not None and await holds(kept[0], scope, at, changed_tables(transaction)):
        known, needs = kept
        if execution.user != ROOT:
            await require(execution.services, execution.user, needs, transaction)
        return known
    services, database = execution.services, execution.database
    if transaction is None:
        reader = services.store.snapshot(at)
        return await _plan_anew(execution, Resolver(services, database, reader, scope, at, None))
    resolver = Resolver(services, database, transaction, scope, at, transaction)
    with transaction.tracking(False):  # the leases' deadline says what still holds at the commit
        return await _plan_anew(execution, resolver)


async def _query_plan(
    execution: Execution, scope: LeaseScope, transaction: Transaction
) -> SelectPlan:
    plan = await _plan(execution, scope, transaction.read_timestamp, transaction)
    assert isinstance(plan, SelectPlan), plan
    return plan


async def _write_plan(
    execution: Execution, scope: LeaseScope, at: Timestamp, transaction: Transaction | None
) -> DML | WithPlan:
    """Raises SQLError 42501 for the system's tables, which the system writes."""
    plan = await _plan(execution, scope, at, transaction)
    assert not isinstance(plan, SelectPlan), plan
    for part in plan.parts if isinstance(plan, WithPlan) else (plan,):
        if not isinstance(part, SelectPlan) and part.descriptor.id < FIRST_USER_ID:
            raise SQLError("42501", f'permission denied for table "{part.descriptor.name}"')
    return plan


async def _plan_anew(execution: Execution, resolver: Resolver) -> Plan:
    statement, database = execution.statement, execution.database
    prepared, walks = execution.invocation.prepared, execution.invocation.prepared.lengthy_trees
    relations, needs, named = await bound(resolver, execution.user, statement, lengthy=walks)
    lengthy = prepared.lengthy or lengthy_relations(relations)

    def made() -> tuple[Plan, bool]:
        plan = plan_statement(statement, relations)
        return plan, prepared.takes(plan)

    plan, taken = await planned(made, lengthy=lengthy)
    if not taken:
        own = prepared.own_statement()
        assert isinstance(own, PlannedStatement), own
        unbound = unbound_types(own, relations)
        await bind_named_enums(resolver, own, unbound)
        plan = await planned(lambda: plan_statement(own, relations), lengthy=lengthy)
    needs = with_locks(needs, plan)
    await require(resolver.services, execution.user, needs, resolver.transaction)
    check_columns_same(execution.invocation.described, plain_columns(plan))
    if taken and not named and not changed_tables(resolver.transaction):
        prepared.keep(execution.invocation.index, database, plan, needs)
    return plan


async def bound(
    resolver: Resolver, user: str, statement: PlannedStatement, *, lengthy: bool
) -> tuple[Relations, Needs, bool]:
    """The tables of a statement, leased, the privileges that it needs, and whether it names
    enumerations, which are bound in it.

    Raises SQLError 42501 before the statement is planned: what is said of columns is for those who
    may see the table.
    """
    tables = await planned(lambda: tables_of(statement), lengthy=lengthy)
    relations = await resolver.relations(tables.names)
    needs, unbound = await planned(
        lambda: (needs_of(statement, tables, relations), unbound_types(statement, relations)),
        lengthy=lengthy,
    )
    await require(resolver.services, user, needs, resolver.transaction)
    return relations, needs, await bind_named_enums(resolver, statement, unbound)


async def holds(plan: Plan, scope: LeaseScope, at: Timestamp, changed: frozenset[int]) -> bool:
    """Leases the plan's tables at `at`, and says whether they are as when it was made."""
    for table in plan.relations:
        if is_sequence(table):
            return False  # no lease tells of a sequence that is dropped
        if table.id < FIRST_USER_ID:
            continue
        if table.id in changed:
            return False
        try:
            leased = await scope.table(table.id, at)
        except DescriptorUnavailable:
            return False
        if leased is not table and leased != table:
            return False
    # It changes no lease of these: each is then the only version that the plan was made for.
    return scope.known_together(at)


async def run_explain(
    execution: Execution, opened: OpenTransaction | None, reader: Transaction, *, analyze: bool
) -> Result:
    """EXPLAIN of a statement, which with `analyze` is carried out: in the open transaction, or by
    itself. `reader` sees the tables that the statement will."""
    with LeaseScope(execution.services.leases) as scope:
        await reader.started()
        plan = await _plan(execution, scope, reader.read_timestamp, reader)
    if not analyze:
        return explained(plan, execution.services.images)
    trace = Trace(execution.services.store.clock.wall)
    began = trace.begin()
    result = await run_planned(replace(execution, trace=trace), opened)
    return analyzed(plan, trace, result, trace.since(began))


def explained(plan: Plan, images: Images | None) -> Result:
    """The plan as it would be carried out now: the engine of its last part, and its tables."""
    rows: list[Row] = [("engine", _engine(plan))]
    found, access = _reads(plan)
    scans = {scan.descriptor.id: scan for scan in found}
    accesses = [access, *(scan.access for scan in found)]
    indexes = {each.descriptor.id: each.index.name for each in accesses if each and each.secondary}
    for table in plan.relations:
        rows.append(("table", table.name))
        scan = scans.get(table.id)
        if scan is not None:
            rows.append(("read", _source(scan, images).value))
        if table.id in indexes:
            rows.append(("index", indexes[table.id]))
    return _result(rows)


def analyzed(plan: Plan, trace: Trace, result: Result, milliseconds: float) -> Result:
    """Returns EXPLAIN ANALYZE's rows for a statement that has run: reads in their order, then
    DuckDB's time, counts and the total."""
    engine = _engine(plan)
    if trace.duckdb_milliseconds is not None and not engine.startswith("duckdb"):
        engine = f"{engine}, then duckdb"  # a key range turned out to be long
    rows: list[Row] = [("engine", engine)]
    for read in trace.reads:
        told = f"{read.source.value}: {read.rows} rows, {read.milliseconds:.3f} ms"
        told += f", {read.changed} changed" if read.source is Source.CACHE else ""
        rows += [("table", read.table), ("read", told)]
    if not trace.reads:
        rows += [("table", table.name) for table in plan.relations]
    if trace.duckdb_milliseconds is not None:
        rows.append(("duckdb", f"{trace.duckdb_milliseconds:.3f} ms"))
    what = "rows" if result.returns_rows or isinstance(plan, SelectPlan) else "rows written"
    rows += [(what, str(result.row_count)), ("total", f"{milliseconds:.3f} ms")]
    return _result(rows)


def _result(rows: list[Row]) -> Result:
    return listing("EXPLAIN", "property value", rows)


def _source(scan: TableScan, images: Images | None) -> Source:
    table: TableDescriptor = scan.descriptor
    if is_virtual(table):
        return Source.VIRTUAL
    if images is not None and images.holds(table):
        return Source.CACHE
    return Source.SCAN if scan.access is None else scan.access.source(covered=scan.covered)


def _engine(plan: Plan) -> str:
    """Returns the engine that reads for a plan."""
    match plan:
        case WithPlan(main=main):
            return _engine(main)
        case InsertPlan(query=query) if query is not None:
            return _engine(query)
        case SelectPlan(native=native) if native is not None:
            return _native(native.access, covered=native.covered)
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder) if finder.access is not None:
            return _native(finder.access, covered=False)
        case InsertPlan():
            return _POINTS
    return "duckdb over a snapshot"


_POINTS = "native: point reads"


def _native(access: KeyAccess, *, covered: bool) -> str:
    return _POINTS if access.points else f"native: {access.source(covered=covered).value}"


def _reads(plan: Plan) -> tuple[Sequence[TableScan], KeyAccess | None]:
    """The table scans of a plan that DuckDB reads, and the access of what is read by key."""
    match plan:
        case WithPlan(parts=parts, main=main):
            return [scan for part in parts for scan in _reads(part)[0]], _reads(main)[1]
        case SelectPlan(native=None, analytic=analytic):
            return analytic.scans, None
        case SelectPlan(native=native) if native is not None:
            return (), native.access
        case InsertPlan(query=query) if query is not None:
            return _reads(query)
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder):
            return () if finder.analytic is None else finder.analytic.scans, finder.access
    return (), None
