"""The grammar of SHOW, and of CANCEL.

SHOW TABLES [FROM database]
SHOW COLUMNS FROM [TABLE] table
SHOW CREATE [TABLE | VIEW] name
SHOW [CLUSTER | LOCAL | ALL] { SESSIONS | QUERIES | STATEMENTS }
SHOW { JOBS | JOB id | CHANGEFEED JOBS | CHANGEFEED JOB id } [WITH watched_tables]
SHOW { JOBS | JOB } WHEN COMPLETE { id, … | query }
CANCEL { QUERY | QUERIES | SESSION | SESSIONS } [IF EXISTS] 'id', …
"""

from __future__ import annotations

from collections.abc import Callable

from ...syntax.changefeed_statements import (
    ShowDeadLetters,
    ShowFeedLag,
    ShowFeedLatency,
    ShowSubscriptions,
)
from ...syntax.connection_statements import ShowConnections
from ...syntax.keyspace_statements import ShowKeyspaces, ShowReplications
from ...syntax.refusals import unsupported
from ...syntax.relaxed_statements import ShowRelaxedLogs
from ...syntax.show_statements import Cancel, ShowQueries, ShowSessions
from ...syntax.statements import (
    AwaitJobs,
    JobAction,
    ShowClusterSettings,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowJobs,
    ShowSession,
    ShowTables,
    Statement,
)
from ...syntax.user_statements import ShowUsers
from ..cursor import Cursor, LexemeKind
from ..ddl.ranges import show_ranges
from . import connections, feeds, replications, schedules
from .dead_letters import dead_letters

Grammar = Callable[[Cursor], Statement]


def _all(statement: Statement) -> Grammar:
    """The grammar of a statement that is its words alone."""
    return lambda cursor: statement


def _refused(what: str, hint: str) -> Grammar:
    """The grammar of what a catalog of PostgreSQL's tells."""

    def grammar(cursor: Cursor) -> Statement:
        raise unsupported(f"SHOW {what}", cursor.position, hint)

    return grammar


def _tables(cursor: Cursor) -> ShowTables:
    """`[FROM database]`"""
    named = cursor.accept_words("from")
    return ShowTables(database=cursor.identifier("a database's name") if named else None)


def _columns(cursor: Cursor) -> ShowColumns:
    """`FROM [TABLE] table`"""
    cursor.expect_words("from")
    cursor.accept_words("table")
    return ShowColumns(table=cursor.object_name("a table's name"))


def _of_job(make: Callable[..., Statement]) -> Grammar:
    """`id`"""
    return lambda cursor: make(job_id=cursor.integer("a job's id"))


def _create(cursor: Cursor) -> ShowCreateTable:
    view = cursor.accept_words("view")
    if not view:
        cursor.accept_words("table")
    named = "a view's name" if view else "a table's name"
    return ShowCreateTable(table=cursor.object_name(named), view=view)


def _jobs(*, changefeeds: bool, one: bool) -> Grammar:
    """`[id] [WITH watched_tables]`, the latter of changefeeds"""

    def grammar(cursor: Cursor) -> Statement:
        job_id = cursor.integer("a job's id") if one else None
        watched = changefeeds and cursor.accept_words("with", "watched_tables")
        return ShowJobs(changefeeds_only=changefeeds, job_id=job_id, watched=watched)

    return grammar


def _await_jobs(cursor: Cursor) -> AwaitJobs:
    ids, query = feeds.job_ids(cursor)
    return AwaitJobs(job_ids=ids, query=query)


def _settings(cursor: Cursor) -> ShowClusterSettings:
    return ShowClusterSettings(name=None, position=cursor.position)


def _setting(cursor: Cursor) -> ShowClusterSettings:
    """`ALL`, or a setting's name"""
    position = cursor.position
    name = None if cursor.accept_words("all") else cursor.dotted_name("a setting")
    return ShowClusterSettings(name=name, position=position)


def _transaction(cursor: Cursor) -> ShowSession:
    """`ISOLATION LEVEL` or `STATUS`"""
    position = cursor.position
    for mode in (("isolation", "level"), ("status",)):
        if cursor.accept_words(*mode):
            return ShowSession(name=f"transaction_{mode[0]}", position=position)
    cursor.fail(expected="ISOLATION LEVEL or STATUS")


def _variable(cursor: Cursor) -> ShowSession:
    """A session variable, or ALL of them."""
    position = cursor.position
    if cursor.accept_words("all"):
        return ShowSession(name="all", position=position)
    if cursor.accept_words("time", "zone"):
        return ShowSession(name="timezone", position=position)
    if cursor.current.kind is LexemeKind.WORD:
        return ShowSession(name=cursor.dotted_name("what to show"), position=position)
    cursor.fail(expected="TABLES, DATABASES, COLUMNS, CREATE TABLE, JOBS or CLUSTER SETTINGS")


_CATALOGS = {
    "SCHEMAS": "information_schema.schemata lists them.",
    "SEQUENCES": "pg_sequences lists them, with their last values.",
    "TYPES": "pg_type lists them, and pg_enum their labels.",
    "ENUMS": "pg_type lists them, and pg_enum their labels.",
    **dict.fromkeys(("INDEXES", "INDEX", "KEYS"), "pg_indexes lists them."),
    **dict.fromkeys(
        ("CONSTRAINTS", "CONSTRAINT"),
        "pg_constraint lists them, pg_get_constraintdef(oid) says what each is, and SHOW CREATE "
        "TABLE all of a table's.",
    ),
    **dict.fromkeys(
        ("GRANTS", "SYSTEM GRANTS"),
        "tailrace_internal.grants lists them, and pg_auth_members the members of roles.",
    ),
}
"""What SHOW does not tell, with where it stands."""

_SCOPES: tuple[tuple[str, ...], ...] = ((), ("cluster",), ("local",), ("all",))

SHOW: dict[tuple[str, ...], Grammar] = {
    ("databases",): _all(ShowDatabases()),
    ("tables",): _tables,
    ("columns",): _columns,
    **{tuple(what.lower().split()): _refused(what, hint) for what, hint in _CATALOGS.items()},
    ("create",): _create,
    ("ranges",): show_ranges,
    **{(*scope, "sessions"): _all(ShowSessions()) for scope in _SCOPES},
    **{
        (*scope, word): _all(ShowQueries())
        for scope in _SCOPES
        for word in ("queries", "statements")
    },
    **{(word,): _all(ShowUsers()) for word in ("users", "roles")},
    **{(word, "when", "complete"): _await_jobs for word in ("jobs", "job")},
    ("jobs",): _jobs(changefeeds=False, one=False),
    ("job",): _jobs(changefeeds=False, one=True),
    ("changefeed", "jobs"): _jobs(changefeeds=True, one=False),
    ("changefeed", "job"): _jobs(changefeeds=True, one=True),
    ("changefeed", "latency"): _of_job(ShowFeedLatency),
    ("changefeed", "lag"): _of_job(ShowFeedLag),
    ("dead", "letters"): dead_letters(ShowDeadLetters),
    ("schedules",): schedules.show_schedules,
    ("running", "schedules"): lambda cursor: schedules.show_schedules(cursor, paused=False),
    ("paused", "schedules"): lambda cursor: schedules.show_schedules(cursor, paused=True),
    ("schedule",): schedules.show_schedule,
    ("subscriptions",): _all(ShowSubscriptions()),
    ("external", "connections"): _all(ShowConnections(name=None)),
    ("external", "connection"): connections.show_connection,
    ("relaxed", "logs"): _all(ShowRelaxedLogs()),
    ("keyspaces",): _all(ShowKeyspaces()),
    ("replications",): _all(ShowReplications()),
    ("replication",): replications.show_tasks,
    ("cluster", "settings"): _settings,
    ("all", "cluster", "settings"): _settings,
    ("cluster", "setting"): _setting,
    ("transaction",): _transaction,
    (): _variable,
}
"""The grammar behind each beginning of SHOW, longer beginnings first."""


def cancel(cursor: Cursor) -> Statement:
    """Reads CANCEL QUERY, CANCEL SESSION or CANCEL JOBS."""
    session = cursor.accept_words("session") or cursor.accept_words("sessions")
    if not (session or cursor.accept_words("query") or cursor.accept_words("queries")):
        return feeds.control_jobs(cursor, JobAction.CANCEL)
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    what = "a session's id" if session else "a query's id"
    ids = cursor.listed(lambda: cursor.string(what))
    return Cancel(ids=ids, session=session, if_exists=if_exists, position=position)
