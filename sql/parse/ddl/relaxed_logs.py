"""The grammar of relaxed logs."""

from __future__ import annotations

from ...syntax.relaxed_statements import CreateRelaxedLog
from ..cursor import Cursor


def create_relaxed_log(cursor: Cursor) -> CreateRelaxedLog:
    """`name FOR TABLE[S] ( name, … )`, or the names without parentheses"""
    position = cursor.position
    name = cursor.identifier("a relaxed log's name")
    cursor.expect_words("for")
    if not cursor.accept_words("tables"):
        cursor.expect_words("table")
    several = cursor.enclosed if cursor.at_symbol("(") else cursor.listed
    tables = several(lambda: cursor.object_name("a table's name"))
    return CreateRelaxedLog(name=name, tables=tables, position=position)
