"""Changefeeds, their clauses, and what stands in them."""

from __future__ import annotations

from dataclasses import replace

from ....catalog.values.errors import SQLError
from ...syntax.changefeed_statements import DatabaseFeed, FeedClause, FeedSelect, LetterChoice
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.names import ObjectName, Option
from ...syntax.statement import rows_of
from ...syntax.statements import CreateChangefeed, ExplainChangefeed
from ..cursor import Cursor
from ..kinds import define_rules, itself, kind, refuses
from ..rules import Row, Rules
from . import feed_query as feed_query
from . import keyspaces as keyspaces  # whose kinds rules name here, as those of feed_query

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
define_rules("whole_database", Rules(*rows_of(DatabaseFeed)))
define_rules("letters", Rules(*rows_of(LetterChoice)))
_clause = Rules(
    *rows_of(FeedClause),
    expected="ADD, DROP, SET, UNSET, PAUSE TABLE, RESUME TABLE or RESCAN TABLE",
)


@kind("feed_clauses")
def _clauses(cursor: Cursor) -> tuple[object, ...]:
    """One behind the other, to the end of the statement"""
    found = [_clause.read(cursor)]
    while not cursor.finished:
        found.append(_clause.read(cursor))
    return tuple(found)


def _changefeed(
    tables: tuple[ObjectName, ...], keyspace: KeyspaceFeed | None, **fields: object
) -> CreateChangefeed:
    named = tables if keyspace is None else (keyspace.name,)
    return CreateChangefeed(tables=named, keyspace=keyspace, **fields)  # type: ignore[arg-type]


def _of_query(sink: str | None, options: tuple[Option, ...], query: FeedSelect) -> CreateChangefeed:
    return CreateChangefeed(tables=(query.table,), sink=sink, options=options, query=query)


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


def _explained(changefeed: CreateChangefeed) -> ExplainChangefeed:
    """The grammar of CREATE CHANGEFEED, with one option more: `sample = n`."""
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


FEEDS: tuple[Row, ...] = (
    *((f"CREATE/EXPERIMENTAL {words}", make) for words, make in _FEED),
    ("EXPLAIN [CREATE] changefeed:feed", _explained),
)
