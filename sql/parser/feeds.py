"""The grammar of changefeeds, jobs, settings and the session."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from ...catalog.errors import SQLError
from .cursor import Cursor, LexemeKind
from .queries import parse_as_of
from .statements import (
    AsOf,
    Begin,
    Commit,
    ControlJobs,
    CreateChangefeed,
    JobAction,
    Rollback,
    SetClusterSetting,
    ShowClusterSettings,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowJobs,
    ShowSession,
    ShowTables,
    Statement,
    UseDatabase,
)


def create_changefeed(cursor: Cursor) -> CreateChangefeed:
    """`FOR [TABLE] name, … [INTO 'uri'] [WITH option [= value], …]`"""
    cursor.expect_words("for")
    cursor.accept_words("table")
    tables = [cursor.object_name("a table's name")]
    while cursor.accept_symbol(","):
        cursor.accept_words("table")
        tables.append(cursor.object_name("a table's name"))
    sink = cursor.string("the sink's URI") if cursor.accept_words("into") else None
    options = []
    if cursor.accept_words("with"):
        parenthesized = cursor.accept_symbol("(")
        options.append(cursor.option())
        while cursor.accept_symbol(","):
            options.append(cursor.option())
        if parenthesized:
            cursor.expect_symbol(")")
    cursor.expect_end()
    return CreateChangefeed(
        tables=tuple(tables), sink=sink, options=tuple(options), text=cursor.statement_text
    )


def control_jobs(cursor: Cursor, action: JobAction) -> ControlJobs:
    if not cursor.accept_words("jobs"):
        cursor.expect_words("job")
    ids = [cursor.integer("a job's id")]
    while cursor.accept_symbol(","):
        ids.append(cursor.integer("a job's id"))
    cursor.expect_end()
    return ControlJobs(action=action, job_ids=tuple(ids))


def show(cursor: Cursor) -> Statement:
    statement = _shown(cursor)
    cursor.expect_end()
    return statement


def _shown(cursor: Cursor) -> Statement:
    position = cursor.position
    for words, only in ((("changefeed",), True), ((), False)):
        if cursor.accept_words(*words, "jobs"):
            return ShowJobs(changefeeds_only=only, job_id=None)
        if cursor.accept_words(*words, "job"):
            return ShowJobs(changefeeds_only=only, job_id=cursor.integer("a job's id"))
    if cursor.accept_words("cluster", "settings") or cursor.accept_words(
        "all", "cluster", "settings"
    ):
        return ShowClusterSettings(name=None, position=position)
    if cursor.accept_words("cluster", "setting"):
        position = cursor.position
        if cursor.accept_words("all"):
            return ShowClusterSettings(name=None, position=position)
        return ShowClusterSettings(name=cursor.dotted_name("a setting"), position=position)
    if cursor.accept_words("tables"):
        database = cursor.identifier("a database's name") if cursor.accept_words("from") else None
        return ShowTables(database=database)
    if cursor.accept_words("databases"):
        return ShowDatabases()
    if cursor.accept_words("create"):
        cursor.accept_words("table")
        return ShowCreateTable(table=cursor.object_name("a table's name"))
    if cursor.accept_words("columns"):
        cursor.expect_words("from")
        return ShowColumns(table=cursor.object_name("a table's name"))
    if cursor.current.kind is LexemeKind.WORD:
        return ShowSession(name=cursor.dotted_name("what to show"), position=position)
    cursor.fail(expected="TABLES, DATABASES, COLUMNS, CREATE TABLE, JOBS or CLUSTER SETTINGS")


def set_statement(cursor: Cursor) -> Statement:
    """`CLUSTER SETTING name = value` or `database = name`"""
    if cursor.accept_words("cluster"):
        cursor.expect_words("setting")
        position = cursor.position
        name = cursor.dotted_name("a setting")
        _expect_equals(cursor)
        default = cursor.at_words("default")
        value = cursor.option_value()
        cursor.expect_end()
        return SetClusterSetting(name=name, value=None if default else value, position=position)
    cursor.accept_words("session")
    position = cursor.position
    name = cursor.dotted_name("a setting")
    if name != "database":
        raise SQLError(
            "42704",
            f'unrecognized configuration parameter "{name}"',
            position=position,
            hint="A session has the parameter database; SET CLUSTER SETTING sets the store's.",
        )
    _expect_equals(cursor)
    database = (
        cursor.string("a name")
        if cursor.current.kind is LexemeKind.STRING
        else cursor.identifier("a database's name")
    )
    cursor.expect_end()
    return UseDatabase(name=database)


def reset_statement(cursor: Cursor) -> SetClusterSetting:
    cursor.expect_words("cluster", "setting")
    position = cursor.position
    name = cursor.dotted_name("a setting")
    cursor.expect_end()
    return SetClusterSetting(name=name, value=None, position=position)


def use(cursor: Cursor) -> UseDatabase:
    name = cursor.identifier("a database's name")
    cursor.expect_end()
    return UseDatabase(name=name)


def begin(cursor: Cursor) -> Begin:
    """`[TRANSACTION | WORK] [ISOLATION LEVEL SERIALIZABLE] [READ ONLY] [AS OF SYSTEM TIME x]`"""
    _accept_transaction_word(cursor)
    read_only, as_of = False, None
    while not cursor.finished:
        here = cursor.position
        if cursor.accept_words("read", "only"):
            read_only = True
        elif cursor.accept_words("read", "write"):
            read_only = False
        elif cursor.accept_words("isolation", "level"):
            if not cursor.accept_words("serializable"):
                raise SQLError(
                    "0A000", "every transaction is SERIALIZABLE", position=cursor.position
                )
        elif cursor.accept_words("as", "of", "system", "time"):
            as_of = _as_of(cursor)
        else:
            cursor.fail(expected="READ ONLY, AS OF SYSTEM TIME or the end of the statement")
        assert cursor.position > here, here
        cursor.accept_symbol(",")
    return Begin(read_only=read_only or as_of is not None, as_of=as_of)


def commit(cursor: Cursor) -> Commit:
    _accept_transaction_word(cursor)
    cursor.expect_end()
    return Commit()


def rollback(cursor: Cursor) -> Rollback:
    _accept_transaction_word(cursor)
    if cursor.at_words("to"):
        raise SQLError("0A000", "savepoints are not supported", position=cursor.position)
    cursor.expect_end()
    return Rollback()


def _accept_transaction_word(cursor: Cursor) -> None:
    if not cursor.accept_words("transaction"):
        cursor.accept_words("work")


def _as_of(cursor: Cursor) -> AsOf:
    as_of, behind = parse_as_of(cursor.text, cursor.tokens, cursor.current.token_index)
    cursor.skip_to_token(behind)
    return as_of


def _expect_equals(cursor: Cursor) -> None:
    if not cursor.accept_words("to"):
        cursor.expect_symbol("=")


QUERY_TOKENS = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.TABLE}
)
"""What a query begins with."""
