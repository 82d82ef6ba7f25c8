"""Prepared statements: parsed and typed before any parameter is known.

    prepared = await session.prepare("SELECT note FROM t WHERE id = $1")
    prepared.parameter_types              (INT8,)
    await session.describe(prepared)      (ResultColumn("note", STRING),)
    await session.run(prepared, [7])

What was described stays: when the schema changes so that the result would have other columns,
running it is SQLError 0A000, and the client prepares again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from ...catalog.values.column_types import STRING, ColumnType
from ...catalog.values.errors import SQLError
from ...kvlayer.txn import Transaction
from ..analyze.columns.output_columns import with_origins
from ..analyze.types.parameter_types import TypedStatement, type_parameters
from ..analyze.types.types import Hints
from ..execute.ddl.enum_types import resolve_hints
from ..execute.query.result_shape import columns_of, plain_columns
from ..execute.run import Invocation, bound, holds
from ..execute.write.dml import together_applies
from ..parse import ParsedText
from ..plan.needs import with_locks
from ..plan.planner import plan_statement
from ..plan.plans import Plan, SelectPlan, WithPlan
from ..results.client_types import DeclaredType, DeclaredTypes
from ..results.results import ResultColumn
from ..runtime.authorization import require
from ..runtime.plan_cache import Prepared, lengthy_relations, planned, zoned
from ..runtime.relations import LeaseScope, Resolver, changed_tables
from ..runtime.services import Services
from ..syntax.changefeed_statements import AlterChangefeed
from ..syntax.keyspace_statements import RebalanceReplication
from ..syntax.statement import DDL, Statement
from ..syntax.statements import (
    CopyFrom,
    CopyTo,
    CreateChangefeed,
    ExecutePrepared,
    Explain,
    PlannedStatement,
    Query,
)
from ..syntax.transaction_statements import DeclareCursor


@dataclass(slots=True, eq=False)
class PreparedStatement:
    """One statement, or none (`statement` is None for a text of blanks and comments).

    `columns` are those of its result, once they are known: empty for a statement that returns no
    rows. They are None where only DuckDB or the statement's own run can tell. One that is not
    `lasting` names a type that no table of its own has, and is planned anew each time.
    """

    text: str
    prepared: Prepared
    index: int
    parameter_types: tuple[ColumnType, ...]
    columns: tuple[ResultColumn, ...] | None = None
    lasting: bool = True
    timed: bool = True
    """Whether it may compute no longer than an analytical query: not a COPY."""
    together: bool = False
    """Whether runs of it one behind another may be one write (`Session.run`)."""
    _plan: Plan | None = field(default=None, repr=False)
    statement: Statement | None = field(init=False, repr=False)
    planned: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        statements = self.prepared.statements
        self.statement = statements[self.index] if statements else None
        self.planned = isinstance(self.statement, PlannedStatement)


def invocation_of(
    statement: PreparedStatement,
    parameters: Sequence[object],
    *,
    streamed: bool,
    further: Sequence[Sequence[object]] = (),
) -> Invocation:
    """Returns a run of a prepared statement with its parameters."""
    return Invocation(
        statement.prepared,
        statement.index,
        parameters,
        statement.columns,
        streamed=streamed,
        timed=statement.timed,
        further=further,
    )


async def statements_of(services: Services, text: str) -> list[PreparedStatement]:
    """The statements of a text that has no parameters."""
    prepared = await services.plans.prepared(text)
    if prepared.parameter_count:
        raise _no_parameter(
            "Parameters need the extended protocol: PREPARE, or a driver's arguments."
        )
    count = len(prepared.statements)
    return [PreparedStatement(text, prepared, index, ()) for index in range(count)]


def _no_parameter(hint: str) -> SQLError:
    return SQLError("42P02", "there is no parameter $1", hint=hint)


class Preparing:
    """Prepares and describes for one session: what its open transaction sees, if it has one."""

    def __init__(
        self, services: Services, database: str, opened: Transaction | None, user: str
    ) -> None:
        self._user = user
        self._services = services
        self._database = database
        self._opened = opened

    async def prepare(
        self, text: str, declared: DeclaredTypes, parsed: Prepared | None = None
    ) -> PreparedStatement:
        """Prepares the one statement of `text`. `declared[i]` is the type of `$i+1`, if it is
        declared. `parsed` is the parsed text, from callers that have it: long texts are not
        kept."""
        hints = await self._resolved(declared)
        key = (text, tuple(hints), zoned(self._database))
        known = self._services.plans.typed.get(key)
        if isinstance(known, PreparedStatement) and await self._current(known):
            kept = known.prepared.kept(0, self._database)
            if kept is not None:
                await require(self._services, self._user, kept[1], self._opened)
                return known
        prepared = parsed or await self._services.plans.reading(text)
        if len(prepared.statements) > 1:
            raise SQLError("42601", "cannot insert multiple commands into a prepared statement")
        made = await self._typed(text, prepared, hints)
        if made.planned and made.lasting and not self._changed():
            self._services.plans.keep_typed(key, made)
        return made

    async def _resolved(self, declared: DeclaredTypes) -> Hints:
        if not any(isinstance(hint, DeclaredType) for hint in declared):
            return cast(Hints, declared)
        async with self._services.reading(self._opened) as reader:
            await reader.started()
            return await resolve_hints(self._services, reader, declared)

    async def _typed(self, text: str, prepared: Prepared, hints: Hints) -> PreparedStatement:
        count = prepared.parameter_count
        statement = prepared.statements[0] if prepared.statements else None
        if isinstance(statement, DeclareCursor):
            inner = await self._typed(
                statement.text, await self._services.plans.reading(statement.text), hints
            )
            return PreparedStatement(text, prepared, 0, inner.parameter_types)
        if count and isinstance(statement, CopyFrom | CopyTo):
            raise _no_parameter("COPY takes none: write the values.")
        if not isinstance(statement, PlannedStatement):
            types = tuple(hint or STRING for hint in [*hints, *([None] * count)][:count])
            return PreparedStatement(text, prepared, 0, types)
        services, opened = self._services, self._opened
        with LeaseScope(services.leases) as scope:
            async with services.reading(opened) as reader:
                await reader.started()
                at = reader.read_timestamp
                resolver = Resolver(services, self._database, reader, scope, at, opened)
                relations, needs, named = await bound(
                    resolver, self._user, statement, lengthy=prepared.lengthy_trees
                )

                def work() -> tuple[TypedStatement, Plan]:
                    typed = type_parameters(statement, relations, hints, count)
                    return typed, plan_statement(typed.statement, relations)

                lengthy = prepared.lengthy or lengthy_relations(relations)
                typed, plan = await planned(work, lengthy=lengthy)
        own = Prepared(ParsedText((typed.statement,), count), lengthy=prepared.lengthy)
        if not named and not self._changed():
            own.keep(0, self._database, plan, with_locks(needs, plan))
        made = PreparedStatement(text, own, 0, typed.parameter_types, lasting=not named, _plan=plan)
        made.columns = plain_columns(plan)
        made.together = together_applies(plan)
        return made

    async def describe(self, statement: PreparedStatement) -> tuple[ResultColumn, ...]:
        """The columns of a planned statement. Asks DuckDB where only it knows them."""
        if statement.columns is None:
            plan = statement._plan
            if plan is None:
                plan = (await self._typed(statement.text, statement.prepared, ()))._plan
            if isinstance(plan, WithPlan):
                plan = plan.main
            assert isinstance(plan, SelectPlan), statement  # a write's are known
            columns = await columns_of(plan.analytic, self._services.analytics)
            columns = with_origins(columns, plan.analytic.origins)
            statement.columns = plan.drawn.shown(columns) if plan.drawn else columns
        return statement.columns

    async def _current(self, statement: PreparedStatement) -> bool:
        """Whether the tables are still as they were when the statement was typed."""
        assert statement._plan is not None, statement
        opened = self._opened
        now = await self._services.store.now() if opened is None else opened.read_timestamp
        with LeaseScope(self._services.leases) as scope:
            return await holds(statement._plan, scope, now, self._changed())

    def _changed(self) -> frozenset[int]:
        return changed_tables(self._opened)


def joins_batch(statement: Statement | None) -> bool:
    """Whether a statement becomes part of the transaction that a batch of statements is.

    Those that only show or set something need none, and AS OF SYSTEM TIME reads another time.
    """
    match statement:
        case Query(as_of=as_of):
            return as_of is None
        case CreateChangefeed(sink=sink):
            return sink is not None
        case AlterChangefeed() | RebalanceReplication() | ExecutePrepared():
            return True
        case Explain(analyze=analyze):
            return analyze
    return isinstance(statement, PlannedStatement | DDL)
