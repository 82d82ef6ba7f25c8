"""Statements that list something, or change what is in no transaction: each with the reader that it
is given, as its user may."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.rights.privileges import Privilege
from ...results.results import Result
from ...runtime.authorization import Actor
from ...runtime.relations import LeaseScope
from ...syntax.changefeed_statements import ShowSchedules, ShowSubscriptions
from ...syntax.connection_statements import ShowConnections
from ...syntax.keyspace_statements import ShowKeyspaceRanges, ShowKeyspaces, ShowReplications
from ...syntax.relaxed_statements import ShowRelaxedLogs
from ...syntax.rights_statements import RightsListing
from ...syntax.show_statements import Cancel, ShowObjects
from ...syntax.statements import ExplainChange, ShowRanges
from ...syntax.user_statements import ShowUsers
from ..changer import Changer
from ..ddl.ddl_needs import check_ddl
from ..ddl.schema_changes import SchemaChangeStatements
from .connections import show_connections
from .grants import show_rights
from .keyspaces import show_keyspace_ranges, show_keyspaces, show_relaxed_logs
from .ranges import RangeStatement, run_ranges
from .replications import show_replications, show_tasks
from .schedules import show_schedules
from .show import Show, cancel, run_show, show_objects
from .subscriptions import show_subscriptions
from .users import show_users

Listing = (
    Show
    | ShowRelaxedLogs
    | ShowKeyspaces
    | ShowKeyspaceRanges
    | ShowReplications
    | ShowSubscriptions
    | ShowSchedules
    | ShowConnections
    | ShowUsers
    | RightsListing
    | ShowObjects
    | Cancel
    | RangeStatement
    | ExplainChange
)


async def run_listing(
    actor: Actor, statement: Listing, parameters: Sequence[object] = ()
) -> Result:
    """Runs a SHOW statement that lists objects, jobs or settings. Raises SQLError 42501."""
    match statement:
        case ShowUsers():
            return await show_users(actor.reader)
        case ShowRelaxedLogs():
            return await show_relaxed_logs(actor)
        case ShowKeyspaces():
            return await show_keyspaces(actor)
        case ShowKeyspaceRanges():
            return await show_keyspace_ranges(actor, statement)
        case ShowReplications(tasks_of=None):
            return await show_replications(actor)
        case ShowReplications(tasks_of=str(name)):
            return await show_tasks(actor, name)
        case ShowSubscriptions():
            return await show_subscriptions(actor)
        case ShowSchedules():
            return await show_schedules(actor, statement)
        case ShowConnections():
            return await show_connections(actor, statement)
        case Cancel():
            return await cancel(actor, statement)
        case ExplainChange():
            return await _explain_change(actor, statement)
        case _ if isinstance(statement, RangeStatement):
            return await _ranges(actor, statement, parameters)
        case _ if isinstance(statement, RightsListing):
            return await show_rights(actor, statement)
        case _ if isinstance(statement, ShowObjects):
            return await show_objects(actor, statement)
    assert isinstance(statement, Show), statement
    return await run_show(actor, statement)


async def _explain_change(actor: Actor, statement: ExplainChange) -> Result:
    scope = LeaseScope(actor.services.leases)
    try:
        await check_ddl(actor, statement.statement)
        changer = Changer(actor.services, actor.user, actor.database, actor.reader, scope)
        return await SchemaChangeStatements(changer).explain(statement.statement)
    finally:
        scope.release()


async def _ranges(actor: Actor, statement: RangeStatement, parameters: Sequence[object]) -> Result:
    needed = Privilege.SELECT if isinstance(statement, ShowRanges) else Privilege.INSERT
    await actor.need_named(statement.of.table, needed)
    return await run_ranges(actor.services, statement, actor.reader, actor.database, parameters)
