"""The grammar of users and roles.

    CREATE USER [IF NOT EXISTS] name [[WITH] option …]
    ALTER USER [IF EXISTS] name [WITH] option …
    DROP USER [IF EXISTS] name, …

An option is `[NO]LOGIN`, `PASSWORD 'secret'`, `PASSWORD NULL`, `IN ROLE name, …`, or a system
privilege with or without NO before it, such as `CREATEDB`. ROLE may stand for USER; a role may not
log in unless it says so.
"""

from __future__ import annotations

from dataclasses import replace

from ....catalog.rights.privileges import ALL_OF, SecurableKind
from ...syntax.refusals import unsupported
from ...syntax.user_statements import AlterUser, CreateUser, DropUser, RoleOptions
from ..cursor import Cursor, LexemeKind

SYSTEM_OPTIONS = frozenset(str(one.name).lower() for one in ALL_OF[SecurableKind.SYSTEM])


def create_user(cursor: Cursor, *, login: bool) -> CreateUser:
    """`[IF NOT EXISTS] role [[WITH] option …]`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = _name(cursor)
    options = _options(cursor)
    return CreateUser(name=name, options=options, if_not_exists=if_not_exists, login=login)


def alter_user(cursor: Cursor) -> AlterUser:
    """`[IF EXISTS] role [WITH] option …`"""
    if_exists = cursor.accept_words("if", "exists")
    name = _name(cursor)
    options = _options(cursor)
    if options == RoleOptions():
        cursor.fail(expected="PASSWORD, LOGIN or a system privilege")
    return AlterUser(name=name, options=options, if_exists=if_exists)


def drop_user(cursor: Cursor) -> DropUser:
    """`[IF EXISTS] role, …`"""
    if_exists = cursor.accept_words("if", "exists")
    names = cursor.listed(lambda: _name(cursor))
    return DropUser(names=names, if_exists=if_exists)


def _name(cursor: Cursor) -> str:
    return cursor.identifier("a user's name")


def _options(cursor: Cursor) -> RoleOptions:
    cursor.accept_words("with")
    options = RoleOptions()
    while not cursor.finished:
        options = _option(cursor, options)
    return options


def _option(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    if cursor.accept_words("login") or cursor.at_words("nologin"):
        return replace(options, login=not cursor.accept_words("nologin"))
    if cursor.accept_words("inherit"):
        return options  # there is no other way
    if cursor.accept_words("in", "role"):
        roles = cursor.listed(lambda: _name(cursor))
        return replace(options, in_roles=(*options.in_roles, *roles))
    if cursor.at_words("superuser"):
        raise unsupported(
            "SUPERUSER", cursor.position, "GRANT admin TO the role: its members may do everything."
        )
    word = cursor.current.text if cursor.current.kind is LexemeKind.WORD else ""
    if word in SYSTEM_OPTIONS:
        cursor.advance()
        return replace(options, granted=(*options.granted, word.upper()))
    if word.startswith("no") and word[2:] in SYSTEM_OPTIONS:
        cursor.advance()
        return replace(options, revoked=(*options.revoked, word[2:].upper()))
    return _password(cursor, options)


def _password(cursor: Cursor, options: RoleOptions) -> RoleOptions:
    cursor.accept_words("encrypted")
    if options.password_given or not cursor.accept_words("password"):
        cursor.fail(expected="PASSWORD, LOGIN, a system privilege or the end of the statement")
    password = None if cursor.accept_words("null") else cursor.string("a password")
    return replace(options, password=password, password_given=True)
