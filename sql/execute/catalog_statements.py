"""Statements that write to the catalog: in the transaction that is open, or in one of their own.

In the open transaction they are committed with it. Without one they are tried until they commit,
and return when what they began can be seen.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

from ...catalog.descriptors.descriptor import Descriptor
from ...catalog.descriptors.publish_rules import LOCK_ALONE, LOCK_PARAMETER
from ...catalog.descriptors.storage_parameters import parse_names, without_ignored
from ...catalog.rights.quotas import KEYSPACE_QUOTA
from ...catalog.store.catalog_changes import CatalogChanges, jobs_begun
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ..results.results import Result
from ..runtime.authorization import changes_rights, check_changes
from ..runtime.implicit import alone, in_opened
from ..runtime.relations import LeaseScope
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction
from ..syntax import schema_statements as s
from ..syntax import statements
from ..syntax.changefeed_statements import (
    AlterChangefeed,
    ConnectionChange,
    CreateSchedule,
    SubscriptionChange,
)
from ..syntax.keyspace_statements import CreateKeyspace, RebalanceReplication
from ..syntax.names import Option
from ..variables.variables import NEW_TABLES_LOCKED, SessionVariables
from .admin.connections import change_connection
from .admin.feeds import (
    alter_changefeed,
    create_changefeed,
    create_schedule,
    explain_changefeed,
    rebalance_replication,
)
from .admin.subscriptions import change_subscription
from .changer import Changer, own_jobs, settle_rights
from .ddl.ddl import DDL, check_ddl, run_ddl, wait_until_seen
from .ddl.schema_changes import AUTO_UNLOCK
from .ddl.sequences import settle_owned

FeedChange = (
    statements.CreateChangefeed
    | AlterChangefeed
    | RebalanceReplication
    | CreateSchedule
    | SubscriptionChange
    | ConnectionChange
)


def as_variables_say(statement: DDL, variables: SessionVariables) -> DDL:
    """Returns the statement with defaults from the session's variables: a new table may be locked
    where it does not speak of the lock."""
    if not isinstance(statement, statements.CreateTable) or not variables.get(NEW_TABLES_LOCKED):
        return statement
    given, _ = without_ignored({parameter.name: None for parameter in statement.parameters})
    if LOCK_PARAMETER in parse_names(given):
        return statement
    lock = Option(LOCK_PARAMETER, "true", statement.table.position)
    return replace(statement, parameters=(*statement.parameters, lock))


async def change_catalog(
    services: Services,
    statement: DDL,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """DDL. By itself it returns when every node has seen the change, and its job has done it."""
    if opened is not None and isinstance(statement, s.Truncate):
        statement = replace(statement, within=True)

    async def work(
        transaction: Transaction, scope: LeaseScope
    ) -> tuple[Result, tuple[int, ...], bool]:
        changer = Changer(services, user, database, transaction, scope)
        result = await _run_as(changer, statement)
        return result, jobs_begun(transaction), changes_rights(transaction)

    if opened is not None:
        _refuse_lock(services, statement)
        result, _, _ = await in_opened(opened, work)
        return result
    (result, jobs, new_rights), at, changed = await alone(services, work)
    # Behind the attempts: what is committed must not be run again.
    if new_rights:
        await services.rights.catch_up(at)
    late = await wait_until_seen(services, changed, jobs)
    if jobs:
        at = services.store.clock.last  # their last versions are of later transactions
    if isinstance(statement, s.AlterTable) and any(
        isinstance(command, s.AlterType | s.DropColumn | s.DropIdentity)
        for command in statement.commands
    ):
        await alone(services, lambda *own: settle_owned(Changer(services, user, database, *own)))
    return replace(result, notice=late or result.notice, commit_timestamp=at)


def _refuse_lock(services: Services, statement: DDL) -> None:
    """Refuses a lock change within a transaction where no schema change unlocks by itself: a lock
    that is for people to open is opened by a statement of its own."""
    if services.store.settings.get(AUTO_UNLOCK):
        return
    match statement:
        case s.AlterTable(table=table, commands=[s.SetParameters(parameters=given)]) if (
            LOCK_PARAMETER in parse_names([parameter.name for parameter in given])
        ):
            raise SQLError(
                LOCK_ALONE,
                f'setting {LOCK_PARAMETER} of table "{table}" must be a transaction of its own '
                f"where {AUTO_UNLOCK.name} is off",
                position=table.position,
                hint="Run it outside of BEGIN … COMMIT, and alone in its text.",
            )


async def _run_as(changer: Changer, statement: DDL) -> Result:
    """Runs the statement with its user's rights, and makes the user the owner of new objects."""
    transaction = changer.reader
    before: tuple[Descriptor, ...] = ()
    if transaction.commit_checks:
        before = CatalogChanges.of(transaction).published
    await check_ddl(changer, statement)
    result = await run_ddl(changer, statement)
    await check_changes(changer, before)
    await settle_rights(transaction, changer.user, before)
    if isinstance(statement, CreateKeyspace):
        await changer.need_room(KEYSPACE_QUOTA)
    await own_jobs(transaction, changer.user, jobs_begun(transaction))
    return result


async def change_feeds(
    services: Services,
    statement: FeedChange,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """Statements about feeds, schedules, subscriptions and external connections, serializably: in
    the open transaction, whatever its isolation, or in one of their own. What they begin or change
    goes on when the transaction has committed."""

    def work(transaction: Transaction, scope: LeaseScope) -> Awaitable[Result]:
        return _change_feeds(Changer(services, user, database, transaction, scope), statement)

    if opened is not None:
        return await in_opened(opened, work)
    result, _, _ = await alone(services, work)
    return result


def _change_feeds(changer: Changer, statement: FeedChange) -> Awaitable[Result]:
    match statement:
        case statements.CreateChangefeed():
            return create_changefeed(changer, statement)
        case AlterChangefeed():
            return alter_changefeed(changer, statement)
        case RebalanceReplication():
            return rebalance_replication(changer, statement)
        case CreateSchedule():
            return create_schedule(changer, statement)
        case _ if isinstance(statement, SubscriptionChange):
            return change_subscription(changer, statement)
    return change_connection(changer, statement)


async def run_undone(
    services: Services,
    statement: statements.CreateChangefeed | statements.ExplainChangefeed,
    database: str,
    user: str,
) -> Result:
    """CREATE CHANGEFEED without a sink: its rows are the statement's, for as long as it is read.
    EXPLAIN CHANGEFEED: all that creation would do is done, and undone."""
    explained = isinstance(statement, statements.ExplainChangefeed)
    transaction = services.store.begin(read_only=not explained)
    await transaction.started()
    scope = LeaseScope(services.leases)
    changer = Changer(services, user, database, transaction, scope)
    try:
        if isinstance(statement, statements.CreateChangefeed):
            return await create_changefeed(changer, statement)
        return await explain_changefeed(changer, statement)
    finally:
        scope.release()
        await transaction.rollback()
