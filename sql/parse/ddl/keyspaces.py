"""The grammar of raw keyspaces."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.keyspace_statements import (
    CreateKeyspace,
    DropKeyspace,
    KeyspaceFeed,
    PromoteKeyspace,
    ShowKeyspaces,
)
from ...syntax.names import Option
from ..cursor import Cursor

_NAME = "a keyspace's name"


def create_keyspace(cursor: Cursor) -> CreateKeyspace:
    """`[IF NOT EXISTS] name [WITH ( option = value, … )]`, or without parentheses"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.object_name(_NAME)
    options: list[Option] = []
    if cursor.accept_words("with"):
        parenthesized = cursor.accept_symbol("(")
        options.append(cursor.option())
        while cursor.accept_symbol(","):
            options.append(cursor.option())
        if parenthesized:
            cursor.expect_symbol(")")
    cursor.expect_end()
    return CreateKeyspace(name=name, if_not_exists=if_not_exists, options=tuple(options))


def drop_keyspace(cursor: Cursor) -> DropKeyspace:
    """`[IF EXISTS] name`"""
    if_exists = cursor.accept_words("if", "exists")
    name = cursor.object_name(_NAME)
    cursor.expect_end()
    return DropKeyspace(name=name, if_exists=if_exists)


def alter_keyspace(cursor: Cursor) -> PromoteKeyspace:
    """`name PROMOTE`"""
    name = cursor.object_name(_NAME)
    cursor.expect_words("promote")
    cursor.expect_end()
    return PromoteKeyspace(name)


def show_keyspaces(cursor: Cursor) -> ShowKeyspaces:
    cursor.expect_end()
    return ShowKeyspaces()


def keyspace_feed(cursor: Cursor) -> KeyspaceFeed:
    """`name [FROM 'key'] [TO 'key']`, what follows FOR KEYSPACE"""
    name = cursor.object_name(_NAME)
    start, end = b"", None
    if cursor.accept_words("from"):
        start = _key(cursor)
    if cursor.accept_words("to"):
        end = _key(cursor)
    return KeyspaceFeed(name=name, start=start, end=end)


def _key(cursor: Cursor) -> bytes:
    """A text is its bytes in UTF-8, and one that begins with `\\x` what follows in hex."""
    position = cursor.position
    text = cursor.string("a key")
    if not text.startswith("\\x"):
        return text.encode()
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise SQLError(
            "22P02", f'"{text}" is no key: what follows \\x must be hex', position=position
        ) from None
