"""The grammar of relaxed logs."""

from __future__ import annotations

from ...syntax.relaxed_statements import CreateRelaxedLog, DropRelaxedLog, ShowRelaxedLogs
from ..cursor import Cursor


def create_relaxed_log(cursor: Cursor) -> CreateRelaxedLog:
    """`name FOR TABLE[S] ( name, … )`, or the names without parentheses"""
    position = cursor.position
    name = cursor.identifier("a relaxed log's name")
    cursor.expect_words("for")
    if not cursor.accept_words("tables"):
        cursor.expect_words("table")
    parenthesized = cursor.accept_symbol("(")
    tables = [cursor.object_name("a table's name")]
    while cursor.accept_symbol(","):
        tables.append(cursor.object_name("a table's name"))
    if parenthesized:
        cursor.expect_symbol(")")
    cursor.expect_end()
    return CreateRelaxedLog(name=name, tables=tuple(tables), position=position)


def drop_relaxed_log(cursor: Cursor) -> DropRelaxedLog:
    """`[IF EXISTS] name`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = cursor.identifier("a relaxed log's name")
    cursor.expect_end()
    return DropRelaxedLog(name=name, if_exists=if_exists, position=position)


def show_relaxed_logs(cursor: Cursor) -> ShowRelaxedLogs:
    cursor.expect_end()
    return ShowRelaxedLogs()
