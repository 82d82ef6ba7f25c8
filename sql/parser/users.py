"""The grammar of users.

    CREATE USER [IF NOT EXISTS] name [[WITH] [LOGIN] [PASSWORD 'secret' | PASSWORD NULL]]
    ALTER USER name [WITH] [LOGIN] PASSWORD 'secret'
    DROP USER [IF EXISTS] name, …

ROLE may stand for USER.
"""

from __future__ import annotations

from ...catalog.errors import SQLError
from .cursor import Cursor, LexemeKind
from .user_statements import AlterUser, CreateUser, DropUser, ShowUsers


def create_user(cursor: Cursor) -> CreateUser:
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = _name(cursor)
    password, _ = _options(cursor)
    return CreateUser(name=name, password=password, if_not_exists=if_not_exists)


def alter_user(cursor: Cursor) -> AlterUser:
    name = _name(cursor)
    password, given = _options(cursor)
    if not given:
        cursor.fail(expected="PASSWORD")
    return AlterUser(name=name, password=password)


def drop_user(cursor: Cursor) -> DropUser:
    if_exists = cursor.accept_words("if", "exists")
    names = [_name(cursor)]
    while cursor.accept_symbol(","):
        names.append(_name(cursor))
    cursor.expect_end()
    return DropUser(names=tuple(names), if_exists=if_exists)


def show_users(cursor: Cursor) -> ShowUsers:
    cursor.expect_end()
    return ShowUsers()


def _name(cursor: Cursor) -> str:
    return cursor.identifier("a user's name")


def _options(cursor: Cursor) -> tuple[str | None, bool]:
    """The password, and whether PASSWORD was written."""
    cursor.accept_words("with")
    password, given = None, False
    while not cursor.finished:
        if cursor.accept_words("login"):
            continue
        if cursor.accept_words("nologin"):
            raise SQLError("0A000", "NOLOGIN is not supported", position=cursor.position)
        cursor.accept_words("encrypted")
        if given or not cursor.accept_words("password"):
            cursor.fail(expected="PASSWORD or the end of the statement")
        given = True
        if cursor.current.kind is LexemeKind.WORD and cursor.accept_words("null"):
            continue
        password = cursor.string("a password")
    return password, given
