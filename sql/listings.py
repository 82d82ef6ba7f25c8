"""Statements that list something, or change what is in no transaction: each with the reader that it
is given, as its user may."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalog.privileges import Privilege
from .authorization import Actor, check_show
from .ddl_needs import check_ddl
from .executor.ranges import RangeStatement, run_ranges
from .executor.schema_changes import SchemaChangeStatements
from .executor.show import Show, run_show
from .executor.show_grants import show_rights
from .executor.show_objects import cancel, show_objects
from .executor.users import show_users
from .parser.rights_statements import RightsListing
from .parser.show_statements import Cancel, ShowObjects
from .parser.statements import ExplainChange, ShowRanges
from .parser.user_statements import ShowUsers
from .relations import LeaseScope
from .results import Result

Listing = Show | ShowUsers | RightsListing | ShowObjects | Cancel | RangeStatement | ExplainChange


async def run_listing(
    actor: Actor, statement: Listing, parameters: Sequence[object] = ()
) -> Result:
    match statement:
        case ShowUsers():
            return await show_users(actor.reader)
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
    await check_show(actor, statement)
    return await run_show(actor.services, statement, actor.reader, actor.database)


async def _explain_change(actor: Actor, statement: ExplainChange) -> Result:
    scope = LeaseScope(actor.services.leases)
    try:
        await check_ddl(actor, statement.statement)
        changer = SchemaChangeStatements(actor.services, actor.reader, scope, actor.database)
        return await changer.explain(statement.statement)
    finally:
        scope.release()


async def _ranges(actor: Actor, statement: RangeStatement, parameters: Sequence[object]) -> Result:
    needed = Privilege.SELECT if isinstance(statement, ShowRanges) else Privilege.INSERT
    await actor.need_named(statement.of.table, needed)
    return await run_ranges(actor.services, statement, actor.reader, actor.database, parameters)
