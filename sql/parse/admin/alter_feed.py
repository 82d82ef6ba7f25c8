"""The grammar of ALTER CHANGEFEED."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...syntax.changefeed_statements import (
    AddTables,
    AlterChangefeed,
    ControlTables,
    DropTables,
    FeedClause,
    SetFeedOptions,
    UnsetFeedOptions,
)
from ...syntax.names import ObjectName
from ..cursor import Cursor

T = TypeVar("T")


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
        tables = _tables(cursor)
        options = _several(cursor, cursor.option) if cursor.accept_words("with") else ()
        return AddTables(tables=tables, options=options)
    if cursor.accept_words("drop"):
        cursor.accept_words("table")
        return DropTables(tables=_tables(cursor))
    if cursor.accept_words("set"):
        return SetFeedOptions(options=_several(cursor, cursor.option))
    if cursor.accept_words("unset"):
        names = _several(cursor, lambda: cursor.dotted_name("an option"))
        return UnsetFeedOptions(names=names)
    for action in ("pause", "resume", "rescan"):
        if cursor.accept_words(action):
            cursor.expect_words("table")
            return ControlTables(action=action.upper(), tables=_tables(cursor))
    cursor.fail(expected="ADD, DROP, SET, UNSET, PAUSE TABLE, RESUME TABLE or RESCAN TABLE")


def _tables(cursor: Cursor) -> tuple[ObjectName, ...]:
    return _several(cursor, lambda: cursor.object_name("a table's name"))


def _several(cursor: Cursor, one: Callable[[], T]) -> tuple[T, ...]:
    """One or more, with commas between them."""
    found = [one()]
    while cursor.accept_symbol(","):
        found.append(one())
    return tuple(found)
