"""Changefeeds, their jobs and schedules, subscriptions, external connections and relaxed logs."""

from __future__ import annotations

from dataclasses import replace

from ....catalog.values.errors import SQLError
from ...syntax import changefeed_statements as c
from ...syntax import statements as s
from ...syntax.connection_statements import AlterConnection, CreateConnection, DropConnection
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.names import ObjectName, Option
from ...syntax.relaxed_statements import CreateRelaxedLog, DropRelaxedLog
from ...syntax.statements import Cancel
from ..cursor import Cursor
from ..kinds import define, define_rules, itself, refuses
from ..rules import Row, Rules
from . import keyspaces as keyspaces  # whose kinds rules name here
from .feed_query import feed_select

refuses(
    "family",
    "FAMILY",
    "changefeeds of column families",
    "A table's rows are stored whole: a changefeed of it tells of all columns.",
)
refuses(
    "scheduled_query",
    "INTO/WITH",
    "schedules of CDC queries",
    "FOR CHANGEFEED TABLE … names the tables.",
)
define_rules("feed_table", Rules(("[TABLE] name:table [_:family]", itself)))
define_rules(
    "whole_database",
    Rules(
        ("^ name:database INCLUDE TABLES include:feed_table,…", c.DatabaseFeed),
        ("^ name:database EXCLUDE TABLES exclude:feed_table,…", c.DatabaseFeed),
        ("^ name:database", c.DatabaseFeed),
    ),
)
define("feed_select", feed_select)
_clause = Rules(
    ("ADD [TABLE] tables:table,… [WITH options:option,…]", c.AddTables),
    ("DROP [TABLE] tables:table,…", c.DropTables),
    ("SET options:option,…", c.SetFeedOptions),
    ("UNSET names:option_name,…", c.UnsetFeedOptions),
    *(
        (f"{action} TABLE tables:table,…", c.ControlTables, {"action": action})
        for action in ("PAUSE", "RESUME", "RESCAN")
    ),
    expected="ADD, DROP, SET, UNSET, PAUSE TABLE, RESUME TABLE or RESCAN TABLE",
)


def _clauses(cursor: Cursor) -> tuple[object, ...]:
    """One behind the other, to the end of the statement"""
    found = [_clause.read(cursor)]
    while not cursor.finished:
        found.append(_clause.read(cursor))
    return tuple(found)


define("feed_clauses", _clauses)


def _changefeed(
    tables: tuple[ObjectName, ...], keyspace: KeyspaceFeed | None, **fields: object
) -> s.CreateChangefeed:
    named = tables if keyspace is None else (keyspace.name,)
    return s.CreateChangefeed(tables=named, keyspace=keyspace, **fields)  # type: ignore[arg-type]


def _of_query(
    sink: str | None, options: tuple[Option, ...], query: c.FeedSelect
) -> s.CreateChangefeed:
    return s.CreateChangefeed(tables=(query.table,), sink=sink, options=options, query=query)


_FEED = (
    ("CHANGEFEED { INTO sink:sink | options:with } AS query:feed_select", _of_query),
    (
        "CHANGEFEED { INTO sink:sink | options:with } FOR ( RELAXED LOG relaxed_log:relaxed_log "
        "| KEYSPACE keyspace:keyspace_feed | DATABASE whole_database:whole_database "
        "| tables:feed_table,… ) { INTO sink:sink | options:with }",
        _changefeed,
    ),
)
define_rules("feed", Rules(*_FEED))


def _explained(changefeed: s.CreateChangefeed) -> s.ExplainChangefeed:
    """The grammar of CREATE CHANGEFEED, with one option more: `sample = n`."""
    samples = [option for option in changefeed.options if option.name == "sample"]
    options = tuple(option for option in changefeed.options if option.name != "sample")
    if not samples:
        return s.ExplainChangefeed(changefeed=changefeed, sample=None)
    value = samples[-1].value
    if len(samples) > 1 or value is None or not value.isdecimal() or not 0 < int(value) <= 1_000:
        raise SQLError(
            "22023",
            "sample takes how many messages to show: from 1 to 1000",
            position=samples[-1].position,
        )
    return s.ExplainChangefeed(changefeed=replace(changefeed, options=options), sample=int(value))


_SCHEDULED = (
    "FOR CHANGEFEED [_:scheduled_query] tables:feed_table,… INTO sink:sink [options:with] "
    "RECURRING crontab:crontab [WITH SCHEDULE OPTIONS schedule_options:option,…]"
)
_SCHEDULE_ACTIONS = (
    ("PAUSE", s.JobAction.PAUSE), ("RESUME", s.JobAction.RESUME), ("DROP", s.JobAction.CANCEL)
)  # fmt: skip

FEEDS: tuple[Row, ...] = (
    *((f"CREATE/EXPERIMENTAL {words}", make) for words, make in _FEED),
    ("EXPLAIN [CREATE] changefeed:feed", _explained),
    ("ALTER CHANGEFEED job_id:job clauses:feed_clauses", c.AlterChangefeed),
    ("VERIFY CHANGEFEED job_id:job at_resolved:[AT RESOLVED] repairs:[REPAIR]", s.VerifyChangefeed),
    *(
        (
            f"{action.name} JOB/JOBS ( query:query | job_ids:job,… )",
            s.ControlJobs,
            {"action": action},
        )
        for action in s.JobAction
    ),
    *(
        (
            f"{verb} SCHEDULE/SCHEDULES ( query:query | job_ids:schedule_id,… )",
            s.ControlJobs,
            {"action": action, "schedules": True},
        )
        for verb, action in _SCHEDULE_ACTIONS
    ),
    ("CANCEL QUERY/QUERIES if_exists:[IF EXISTS] ^ ids:query_id,…", Cancel, {"session": False}),
    ("CANCEL SESSION/SESSIONS if_exists:[IF EXISTS] ^ ids:session_id,…", Cancel, {"session": True}),
    (f"CREATE SCHEDULE if_not_exists:[IF NOT EXISTS] ^ label:label {_SCHEDULED}", c.CreateSchedule),
    (f"CREATE SCHEDULE ^ {_SCHEDULED}", c.CreateSchedule, {"label": None, "if_not_exists": False}),
    (
        "CREATE SUBSCRIPTION if_not_exists:[IF NOT EXISTS] ^ name:subscription "
        "FOR tables:feed_table,… [options:with]",
        c.CreateSubscription,
    ),
    ("DROP SUBSCRIPTION if_exists:[IF EXISTS] ^ name:subscription", c.DropSubscription),
    ("ACKNOWLEDGE SUBSCRIPTION ^ name:subscription UP TO upto:value", c.AcknowledgeSubscription),
    (
        "CREATE EXTERNAL CONNECTION if_not_exists:[IF NOT EXISTS] ^ name:connection "
        "AS uri:sink_uri",
        CreateConnection,
    ),
    (
        "ALTER EXTERNAL CONNECTION if_exists:[IF EXISTS] ^ name:connection "
        "( AS uri:sink_uri | OWNER TO owner:role )",
        AlterConnection,
    ),
    ("DROP EXTERNAL CONNECTION if_exists:[IF EXISTS] ^ name:connection", DropConnection),
    (
        "CREATE RELAXED LOG ^ name:relaxed_log FOR TABLE/TABLES "
        "( tables:(table,…) | tables:table,… )",
        CreateRelaxedLog,
    ),
    ("DROP RELAXED LOG if_exists:[IF EXISTS] ^ name:relaxed_log", DropRelaxedLog),
)
