"""The grammar of changefeeds, jobs, settings and the session."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from ....catalog.values.errors import SQLError
from ...syntax.changefeed_statements import DatabaseFeed, ShowFeedLag, ShowFeedLatency
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.names import ObjectName, Option
from ...syntax.refusals import unsupported
from ...syntax.statements import (
    AwaitJobs,
    ControlJobs,
    CreateChangefeed,
    ExplainChangefeed,
    JobAction,
    Query,
    SetClusterSetting,
    ShowClusterSettings,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowJobs,
    ShowSession,
    ShowTables,
    Statement,
    UseDatabase,
    VerifyChangefeed,
)
from .. import transactions
from ..cursor import Cursor, LexemeKind
from ..ddl.keyspaces import keyspace_feed
from ..ddl.ranges import show_ranges
from ..queries import parse_query
from .feed_query import feed_select


def create_changefeed(cursor: Cursor) -> CreateChangefeed:
    """`FOR [TABLE] name, … | DATABASE name [INCLUDE | EXCLUDE TABLES name, …] | RELAXED LOG name
    | KEYSPACE name [FROM key] [TO key] [INTO 'uri'] [WITH option [= value], …]`, where INTO and
    WITH stand before or behind FOR; or `[INTO 'uri'] [WITH …] AS SELECT …`."""
    sink, options = _into(cursor, None), with_options(cursor)
    sink = _into(cursor, sink)
    if cursor.accept_words("as"):
        query = feed_select(cursor)
        return CreateChangefeed(tables=(query.table,), sink=sink, options=options, query=query)
    cursor.expect_words("for")
    log: str | None = None
    keyspace: KeyspaceFeed | None = None
    whole_database: DatabaseFeed | None = None
    tables: tuple[ObjectName, ...] = ()
    if cursor.accept_words("relaxed", "log"):
        log = cursor.identifier("a relaxed log's name")
    elif cursor.accept_words("keyspace"):
        keyspace = keyspace_feed(cursor)
        tables = (keyspace.name,)
    elif cursor.accept_words("database"):
        whole_database = _database_feed(cursor)
    else:
        tables = feed_tables(cursor)
    sink = _into(cursor, sink)
    options = with_options(cursor, options)
    sink = _into(cursor, sink)
    cursor.expect_end()
    return CreateChangefeed(
        tables=tables,
        sink=sink,
        options=options,
        relaxed_log=log,
        keyspace=keyspace,
        whole_database=whole_database,
    )


def _database_feed(cursor: Cursor) -> DatabaseFeed:
    position = cursor.position
    name = cursor.identifier("a database's name")
    if cursor.accept_words("include", "tables"):
        return DatabaseFeed(name=name, include=feed_tables(cursor), position=position)
    if cursor.accept_words("exclude", "tables"):
        return DatabaseFeed(name=name, exclude=feed_tables(cursor), position=position)
    return DatabaseFeed(name=name, position=position)


def explain_changefeed(cursor: Cursor) -> ExplainChangefeed:
    """The grammar of CREATE CHANGEFEED, with one option more: `sample = n`."""
    changefeed = create_changefeed(cursor)
    samples = [option for option in changefeed.options if option.name == "sample"]
    options = tuple(option for option in changefeed.options if option.name != "sample")
    if not samples:
        return ExplainChangefeed(changefeed=changefeed, sample=None)
    value = samples[-1].value
    if len(samples) > 1 or value is None or not value.isdecimal() or not 0 < int(value) <= 1_000:
        raise SQLError(
            "22023",
            "sample takes how many messages to show: from 1 to 1000",
            position=samples[-1].position,
        )
    return ExplainChangefeed(changefeed=replace(changefeed, options=options), sample=int(value))


def feed_tables(cursor: Cursor) -> tuple[ObjectName, ...]:
    """`[TABLE] name, …`"""
    cursor.accept_words("table")
    tables = [_table(cursor)]
    while cursor.accept_symbol(","):
        cursor.accept_words("table")
        tables.append(_table(cursor))
    return tuple(tables)


def _table(cursor: Cursor) -> ObjectName:
    name = cursor.object_name("a table's name")
    if cursor.at_words("family"):
        raise unsupported(
            "changefeeds of column families",
            cursor.position,
            f"A table's rows are stored whole: a changefeed of {name} tells of all columns.",
        )
    return name


def _into(cursor: Cursor, known: str | None) -> str | None:
    """INTO, if it stands here and has not stood before."""
    if known is not None or not cursor.accept_words("into"):
        return known
    return cursor.string("the sink's URI")


def with_options(cursor: Cursor, known: tuple[Option, ...] = ()) -> tuple[Option, ...]:
    """`WITH option, …`, `WITH (option, …)` or `[WITH] OPTIONS (option, …)`, if it stands here."""
    if known:
        return known
    begun = cursor.accept_words("with")
    bracketed = cursor.accept_words("options")
    if not (begun or bracketed):
        return ()
    if bracketed:
        cursor.expect_symbol("(")
    else:
        bracketed = cursor.accept_symbol("(")
    options = [cursor.option()]
    while cursor.accept_symbol(","):
        options.append(cursor.option())
    if bracketed:
        cursor.expect_symbol(")")
    return tuple(options)


def control_jobs(cursor: Cursor, action: JobAction) -> ControlJobs:
    """`JOB id`, `JOBS id, …` or `JOBS query`."""
    if not cursor.accept_words("jobs"):
        cursor.expect_words("job")
    ids, query = job_ids(cursor)
    return ControlJobs(action=action, job_ids=ids, query=query)


def job_ids(cursor: Cursor, what: str = "a job's id") -> tuple[tuple[int, ...], Query | None]:
    """The ids of jobs, or the query that finds them, to the end of the statement."""
    if not cursor.finished:
        rest = cursor.tokens[cursor.current.token_index :]
        if rest[0].token_type in QUERY_TOKENS:
            return (), parse_query(cursor.text, rest)
    ids = [cursor.integer(what)]
    while cursor.accept_symbol(","):
        ids.append(cursor.integer(what))
    cursor.expect_end()
    return tuple(ids), None


def verify_changefeed(cursor: Cursor) -> VerifyChangefeed:
    """`job [AT RESOLVED] [REPAIR]`"""
    job_id = cursor.integer("a job's id")
    at_resolved = cursor.accept_words("at", "resolved")
    repairs = cursor.accept_words("repair")
    cursor.expect_end()
    return VerifyChangefeed(job_id=job_id, at_resolved=at_resolved, repairs=repairs)


def show_feed_latency(cursor: Cursor) -> ShowFeedLatency:
    job_id = cursor.integer("a job's id")
    cursor.expect_end()
    return ShowFeedLatency(job_id=job_id)


def show_feed_lag(cursor: Cursor) -> ShowFeedLag:
    job_id = cursor.integer("a job's id")
    cursor.expect_end()
    return ShowFeedLag(job_id=job_id)


def show(cursor: Cursor) -> Statement:
    statement = _shown(cursor)
    cursor.expect_end()
    return statement


def _shown(cursor: Cursor) -> Statement:
    position = cursor.position
    if cursor.accept_words("jobs", "when", "complete") or cursor.accept_words(
        "job", "when", "complete"
    ):
        ids, query = job_ids(cursor)
        cursor.skip_to_token(len(cursor.tokens))
        return AwaitJobs(job_ids=ids, query=query)
    for words, only in ((("changefeed",), True), ((), False)):
        if cursor.accept_words(*words, "jobs"):
            return ShowJobs(changefeeds_only=only, job_id=None, watched=only and _watched(cursor))
        if cursor.accept_words(*words, "job"):
            job_id = cursor.integer("a job's id")
            return ShowJobs(changefeeds_only=only, job_id=job_id, watched=only and _watched(cursor))
    if cursor.accept_words("cluster", "settings") or cursor.accept_words(
        "all", "cluster", "settings"
    ):
        return ShowClusterSettings(name=None, position=position)
    if cursor.accept_words("cluster", "setting"):
        position = cursor.position
        if cursor.accept_words("all"):
            return ShowClusterSettings(name=None, position=position)
        return ShowClusterSettings(name=cursor.dotted_name("a setting"), position=position)
    if cursor.accept_words("tables"):
        database = cursor.identifier("a database's name") if cursor.accept_words("from") else None
        return ShowTables(database=database)
    if cursor.accept_words("ranges"):
        return show_ranges(cursor)
    if cursor.accept_words("databases"):
        return ShowDatabases()
    if cursor.accept_words("create"):
        view = cursor.accept_words("view")
        if not view:
            cursor.accept_words("table")
        named = "a view's name" if view else "a table's name"
        return ShowCreateTable(table=cursor.object_name(named), view=view)
    if cursor.accept_words("columns"):
        cursor.expect_words("from")
        return ShowColumns(table=cursor.object_name("a table's name"))
    if cursor.accept_words("transaction"):
        for mode in ("isolation", "priority", "status"):
            if cursor.accept_words(mode):
                if mode == "isolation":
                    cursor.expect_words("level")
                return ShowSession(name=f"transaction_{mode}", position=position)
        cursor.fail(expected="ISOLATION LEVEL, PRIORITY or STATUS")
    if cursor.accept_words("all"):
        return ShowSession(name="all", position=position)
    if cursor.accept_words("time", "zone"):
        return ShowSession(name="timezone", position=position)
    if cursor.current.kind is LexemeKind.WORD:
        return ShowSession(name=cursor.dotted_name("what to show"), position=position)
    cursor.fail(expected="TABLES, DATABASES, COLUMNS, CREATE TABLE, JOBS or CLUSTER SETTINGS")


def _watched(cursor: Cursor) -> bool:
    return cursor.accept_words("with", "watched_tables")


def set_statement(cursor: Cursor) -> Statement:
    """`CLUSTER SETTING name = value`, or what `transactions` knows to set."""
    if cursor.accept_words("cluster"):
        cursor.expect_words("setting")
        position = cursor.position
        name = cursor.dotted_name("a setting")
        _expect_equals(cursor)
        default = cursor.at_words("default")
        value = cursor.option_value()
        cursor.expect_end()
        return SetClusterSetting(name=name, value=None if default else value, position=position)
    if cursor.accept_words("transaction"):
        return transactions.set_transaction(cursor)
    if cursor.accept_words("session", "characteristics", "as", "transaction"):
        return transactions.set_characteristics(cursor)
    return transactions.set_variable(cursor)


def reset_statement(cursor: Cursor) -> Statement:
    """`CLUSTER SETTING name`, or a session variable, behind RESET."""
    if not cursor.accept_words("cluster", "setting"):
        return transactions.reset_variable(cursor)
    position = cursor.position
    name = cursor.dotted_name("a setting")
    cursor.expect_end()
    return SetClusterSetting(name=name, value=None, position=position)


def use(cursor: Cursor) -> UseDatabase:
    name = cursor.identifier("a database's name")
    cursor.expect_end()
    return UseDatabase(name=name)


def _expect_equals(cursor: Cursor) -> None:
    if not cursor.accept_words("to"):
        cursor.expect_symbol("=")


QUERY_TOKENS = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.TABLE}
)
"""Words that a query begins with."""
