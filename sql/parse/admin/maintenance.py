"""The grammar of statements that keep a PostgreSQL in shape: VACUUM and ANALYZE; and LOCK TABLE.

A store of this kind has nothing for them to do, so what they name is looked up, and no more.
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.maintenance_statements import Chore, Maintain
from ...syntax.names import ObjectName
from ..cursor import Cursor

_VACUUM_WORDS = ("full", "freeze", "verbose")


def vacuum(cursor: Cursor) -> Maintain:
    """`[(option, …)] [FULL] [FREEZE] [VERBOSE] [ANALYZE] [table [(column, …)], …]`"""
    if cursor.at_symbol("("):
        _options(cursor)
    else:
        for word in _VACUUM_WORDS:
            cursor.accept_words(word)
        _ = cursor.accept_words("analyze") or cursor.accept_words("analyse")
    return Maintain(chore=Chore.VACUUM, tables=_tables(cursor))


def analyze(cursor: Cursor) -> Maintain:
    """`[(option, …)] [VERBOSE] [table [(column, …)], …]`"""
    if cursor.at_symbol("("):
        _options(cursor)
    else:
        cursor.accept_words("verbose")
    return Maintain(chore=Chore.ANALYZE, tables=_tables(cursor))


def lock(cursor: Cursor) -> Maintain:
    """`[TABLE] [ONLY] table [, …] IN ACCESS SHARE MODE`, the lock that every read has: who reads a
    snapshot needs none. Raises SQLError 0A000 for the others."""
    position = cursor.position
    cursor.accept_words("table")
    tables: list[ObjectName] = []
    while not tables or cursor.accept_symbol(","):
        cursor.accept_words("only")
        tables.append(cursor.object_name("a table's name"))
    if not cursor.accept_words("in", "access", "share", "mode"):
        raise SQLError(
            "0A000",
            "LOCK TABLE is not supported but IN ACCESS SHARE MODE",
            hint="Serializable transactions need no table locks. SELECT … FOR UPDATE locks rows, "
            "and pg_advisory_xact_lock(n) whatever all agree on.",
            position=position,
        )
    cursor.accept_words("nowait")
    return Maintain(chore=Chore.LOCK, tables=tuple(tables))


def _tables(cursor: Cursor) -> tuple[ObjectName, ...]:
    tables: list[ObjectName] = []
    while not cursor.finished:
        tables.append(cursor.object_name("a table's name"))
        if cursor.accept_symbol("("):
            cursor.identifier("a column's name")
            while cursor.accept_symbol(","):
                cursor.identifier("a column's name")
            cursor.expect_symbol(")")
        if not cursor.accept_symbol(","):
            break
    return tuple(tables)


def _options(cursor: Cursor) -> None:
    """`(option [value], …)`"""
    cursor.expect_symbol("(")
    while True:
        cursor.identifier("an option")
        if not (cursor.at_symbol(",") or cursor.at_symbol(")")):
            cursor.option_value()
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
