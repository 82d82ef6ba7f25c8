"""Statements that are carried out at once: in the step of the loop in which their client asks.

    SELECT note FROM t WHERE id = $1          one row by its whole key
    INSERT INTO t VALUES ($1, $2)             one row
    UPDATE t SET n = n + 1 WHERE id = $1      DELETE too: one row by its whole key
    BEGIN, COMMIT                             without modes

Most statements of most programs are these, prepared, and most of them wait for nothing but their
commit's way to the disk. The ordinary way gives each what any statement may need: a turn among the
session's tasks, a place to be cancelled at, attempts, facts of the client, a result of any shape.
That is four times the work of the row itself.

A statement is carried out at once where all of this holds, and else the ordinary way:

- The store is in this process, the session has nothing else to see to (no other task has its turn,
  no timer runs, no cursor or temporary table is there), and its variables set no time limits.
- Its plan is kept, for the version of its table that the node claims for the statement's timestamp.
- Its user is known to have the rights that the plan needs, as they are now.
- Nothing of the store is in its way: no lock, no version that is not durable.

It is right because a step is not divided. What was looked at in it (the session's state, the claim,
the rights, the locks) holds for all of it, and where something is missing it raises TakesWaiting,
having done nothing that a second run would notice. So every error, too, is told by the ordinary
way, which meets it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.rights.users import ROOT
from ...kvlayer.access import Immediate, Release
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import TakesWaiting
from ...kvlayer.transaction_modes import Isolation
from ...kvlayer.txn.immediate import finished
from ..analyze.calls.client_functions import UNTOLD
from ..analyze.scalars import Bindings
from ..execute.query.reading import PointRead, point_read_applies
from ..execute.query.result_shape import check_columns_same
from ..execute.write.dml import DML, at_once_applies, evaluating, run_in, tag_of
from ..plan.needs import Needs
from ..plan.plans import Plan, SelectPlan, WithPlan
from ..results.results import ResultColumn, Row
from ..runtime.activity import SessionView
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction
from ..syntax.statements import Query
from .cursors import Cursors
from .prepared import PreparedStatement
from .session_transactions import SessionTransactions
from .session_turn import SessionTurn

KNOWN_MAX = 100
TEXT_LENGTH_MAX = 4096
"""Prepared statements, and the characters of each, of which a session remembers how they are
carried out at once, whatever it has deallocated since. Longer ones take the ordinary way."""

ROW_TAGS = ("SELECT 0", "SELECT 1")


class Outcome(Struct, frozen=True):
    """A statement that was carried out. Where it committed what is not durable yet, its client is
    told of it when it is released, and of an error if there is one."""

    tag: str
    columns: tuple[ResultColumn, ...] = ()
    rows: Sequence[Row] = ()
    in_transaction: bool = False
    release: Release | None = None


class Known(Struct, frozen=True):
    """A prepared statement, by a plan for one version of its table: a query or a write."""

    statement: PreparedStatement
    table: TableDescriptor
    needs: Needs
    read: PointRead | None
    write: DML | None


class ImmediateStatements:
    """Carries out statements of one session at once. Every method raises TakesWaiting, for errors
    too: the ordinary way meets them again, and tells of them."""

    def __init__(
        self,
        services: Services,
        session: SessionView,
        turn: SessionTurn,
        transactions: SessionTransactions,
        cursors: Cursors,
    ) -> None:
        self._services = services
        self._leases = services.leases
        self._rights = services.rights
        self._store = services.store.immediate
        self._session = session
        self._turn = turn
        self._transactions = transactions
        self._cursors = cursors
        self._known: dict[PreparedStatement, Known | None] = {}
        """By what is prepared; None for what is not among these statements."""
        self._standing, self._database = transactions.standing, session.database
        """The variables and the database of which what is known is true: plans are kept by the time
        zone, which is a variable."""

    def heard(self) -> None:
        """The session's client has sent something, whatever it is."""
        if self._store is not None:
            self._store.heard(self._session.activity.process_id)

    def run(self, statement: PreparedStatement, parameters: Sequence[object]) -> Outcome:
        """Runs a prepared statement by itself, or in the open transaction."""
        try:
            store, opened = self._ready(), self._transactions.opened
            known = self._find(statement)
            if opened is not None:
                return self._run_in(known, store, opened, parameters)
            at = store.now()
            claim_end = self._claim(known, at)
            bindings = self._bindings(known, parameters, at)
            if known.read is not None:
                return self._read(known, known.read, store, bindings, at)
            return self._write(known, store, bindings, at, claim_end)
        except Exception as error:
            raise TakesWaiting from error

    def begin(self, text: str) -> Outcome:
        """Runs BEGIN."""
        try:
            self._ready()
            self._transactions.begin_at_once()
        except Exception as error:
            raise TakesWaiting from error
        self._session.activity.begin(text)
        return Outcome("BEGIN")

    def commit(self, text: str) -> Outcome:
        """Runs COMMIT in the open transaction."""
        try:
            commit = self._transactions.commit_at_once(self._ready())
        except Exception as error:
            raise TakesWaiting from error
        self._session.activity.note_commit(commit.timestamp)
        self._session.activity.begin(text)
        return Outcome("COMMIT", release=commit.release)

    # What must hold

    def _ready(self) -> Immediate:
        store = self._store
        if store is None or self._turn.locked() or self._transactions.hindered:
            raise TakesWaiting
        if self._cursors.declared or self._turn.temporary.name:
            raise TakesWaiting
        standing, database = self._transactions.standing, self._session.database
        if standing is not self._standing or database != self._database:
            self._known.clear()
            self._standing, self._database = standing, database
        if standing.timed:
            raise TakesWaiting
        return store

    def _find(self, statement: PreparedStatement) -> Known:
        known = self._known.get(statement)
        if known is None:
            known = self._learned(statement)
        user = self._standing.user
        if user != ROOT and not self._rights.current.known_met(user, known.needs):
            raise TakesWaiting
        return known

    def _learned(self, statement: PreparedStatement) -> Known:
        if statement in self._known or len(statement.text) > TEXT_LENGTH_MAX:
            raise TakesWaiting  # for good
        kept = statement.prepared.kept(statement.index, self._session.database)
        if kept is None:
            raise TakesWaiting  # until it has been planned
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        known = self._known[statement] = _known(statement, *kept)
        if known is None:
            raise TakesWaiting
        return known

    def _claim(self, known: Known, at: Timestamp) -> Timestamp:
        """The end of the claim that the statement's table is as it was planned for."""
        end = self._leases.claim_end(known.table, at)
        if end is None:
            self._forget(known)
            raise TakesWaiting
        return end

    def _forget(self, known: Known) -> None:
        """The table is another, or will be: the ordinary way plans anew."""
        self._known.pop(known.statement, None)

    def _bindings(self, known: Known, parameters: Sequence[object], at: Timestamp) -> Bindings:
        return Bindings(
            parameters,
            at,
            generators=self._services.generators,
            client=UNTOLD,
            slots=known.statement.prepared.slots,
        )

    # By itself

    def _read(
        self, known: Known, read: PointRead, store: Immediate, bindings: Bindings, at: Timestamp
    ) -> Outcome:
        key = read.key(bindings)
        rows: Sequence[Row] = ()
        if key is not None:
            rows = read.rows(key, store.get(key, at), bindings)
        self._session.activity.begin(known.statement.text)
        return Outcome(ROW_TAGS[len(rows)], read.names, rows)

    def _write(
        self,
        known: Known,
        store: Immediate,
        bindings: Bindings,
        at: Timestamp,
        claim_end: Timestamp,
    ) -> Outcome:
        plan = known.write
        if plan is None or self._standing.modes.read_only:
            raise TakesWaiting
        called_ns = self._services.store.clock.wall.monotonic_ns()
        evaluate = finished(evaluating(plan, bindings))
        commit = store.commit(
            evaluate, at=at, deadline=lambda: claim_end, commit_called_ns=called_ns
        )
        # Nothing stands behind the commit that may fail.
        self._session.activity.note_commit(commit.timestamp)
        self._session.activity.begin(known.statement.text)
        return Outcome(tag_of(plan, commit.result.count), release=commit.release)

    # In the open transaction

    def _run_in(
        self, known: Known, store: Immediate, opened: OpenTransaction, parameters: Sequence[object]
    ) -> Outcome:
        transaction, modes = opened.transaction, opened.modes
        if (
            self._transactions.batch
            or opened.failed
            or modes.isolation is Isolation.READ_COMMITTED
            or modes.as_of is not None
            or transaction.commit_checks
        ):
            raise TakesWaiting
        if not opened.scope.take(known.table, transaction.read_timestamp):
            self._forget(known)
            raise TakesWaiting
        transaction.lock_timeout = self._standing.lock_timeout
        bindings = self._bindings(known, parameters, opened.began)
        if known.read is not None:
            key = known.read.key(bindings)
            rows: Sequence[Row] = ()
            if key is not None:
                (body,) = finished(transaction.get_each((key,)))
                rows = known.read.rows(key, body, bindings)
            outcome = Outcome(ROW_TAGS[len(rows)], known.read.names, rows, in_transaction=True)
        else:
            if known.write is None or modes.read_only:
                raise TakesWaiting
            written = store.write(transaction, run_in(known.write, transaction, bindings))
            outcome = Outcome(tag_of(known.write, written.count), in_transaction=True)
        opened.statement_count += 1
        opened.shown = True
        self._session.activity.begin(known.statement.text)
        return outcome


def _known(statement: PreparedStatement, plan: Plan, needs: Needs) -> Known | None:
    """The plan's statement, if it is one of those that are carried out at once."""
    if len(plan.relations) != 1 or isinstance(plan, WithPlan):
        return None
    (table,) = plan.relations
    if table.id < FIRST_USER_ID:
        return None
    if isinstance(plan, SelectPlan):
        query = statement.statement
        if not isinstance(query, Query) or query.as_of is not None or not point_read_applies(plan):
            return None
        read = PointRead(plan)
        check_columns_same(statement.columns, read.names)
        return Known(statement, table, needs, read, None)
    if table is not plan.descriptor or not at_once_applies(plan):
        return None
    return Known(statement, table, needs, None, plan)
