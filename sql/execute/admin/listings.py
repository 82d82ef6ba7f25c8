"""Statements that list something, or change what is in no transaction: each by the function that
carries it out for its user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ...results.results import Result
from ...runtime.authorization import Actor
from ...syntax import changefeed_statements as feed_statements
from ...syntax import keyspace_statements, statements
from ...syntax.changefeed_statements import ShowConnections
from ...syntax.relaxed_statements import ShowRelaxedLogs
from ...syntax.rights_statements import ShowUsers
from ...syntax.statements import Maintain
from ..ddl import keyspaces, relaxed_logs
from . import feed_reports, jobs, show
from .connections import show_connections
from .ranges import RangeStatement, run_ranges
from .subscriptions import show_subscriptions
from .users import show_users


async def run_listing(actor: Actor, statement: object, parameters: Sequence[object]) -> Result:
    """Runs one of `LISTINGS`, or a statement about ranges. Raises SQLError 42501."""
    if isinstance(statement, RangeStatement):
        return await run_ranges(actor, statement, parameters)
    return await LISTINGS[type(statement)](actor, statement)


LISTINGS: Mapping[type, Callable[[Actor, Any], Awaitable[Result]]] = {
    Maintain: show.maintain,
    ShowConnections: show_connections,
    ShowRelaxedLogs: relaxed_logs.show_relaxed_logs,
    ShowUsers: show_users,
    feed_statements.RetryDeadLetters: feed_reports.tell_dead_letters,
    feed_statements.ShowDeadLetters: feed_reports.tell_dead_letters,
    feed_statements.ShowFeedLag: feed_reports.show_feed_lag,
    feed_statements.ShowFeedLatency: feed_reports.show_feed_latency,
    feed_statements.ShowSchedules: jobs.show_schedules,
    feed_statements.ShowSubscriptions: show_subscriptions,
    feed_statements.SkipDeadLetters: feed_reports.tell_dead_letters,
    keyspace_statements.BackupKeyspace: keyspaces.run_backup,
    keyspace_statements.RestoreKeyspace: keyspaces.run_backup,
    keyspace_statements.ShowKeyspaceRanges: keyspaces.show_keyspace_ranges,
    keyspace_statements.ShowKeyspaces: keyspaces.show_keyspaces,
    keyspace_statements.ShowReplications: jobs.show_replications,
    statements.SetClusterSetting: show.set_cluster_setting,
    statements.ShowClusterSettings: show.show_cluster_settings,
    statements.ShowColumns: show.show_columns,
    statements.ShowCreateTable: show.show_create_table,
    statements.ShowDatabases: show.show_databases,
    statements.ShowJobs: jobs.show_jobs,
    statements.ShowSession: show.show_database,
    statements.ShowTables: show.show_tables,
    statements.VerifyChangefeed: jobs.verify_changefeed,
}
