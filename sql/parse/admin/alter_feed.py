"""The grammar of ALTER CHANGEFEED."""

from __future__ import annotations

from ...syntax.changefeed_statements import (
    AddTables,
    AlterChangefeed,
    ControlTables,
    DropTables,
    FeedClause,
    SetFeedOptions,
    UnsetFeedOptions,
)
from ..cursor import Cursor


def alter_changefeed(cursor: Cursor) -> AlterChangefeed:
    """`job_id clause …`, the clauses one behind the other:

    ADD [TABLE] t, … [WITH option, …] | DROP [TABLE] t, … | SET option, … | UNSET name, …
    | PAUSE TABLE t, … | RESUME TABLE t, … | RESCAN TABLE t, …
    """
    job_id = cursor.integer("a job's id")
    clauses = [_clause(cursor)]
    while not cursor.finished:
        clauses.append(_clause(cursor))
    return AlterChangefeed(job_id=job_id, clauses=tuple(clauses))


def _clause(cursor: Cursor) -> FeedClause:
    if cursor.accept_words("add"):
        cursor.accept_words("table")
        tables = cursor.names("a table's name")
        options = cursor.listed(cursor.option) if cursor.accept_words("with") else ()
        return AddTables(tables=tables, options=options)
    if cursor.accept_words("drop"):
        cursor.accept_words("table")
        return DropTables(tables=cursor.names("a table's name"))
    if cursor.accept_words("set"):
        return SetFeedOptions(options=cursor.listed(cursor.option))
    if cursor.accept_words("unset"):
        names = cursor.listed(lambda: cursor.dotted_name("an option"))
        return UnsetFeedOptions(names=names)
    for action in ("pause", "resume", "rescan"):
        if cursor.accept_words(action):
            cursor.expect_words("table")
            return ControlTables(action=action.upper(), tables=cursor.names("a table's name"))
    cursor.fail(expected="ADD, DROP, SET, UNSET, PAUSE TABLE, RESUME TABLE or RESCAN TABLE")
