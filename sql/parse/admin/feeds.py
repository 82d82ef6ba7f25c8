"""The grammar of changefeeds, jobs, settings and the session."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from ....catalog.values.errors import SQLError
from ...syntax.changefeed_statements import DatabaseFeed
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.names import ObjectName, Option
from ...syntax.refusals import unsupported
from ...syntax.statements import (
    ControlJobs,
    CreateChangefeed,
    ExplainChangefeed,
    JobAction,
    Query,
    SetClusterSetting,
    Statement,
    UseDatabase,
    VerifyChangefeed,
)
from .. import transactions
from ..cursor import Cursor
from ..ddl.keyspaces import keyspace_feed
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
    return cursor.listed(lambda: _table(cursor))


def _table(cursor: Cursor) -> ObjectName:
    cursor.accept_words("table")
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
    if cursor.accept_words("options") or (begun and cursor.at_symbol("(")):
        return cursor.enclosed(cursor.option)
    return cursor.listed(cursor.option) if begun else ()


def control_jobs(cursor: Cursor, action: JobAction) -> ControlJobs:
    """`JOB id`, `JOBS id, …` or `JOBS query`."""
    if not cursor.accept_words("jobs"):
        cursor.expect_words("job")
    ids, query = job_ids(cursor)
    return ControlJobs(action=action, job_ids=ids, query=query)


def job_ids(cursor: Cursor, what: str = "a job's id") -> tuple[tuple[int, ...], Query | None]:
    """The ids of jobs, or the query that finds them, to the end of the statement."""
    if not cursor.finished:
        begun = cursor.tokens[cursor.current.token_index].token_type
        if begun in QUERY_TOKENS:
            return (), parse_query(cursor.text, cursor.rest())
    return cursor.listed(lambda: cursor.integer(what)), None


def verify_changefeed(cursor: Cursor) -> VerifyChangefeed:
    """`job [AT RESOLVED] [REPAIR]`"""
    job_id = cursor.integer("a job's id")
    at_resolved = cursor.accept_words("at", "resolved")
    repairs = cursor.accept_words("repair")
    return VerifyChangefeed(job_id=job_id, at_resolved=at_resolved, repairs=repairs)


def set_statement(cursor: Cursor) -> Statement:
    """`CLUSTER SETTING name = value`, or what `transactions` knows to set."""
    if cursor.accept_words("cluster"):
        cursor.expect_words("setting")
        position = cursor.position
        name = cursor.dotted_name("a setting")
        _expect_equals(cursor)
        default = cursor.at_words("default")
        value = cursor.option_value()
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
    return SetClusterSetting(name=name, value=None, position=position)


def use(cursor: Cursor) -> UseDatabase:
    name = cursor.identifier("a database's name")
    return UseDatabase(name=name)


def _expect_equals(cursor: Cursor) -> None:
    if not cursor.accept_words("to"):
        cursor.expect_symbol("=")


QUERY_TOKENS = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.TABLE}
)
"""Words that a query begins with."""
