"""The grammar of raw keyspaces."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.as_of_clause import AsOf
from ...syntax.keyspace_statements import (
    BackupKeyspace,
    CreateKeyspace,
    DropKeyspace,
    KeyspaceFeed,
    PromoteKeyspace,
    RestoreKeyspace,
    SplitKeyspace,
    TransferKeyspace,
)
from ...syntax.names import Option
from ..cursor import Cursor

_NAME = "a keyspace's name"


def create_keyspace(cursor: Cursor) -> CreateKeyspace:
    """`[IF NOT EXISTS] name [WITH ( option = value, … )]`, or without parentheses"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.object_name(_NAME)
    options = _options(cursor)
    return CreateKeyspace(name=name, if_not_exists=if_not_exists, options=options)


def _options(cursor: Cursor) -> tuple[Option, ...]:
    if not cursor.accept_words("with"):
        return ()
    options = cursor.enclosed if cursor.at_symbol("(") else cursor.listed
    return options(cursor.option)


def backup_keyspace(cursor: Cursor) -> BackupKeyspace:
    """`name INTO 'uri' [AS OF SYSTEM TIME timestamp]`"""
    name = cursor.object_name(_NAME)
    cursor.expect_words("into")
    uri = cursor.string("the URI of a folder")
    as_of = None
    if cursor.accept_words("as", "of", "system", "time"):
        position = cursor.position
        as_of = AsOf(cursor.string("a timestamp"), None, position)
    return BackupKeyspace(name=name, uri=uri, as_of=as_of)


def restore_keyspace(cursor: Cursor) -> RestoreKeyspace:
    """`name FROM 'uri' [WITH (role = 'replica')]`"""
    name = cursor.object_name(_NAME)
    cursor.expect_words("from")
    uri = cursor.string("the URI of a backup")
    options = _options(cursor)
    return RestoreKeyspace(name=name, uri=uri, options=options)


def drop_keyspace(cursor: Cursor) -> DropKeyspace:
    """`[IF EXISTS] name`"""
    if_exists = cursor.accept_words("if", "exists")
    name = cursor.object_name(_NAME)
    return DropKeyspace(name=name, if_exists=if_exists)


def alter_keyspace(cursor: Cursor) -> PromoteKeyspace | TransferKeyspace | SplitKeyspace:
    """`name PROMOTE`, `name TRANSFER TO 'uri'`, or `name SPLIT AT 'key' [, 'key' …]`"""
    name = cursor.object_name(_NAME)
    if cursor.accept_words("split"):
        cursor.expect_words("at")
        keys = cursor.listed(lambda: _key(cursor))
        return SplitKeyspace(name, keys)
    if cursor.accept_words("transfer"):
        return TransferKeyspace(name, _transfer_target(cursor))
    cursor.expect_words("promote")
    return PromoteKeyspace(name)


def _transfer_target(cursor: Cursor) -> str:
    """`TO 'uri'`. Raises SQLError 0A000 where keys come first: `[FROM 'key'] [TO 'key']`."""
    position, part = cursor.position, cursor.accept_words("from")
    if part:
        _key(cursor)
    cursor.expect_words("to")
    target = cursor.string("the URI of a replica")
    if cursor.accept_words("to"):
        part = True
        cursor.string("the URI of a replica")
    if part:
        raise SQLError(
            "0A000",
            "some keys of a keyspace cannot be transferred without the others",
            detail="A keyspace has one leader, and one epoch: its feeds, its replicas and whoever "
            "reads it go by what that one leader has resolved.",
            hint="TRANSFER TO 'tailrace://…' hands all of its keys over. Keys that are to be led "
            "elsewhere belong in a keyspace of their own.",
            position=position,
        )
    return target


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
