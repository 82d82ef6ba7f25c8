"""Statements that write to the catalog, feeds, users and rights among it: in the open transaction
or in one of their own.

In the open transaction they are committed with it. Without one they are tried until they commit,
and return when what they began can be seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from ...catalog.descriptors.descriptor import Descriptor
from ...catalog.descriptors.publish_rules import LOCK_PARAMETER
from ...catalog.descriptors.storage_parameters import parse_names, without_ignored
from ...catalog.rights.quotas import KEYSPACE_QUOTA
from ...catalog.store.catalog_changes import CatalogChanges, jobs_begun
from ...kvlayer.access import Transaction
from ..results.results import Result
from ..runtime.authorization import changes_rights, check_changes
from ..runtime.relations import LeaseScope
from ..runtime.services import Services
from ..runtime.transactions import OpenTransaction, alone, in_opened
from ..syntax import changefeed_statements as f
from ..syntax import keyspace_statements as k
from ..syntax import rights_statements as r
from ..syntax import schema_statements as s
from ..syntax import statements
from ..syntax.statement import DDL, CatalogStatement, NamedStatement, Option, at
from ..variables.variables import NEW_TABLES_LOCKED, SessionVariables
from .admin import connections, feeds, rights, subscriptions
from .changer import Changer, Skipped, own_jobs, settle_rights
from .ddl import ddl, enum_types, keyspaces, namespaces, relaxed_logs, sequences, views
from .ddl.ddl import wait_until_seen
from .ddl.given_columns import defaults_in
from .write.row_rules import note_types


def as_variables_say(statement: CatalogStatement, variables: SessionVariables) -> CatalogStatement:
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
    statement: CatalogStatement,
    opened: OpenTransaction | None,
    database: str,
    user: str,
) -> Result:
    """Carries the statement out. By itself it returns when this node goes by the rights that it has
    changed, every node has seen its change of the catalog, and its schema change is done; the feeds
    that it begins or changes go on."""
    if opened is not None and isinstance(statement, s.Truncate):
        statement = replace(statement, within=True)

    async def work(
        transaction: Transaction, scope: LeaseScope
    ) -> tuple[Result, tuple[int, ...], bool]:
        changer = Changer(services, user, database, transaction, scope)
        result = await _run_as(changer, statement)
        return result, jobs_begun(transaction), changes_rights(transaction)

    if opened is not None:
        if isinstance(statement, r.RightsChange):
            opened.refuse_read_only("a change of users and rights")
        result, _, _ = await in_opened(opened, work)
        return result
    (result, jobs, new_rights), at, changed = await alone(services, work)
    # Behind the attempts: what is committed must not be run again.
    if new_rights or isinstance(statement, r.RightsChange):
        await services.rights.catch_up(at)
    if not isinstance(statement, DDL):
        return result
    late = await wait_until_seen(services, changed, jobs)
    if jobs:
        at = services.store.clock.last  # their last versions are of later transactions
    if isinstance(statement, s.AlterTable) and any(
        isinstance(command, s.AlterType | s.DropColumn | s.DropIdentity)
        for command in statement.commands
    ):
        await alone(
            services, lambda *own: sequences.settle_owned(Changer(services, user, database, *own))
        )
    return replace(result, notice=late or result.notice, commit_timestamp=at)


async def _run_as(changer: Changer, statement: CatalogStatement) -> Result:
    """Runs the statement with its user's rights, and makes the user the owner of new objects."""
    if not isinstance(statement, DDL):
        return await _carry_out(changer, statement)
    transaction = changer.reader
    before: tuple[Descriptor, ...] = ()
    if transaction.commit_checks:
        before = CatalogChanges.of(transaction).published
    result = await _carry_out(changer, statement)
    await check_changes(changer, before)
    await settle_rights(transaction, changer.user, before)
    if isinstance(statement, k.CreateKeyspace):
        await changer.need_room(KEYSPACE_QUOTA)
    await own_jobs(transaction, changer.user, jobs_begun(transaction))
    return result


async def _carry_out(changer: Changer, statement: CatalogStatement) -> Result:
    """Carries the statement out in the transaction, and does not commit it."""
    tag, run = _STATEMENTS[type(statement)]
    with at(statement.position if isinstance(statement, NamedStatement) else None):
        statement = await enum_types.with_named_types(changer, statement)
        await note_types(defaults_in(statement), changer.services.analytics)
        try:
            outcome = await run(changer, statement)
        except Skipped as skipped:
            outcome = f"{skipped}, skipping"
    return outcome if isinstance(outcome, Result) else Result(tag=tag, notice=outcome)


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
    try:
        with LeaseScope(services.leases) as scope:
            changer = Changer(services, user, database, transaction, scope)
            if isinstance(statement, statements.CreateChangefeed):
                return await feeds.create_changefeed(changer, statement)
            return await feeds.explain_changefeed(changer, statement)
    finally:
        await transaction.rollback()


_Run = Callable[[Changer, Any], Awaitable[Result | str | None]]

_STATEMENTS: Mapping[type, tuple[str, _Run]] = {
    statements.CreateDatabase: ("CREATE DATABASE", ddl.create_database),
    statements.CreateTable: ("CREATE TABLE", ddl.create_table),
    statements.CreateTableAs: ("CREATE TABLE AS", ddl.create_table_as),
    statements.DropTable: ("DROP TABLE", namespaces.drop_tables),
    s.AlterTable: ("ALTER TABLE", ddl.alter),
    s.CommentOn: ("COMMENT", namespaces.comment_on),
    s.CreateIndex: ("CREATE INDEX", ddl.change_table),
    s.CreateSchema: ("CREATE SCHEMA", namespaces.create_schema),
    s.DropDatabase: ("DROP DATABASE", namespaces.drop_database),
    s.DropIndex: ("DROP INDEX", ddl.change_table),
    s.DropSchema: ("DROP SCHEMA", namespaces.drop_schema),
    s.RenameIndex: ("ALTER INDEX", ddl.change_table),
    s.Truncate: ("TRUNCATE TABLE", ddl.change_table),
    s.CreateView: ("CREATE VIEW", views.create),
    s.DropView: ("DROP VIEW", views.drop),
    s.AlterSequence: ("ALTER SEQUENCE", sequences.alter),
    s.CreateSequence: ("CREATE SEQUENCE", sequences.create),
    s.DropSequence: ("DROP SEQUENCE", sequences.drop),
    s.AddEnumValue: ("ALTER TYPE", enum_types.alter),
    s.RenameEnumValue: ("ALTER TYPE", enum_types.alter),
    s.CreateEnum: ("CREATE TYPE", enum_types.create),
    s.DropType: ("DROP TYPE", enum_types.drop),
    k.CreateKeyspace: ("CREATE KEYSPACE", keyspaces.create),
    k.DropKeyspace: ("DROP KEYSPACE", keyspaces.drop),
    k.PromoteKeyspace: ("ALTER KEYSPACE", keyspaces.promote),
    k.SplitKeyspace: ("ALTER KEYSPACE", keyspaces.split),
    k.TransferKeyspace: ("ALTER KEYSPACE", keyspaces.transfer),
    s.CreateRelaxedLog: ("CREATE RELAXED LOG", relaxed_logs.create),
    s.DropRelaxedLog: ("DROP RELAXED LOG", relaxed_logs.drop),
    statements.CreateChangefeed: ("CREATE CHANGEFEED", feeds.create_changefeed),
    f.AlterChangefeed: ("ALTER CHANGEFEED", feeds.alter_changefeed),
    f.CreateSchedule: ("CREATE SCHEDULE", feeds.create_schedule),
    k.RebalanceReplication: ("REBALANCE REPLICATION", feeds.rebalance_replication),
    f.AcknowledgeSubscription: ("ACKNOWLEDGE SUBSCRIPTION", subscriptions.acknowledge),
    f.CreateSubscription: ("CREATE SUBSCRIPTION", subscriptions.create),
    f.DropSubscription: ("DROP SUBSCRIPTION", subscriptions.drop),
    f.AlterConnection: ("ALTER EXTERNAL CONNECTION", connections.alter),
    f.CreateConnection: ("CREATE EXTERNAL CONNECTION", connections.create),
    f.DropConnection: ("DROP EXTERNAL CONNECTION", connections.drop),
    r.AlterUser: ("ALTER ROLE", rights.alter_role),
    r.CreateUser: ("CREATE ROLE", rights.create_role),
    r.DropUser: ("DROP ROLE", rights.drop_roles),
    r.GrantPrivileges: ("GRANT", rights.grant_privileges),
    r.GrantRoles: ("GRANT", rights.grant_roles),
    r.ReassignOwned: ("REASSIGN OWNED", rights.reassign_owned),
    r.SetOwner: ("ALTER", rights.set_owner_of),
}
"""The tag of each statement, and the function that carries it out in its transaction and returns a
notice, or a result of its own."""
