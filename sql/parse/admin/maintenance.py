"""The grammar of statements that keep a PostgreSQL in shape: VACUUM and ANALYZE; and LOCK TABLE.

A store of this kind has nothing for them to do, so what they name is looked up, and no more.
"""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.maintenance_statements import Chore, Maintain
from ...syntax.names import ObjectName
from ..cursor import Cursor
from ..ddl.index_columns import column_names

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

    def table() -> ObjectName:
        cursor.accept_words("only")
        return cursor.object_name("a table's name")

    tables = cursor.listed(table)
    if not cursor.accept_words("in", "access", "share", "mode"):
        raise SQLError(
            "0A000",
            "LOCK TABLE is not supported but IN ACCESS SHARE MODE",
            hint="Serializable transactions need no table locks. SELECT … FOR UPDATE locks rows, "
            "and pg_advisory_xact_lock(n) whatever all agree on.",
            position=position,
        )
    cursor.accept_words("nowait")
    return Maintain(chore=Chore.LOCK, tables=tables)


def _tables(cursor: Cursor) -> tuple[ObjectName, ...]:
    def table() -> ObjectName:
        name = cursor.object_name("a table's name")
        if cursor.at_symbol("("):
            column_names(cursor)
        return name

    return () if cursor.finished else cursor.listed(table)


def _options(cursor: Cursor) -> None:
    """`(option [value], …)`"""

    def option() -> None:
        cursor.identifier("an option")
        if not (cursor.at_symbol(",") or cursor.at_symbol(")")):
            cursor.option_value()

    cursor.enclosed(option)
