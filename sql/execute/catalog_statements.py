"""Statements that write to the catalog: in the transaction that is open, or in one of their own.

In the open transaction they are committed with it. Without one they are tried until they commit,
and return when what they began can be seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from ...catalog.descriptors.descriptor import Descriptor
from ...catalog.descriptors.publish_rules import LOCK_ALONE, LOCK_PARAMETER
from ...catalog.descriptors.storage_parameters import parse_names
from ...catalog.rights.quotas import KEYSPACE_QUOTA
from ...catalog.store.catalog_changes import CatalogChanges, jobs_begun
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ..results.results import Result
from ..runtime.authorization import Actor, changes_rights, check_changes
from ..runtime.implicit import attempts, in_transaction
from ..runtime.relations import LeaseScope
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction
from ..syntax import statements
from ..syntax.changefeed_statements import AlterChangefeed, CreateSchedule, SubscriptionChange
from ..syntax.connection_statements import ConnectionChange
from ..syntax.keyspace_statements import CreateKeyspace, RebalanceReplication
from ..syntax.schema_statements import (
    AlterCommand,
    AlterTable,
    AlterType,
    DropColumn,
    DropIdentity,
    Truncate,
)
from ..syntax.statements import AlterTableSet
from ..variables.variables import NEW_TABLES_LOCKED, SERIAL_NORMALIZATION, SessionVariables
from .admin.alter_feed import alter_changefeed, rebalance_replication
from .admin.connections import change_connection
from .admin.feeds import create_changefeed, explain_changefeed
from .admin.schedules import create_schedule
from .admin.subscriptions import change_subscription
from .ddl.ddl import DDL, locked_unless_said, run_ddl, wait_until_seen
from .ddl.ddl_needs import check_ddl
from .ddl.owned_sequences import settle_owned
from .ddl.ownership import own_jobs, settle_rights
from .ddl.schema_changes import AUTO_UNLOCK
from .ddl.serial import with_added_sequences, with_sequences


def as_variables_say(statement: DDL, variables: SessionVariables) -> DDL:
    """Returns the statement with defaults from the session's variables."""
    if isinstance(statement, statements.CreateTable):
        if variables.get(NEW_TABLES_LOCKED):
            statement = locked_unless_said(statement)
        if variables.get(SERIAL_NORMALIZATION) == "sql_sequence":
            statement = with_sequences(statement, serials=True)
    elif (
        isinstance(statement, AlterTable) and variables.get(SERIAL_NORMALIZATION) == "sql_sequence"
    ):
        statement = with_added_sequences(statement)
    return statement


async def change_catalog(
    services: Services,
    statement: DDL,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """DDL. By itself it returns when every node has seen the change, and its job has done it."""
    if opened is not None:
        _refuse_lock(services, statement)
        if isinstance(statement, Truncate):
            statement = replace(statement, within=True)

        async def work() -> Result:
            # The catalog's invariants rest on what was read, whatever the isolation.
            with opened.transaction.tracking(True):
                return await _run_as(
                    Actor(services, user, database, opened.transaction), statement, opened.scope
                )

        return await opened.statement(work)

    async def alone(
        transaction: Transaction, scope: LeaseScope
    ) -> tuple[Result, tuple[int, ...], bool]:
        actor = Actor(services, user, database, transaction)
        result = await _run_as(actor, statement, scope)
        return result, jobs_begun(transaction), changes_rights(transaction)

    (result, jobs, new_rights), at, changed = await attempts(
        services,
        lambda scope: in_transaction(
            services.store, scope, lambda transaction: alone(transaction, scope)
        ),
    )
    # Behind the attempts: what is committed must not be run again.
    if new_rights:
        await services.rights.catch_up(at)
    late = await wait_until_seen(services, changed, jobs)
    if isinstance(statement, AlterTable) and any(map(_disowns, statement.commands)):
        await attempts(
            services,
            lambda scope: in_transaction(
                services.store, scope, lambda transaction: settle_owned(services, transaction)
            ),
        )
    return replace(result, notice=late or result.notice, commit_timestamp=at)


def _refuse_lock(services: Services, statement: DDL) -> None:
    """Refuses a lock change within a transaction where no schema change unlocks by itself: a lock
    that is for people to open is opened by a statement of its own."""
    if services.store.settings.get(AUTO_UNLOCK) or not isinstance(statement, AlterTableSet):
        return
    if LOCK_PARAMETER in parse_names([parameter.name for parameter in statement.parameters]):
        raise SQLError(
            LOCK_ALONE,
            f'setting {LOCK_PARAMETER} of table "{statement.table}" must be a transaction of its '
            f"own where {AUTO_UNLOCK.name} is off",
            position=statement.table.position,
            hint="Run it outside of BEGIN … COMMIT, and alone in its text.",
        )


def _disowns(command: AlterCommand) -> bool:
    """Whether a column may have owned a sequence that it does not own behind the command."""
    return isinstance(command, AlterType | DropColumn | DropIdentity)


async def _run_as(actor: Actor, statement: DDL, scope: LeaseScope) -> Result:
    """The statement as its user's: with the rights that it needs, and what it makes is theirs."""
    transaction = actor.reader
    before: tuple[Descriptor, ...] = ()
    if transaction.commit_checks:
        before = CatalogChanges.of(transaction).published
    await check_ddl(actor, statement)
    result = await run_ddl(
        actor.services, statement, transaction, scope, actor.database, actor.user
    )
    await check_changes(actor, before)
    await settle_rights(transaction, actor.user, before)
    if isinstance(statement, CreateKeyspace):
        await actor.need_room(KEYSPACE_QUOTA)
    await own_jobs(transaction, actor.user, jobs_begun(transaction))
    return result


async def begin_changefeed(
    services: Services,
    statement: statements.CreateChangefeed,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """CREATE CHANGEFEED into a sink: its job, which starts when the transaction has committed."""
    return await _serializably(
        services,
        opened,
        lambda transaction, scope: create_changefeed(
            services, statement, transaction, scope, database, user
        ),
    )


async def alter_feed(
    services: Services,
    statement: AlterChangefeed | RebalanceReplication,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """ALTER CHANGEFEED and REBALANCE REPLICATION: the nodes that run the jobs hear of the change
    when the transaction has committed."""

    async def altered(transaction: Transaction, scope: LeaseScope) -> Result:
        if isinstance(statement, RebalanceReplication):
            return await rebalance_replication(services, statement, transaction, user)
        return await alter_changefeed(services, statement, transaction, scope, database, user)

    return await _serializably(services, opened, altered)


async def change_subscriptions(
    services: Services,
    statement: SubscriptionChange,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """CREATE, DROP and ACKNOWLEDGE SUBSCRIPTION. What a client does with the rows in the same
    transaction is done once, whatever dies."""
    return await _serializably(
        services,
        opened,
        lambda transaction, scope: change_subscription(
            Actor(services, user, database, transaction), statement, scope
        ),
    )


async def begin_schedule(
    services: Services,
    statement: CreateSchedule,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """CREATE SCHEDULE."""
    return await _serializably(
        services,
        opened,
        lambda transaction, scope: create_schedule(
            Actor(services, user, database, transaction), statement, scope
        ),
    )


async def change_connections(
    services: Services,
    statement: ConnectionChange,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """CREATE, ALTER and DROP EXTERNAL CONNECTION, with what becomes of the feeds that use it."""
    return await _serializably(
        services,
        opened,
        lambda transaction, _: change_connection(
            Actor(services, user, database, transaction), statement
        ),
    )


async def _serializably(
    services: Services,
    opened: OpenTransaction | None,
    work: Callable[[Transaction, LeaseScope], Awaitable[Result]],
) -> Result:
    """Returns the result of `work`, run serializably: in the open transaction, whatever its
    isolation, or in one of its own."""
    if opened is not None:

        async def tracked() -> Result:
            with opened.transaction.tracking(True):
                return await work(opened.transaction, opened.scope)

        return await opened.statement(tracked)

    result, _, _ = await attempts(
        services,
        lambda scope: in_transaction(
            services.store, scope, lambda transaction: work(transaction, scope)
        ),
    )
    return result


async def stream_changefeed(
    services: Services, statement: statements.CreateChangefeed, database: str, user: str
) -> Result:
    """CREATE CHANGEFEED without a sink: its rows are the statement's, for as long as it is read."""
    return await _rolled_back(
        services,
        lambda transaction, scope: create_changefeed(
            services, statement, transaction, scope, database, user
        ),
        read_only=True,
    )


async def explain_feed(
    services: Services, statement: statements.ExplainChangefeed, database: str, user: str
) -> Result:
    """EXPLAIN CHANGEFEED: all that creation would do is done, and undone."""
    return await _rolled_back(
        services,
        lambda transaction, scope: explain_changefeed(
            services, statement, transaction, scope, database, user
        ),
        read_only=False,
    )


async def _rolled_back(
    services: Services,
    work: Callable[[Transaction, LeaseScope], Awaitable[Result]],
    *,
    read_only: bool,
) -> Result:
    transaction = services.store.begin(read_only=read_only)
    await transaction.started()
    scope = LeaseScope(services.leases)
    try:
        return await work(transaction, scope)
    finally:
        scope.release()
        await transaction.rollback()
