"""The grammar of external connections."""

from __future__ import annotations

from ...syntax.connection_statements import (
    AlterConnection,
    CreateConnection,
    DropConnection,
    ShowConnections,
)
from ..cursor import Cursor, LexemeKind
from .rights import role_name

WHAT = "an external connection's name"


def create_connection(cursor: Cursor) -> CreateConnection:
    """`[IF NOT EXISTS] name AS 'uri'`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    position = cursor.position
    name = _name(cursor)
    cursor.expect_words("as")
    uri = cursor.string("a sink URI")
    return CreateConnection(name=name, uri=uri, if_not_exists=if_not_exists, position=position)


def alter_connection(cursor: Cursor) -> AlterConnection:
    """`[IF EXISTS] name { AS 'uri' | OWNER TO role }`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = _name(cursor)
    uri = owner = None
    if cursor.accept_words("owner", "to"):
        owner = role_name(cursor)
    else:
        cursor.expect_words("as")
        uri = cursor.string("a sink URI")
    return AlterConnection(name=name, uri=uri, owner=owner, if_exists=if_exists, position=position)


def drop_connection(cursor: Cursor) -> DropConnection:
    """`[IF EXISTS] name`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = _name(cursor)
    return DropConnection(name=name, if_exists=if_exists, position=position)


def show_connection(cursor: Cursor) -> ShowConnections:
    name = _name(cursor)
    return ShowConnections(name=name)


def _name(cursor: Cursor) -> str:
    """CockroachDB's documents quote it as a string, its grammar takes a name too."""
    if cursor.current.kind is LexemeKind.STRING:
        return cursor.string(WHAT)
    return cursor.identifier(WHAT)
