"""Transactions, savepoints and session variables."""

from __future__ import annotations

from dataclasses import replace

from ...catalog.values.errors import SQLError
from ...kvlayer.transaction_modes import Isolation
from ..syntax.refusals import unsupported
from ..syntax.rights_statements import ActAs
from ..syntax.statements import Statement, UseDatabase
from ..syntax.transaction_statements import (
    Begin,
    Commit,
    MakeSavepoint,
    ReleaseSavepoint,
    Rollback,
    RollbackTo,
    SetCharacteristics,
    SetTransaction,
    SetVariable,
    TransactionModes,
)
from .cursor import Cursor, LexemeKind
from .queries import parse_as_of

_LEVELS = {
    ("serializable",): Isolation.SERIALIZABLE,
    ("repeatable", "read"): Isolation.REPEATABLE_READ,
    ("snapshot",): Isolation.REPEATABLE_READ,  # CockroachDB's word
    ("read", "committed"): Isolation.READ_COMMITTED,
    # As in Postgres: nobody reads what is not committed.
    ("read", "uncommitted"): Isolation.READ_COMMITTED,
}


def begin(cursor: Cursor) -> Begin:
    """`[TRANSACTION | WORK] [modes]`"""
    _accept_transaction_word(cursor)
    return Begin(_modes(cursor, required=False))


def commit(cursor: Cursor) -> Commit:
    _accept_transaction_word(cursor)
    cursor.expect_end()
    return Commit()


def rollback(cursor: Cursor) -> Rollback | RollbackTo:
    """`[TRANSACTION | WORK] [TO [SAVEPOINT] name]`"""
    _accept_transaction_word(cursor)
    if cursor.accept_words("to"):
        cursor.accept_words("savepoint")
        position = cursor.position
        name = cursor.identifier("a savepoint's name")
        cursor.expect_end()
        return RollbackTo(name, position)
    cursor.expect_end()
    return Rollback()


def savepoint(cursor: Cursor) -> MakeSavepoint:
    name = cursor.identifier("a savepoint's name")
    cursor.expect_end()
    return MakeSavepoint(name)


def release(cursor: Cursor) -> ReleaseSavepoint:
    """`[SAVEPOINT] name`"""
    cursor.accept_words("savepoint")
    position = cursor.position
    name = cursor.identifier("a savepoint's name")
    cursor.expect_end()
    return ReleaseSavepoint(name, position)


def set_transaction(cursor: Cursor) -> SetTransaction:
    return SetTransaction(_modes(cursor, required=True))


def set_characteristics(cursor: Cursor) -> SetCharacteristics:
    """`mode, …` behind SET SESSION CHARACTERISTICS AS TRANSACTION. Raises SQLError 0A000 for AS OF
    SYSTEM TIME."""
    here = cursor.position
    modes = _modes(cursor, required=True)
    if modes.as_of is not None:
        raise SQLError(
            "0A000",
            "AS OF SYSTEM TIME is for one transaction, not for a session",
            position=here,
            hint="SET TRANSACTION AS OF SYSTEM TIME sets it in a transaction.",
        )
    return SetCharacteristics(modes)


def set_variable(cursor: Cursor) -> Statement:
    """`[SESSION | LOCAL] name (= | TO) (value [, value]… | DEFAULT)`"""
    local = cursor.accept_words("local")
    if not local and not cursor.at_words("session", "authorization"):
        cursor.accept_words("session")
    acting = acting_user(cursor, local=local)
    if acting is not None:
        return acting
    position = cursor.position
    if cursor.accept_words("time", "zone"):
        name = "timezone"
        if cursor.accept_words("local"):  # the server's, which is UTC, as is the default
            cursor.expect_end()
            return SetVariable(name=name, value=None, local=local, position=position)
        if cursor.accept_words("interval"):
            hours = cursor.string("an interval of hours").removesuffix(":00")
            cursor.accept_words("hour", "to", "minute")
            cursor.expect_end()
            return SetVariable(name=name, value=hours, local=local, position=position)
    else:
        name = cursor.dotted_name("a session variable").lower()
        if not cursor.accept_words("to"):
            cursor.expect_symbol("=")
    if name == "database" and not local and not cursor.at_words("default"):
        return UseDatabase(name=_value(cursor, last=True))
    if cursor.accept_words("default"):
        cursor.expect_end()
        return SetVariable(name=name, value=None, local=local, position=position)
    values = [_value(cursor)]
    while cursor.accept_symbol(","):
        values.append(_value(cursor))
    cursor.expect_end()
    return SetVariable(name=name, value=", ".join(values), local=local, position=position)


def reset_variable(cursor: Cursor) -> Statement:
    """`{ALL | name | TIME ZONE | ROLE | SESSION AUTHORIZATION}` behind RESET."""
    position = cursor.position
    acting = reset_acting_user(cursor)
    if acting is not None:
        return acting
    if cursor.accept_words("time", "zone"):
        name = "timezone"
    else:
        name = "all" if cursor.accept_words("all") else cursor.dotted_name("a session variable")
    cursor.expect_end()
    return SetVariable(name=name.lower(), value=None, local=False, position=position)


def _value(cursor: Cursor, *, last: bool = False) -> str:
    """A value's text: a string, a number, or words (`read committed`)."""
    if cursor.current.kind is LexemeKind.QUOTED:
        text = cursor.advance().text
    else:
        words = [cursor.option_value()]
        while cursor.current.kind is LexemeKind.WORD:
            words.append(cursor.advance().text)
        text = " ".join(words)
    if last:
        cursor.expect_end()
    return text


def _modes(cursor: Cursor, *, required: bool) -> TransactionModes:
    modes = TransactionModes()
    while not cursor.finished:
        modes = _mode(cursor, modes)
        if cursor.accept_symbol(",") and cursor.finished:
            cursor.fail(expected="a transaction mode")
    if required and modes == TransactionModes():
        cursor.fail(expected="a transaction mode")
    if modes.as_of is not None:
        if modes.read_only is False:
            raise SQLError("25006", "AS OF SYSTEM TIME reads only", position=modes.as_of.position)
        modes = replace(modes, read_only=True)
    return modes


def _mode(cursor: Cursor, modes: TransactionModes) -> TransactionModes:
    if cursor.accept_words("isolation", "level"):
        for words, isolation in _LEVELS.items():
            if cursor.accept_words(*words):
                return replace(modes, isolation=isolation)
        cursor.fail(expected="SERIALIZABLE, REPEATABLE READ or READ COMMITTED")
    if cursor.accept_words("read", "only"):
        return replace(modes, read_only=True)
    if cursor.accept_words("read", "write"):
        return replace(modes, read_only=False)
    if cursor.accept_words("deferrable"):
        return replace(modes, deferrable=True)
    if cursor.accept_words("not", "deferrable"):
        return replace(modes, deferrable=False)
    if cursor.at_words("priority"):
        raise unsupported(
            "priorities of transactions",
            cursor.position,
            "SET lock_timeout bounds how long a statement waits for others.",
        )
    if cursor.accept_words("as", "of", "system", "time"):
        as_of, behind = parse_as_of(cursor.text, cursor.tokens, cursor.current.token_index)
        cursor.skip_to_token(behind)
        return replace(modes, as_of=as_of)
    cursor.fail(expected="ISOLATION LEVEL, READ ONLY, READ WRITE, DEFERRABLE or AS OF SYSTEM TIME")


def _accept_transaction_word(cursor: Cursor) -> None:
    if not cursor.accept_words("transaction"):
        cursor.accept_words("work")


_WRITTEN: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("session", "authorization"), True),
    (("session_authorization",), True),
    (("role",), False),
)
"""The words, and whether they are about the session's user."""


def acting_user(cursor: Cursor, *, local: bool) -> ActAs | None:
    """Reads ROLE and SESSION AUTHORIZATION behind SET [LOCAL]; None at another SET."""
    for words, session in _WRITTEN:
        if cursor.accept_words(*words):
            _ = cursor.accept_words("to") or cursor.accept_symbol("=")
            position = cursor.position
            name = _name(cursor, session)
            cursor.expect_end()
            return ActAs(name=name, session=session, local=local, reset=False, position=position)
    return None


def reset_acting_user(cursor: Cursor) -> ActAs | None:
    """Reads ROLE and SESSION AUTHORIZATION behind RESET; None at another RESET."""
    position = cursor.position
    for words, session in _WRITTEN:
        if cursor.accept_words(*words):
            cursor.expect_end()
            return ActAs(name=None, session=session, local=False, reset=True, position=position)
    return None


def _name(cursor: Cursor, session: bool) -> str | None:
    if cursor.current.kind is LexemeKind.STRING:
        name = cursor.advance().text
        return None if name == "none" and not session else name
    if cursor.accept_words("default") or (not session and cursor.accept_words("none")):
        return None
    return cursor.identifier("a role's name")
