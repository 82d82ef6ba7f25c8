"""The grammar of SHOW for catalogs and sessions, and of CANCEL for the latter.

SHOW SCHEMAS [FROM database]
SHOW { INDEXES | INDEX | KEYS | CONSTRAINTS | CONSTRAINT } FROM table
SHOW { SEQUENCES | TYPES | ENUMS } [FROM database]
SHOW [CLUSTER | LOCAL | ALL] { SESSIONS | QUERIES | STATEMENTS }
CANCEL { QUERY | QUERIES | SESSION | SESSIONS } [IF EXISTS] 'id', …
"""

from __future__ import annotations

from ...syntax.names import ObjectName
from ...syntax.show_statements import (
    Cancel,
    ShowConstraints,
    ShowIndexes,
    ShowObjects,
    ShowQueries,
    ShowSchemas,
    ShowSequences,
    ShowSessions,
    ShowTypes,
)
from ...syntax.statements import JobAction, Statement
from ..cursor import Cursor
from . import feeds


def show_schemas(cursor: Cursor) -> ShowSchemas:
    return ShowSchemas(database=_from_database(cursor))


def show_sequences(cursor: Cursor) -> ShowSequences:
    return ShowSequences(database=_from_database(cursor))


def show_types(cursor: Cursor) -> ShowTypes:
    return ShowTypes(database=_from_database(cursor))


def _from_database(cursor: Cursor) -> str | None:
    database = cursor.identifier("a database's name") if cursor.accept_words("from") else None
    cursor.expect_end()
    return database


def show_indexes(cursor: Cursor) -> ShowIndexes:
    return ShowIndexes(table=_from_table(cursor))


def show_constraints(cursor: Cursor) -> ShowConstraints:
    return ShowConstraints(table=_from_table(cursor))


def _from_table(cursor: Cursor) -> ObjectName:
    cursor.expect_words("from")
    cursor.accept_words("table")
    name = cursor.object_name("a table's name")
    cursor.expect_end()
    return name


def show_sessions(cursor: Cursor) -> ShowObjects:
    cursor.expect_end()
    return ShowSessions()


def show_queries(cursor: Cursor) -> ShowObjects:
    cursor.expect_end()
    return ShowQueries()


def cancel(cursor: Cursor) -> Statement:
    """Reads CANCEL QUERY, CANCEL SESSION or CANCEL JOBS."""
    session = cursor.accept_words("session") or cursor.accept_words("sessions")
    if not (session or cursor.accept_words("query") or cursor.accept_words("queries")):
        return feeds.control_jobs(cursor, JobAction.CANCEL)
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    what = "a session's id" if session else "a query's id"
    ids = [cursor.string(what)]
    while cursor.accept_symbol(","):
        ids.append(cursor.string(what))
    cursor.expect_end()
    return Cancel(ids=tuple(ids), session=session, if_exists=if_exists, position=position)
