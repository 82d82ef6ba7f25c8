"""Transactions, session variables, prepared statements, cursors, and what keeps a PostgreSQL in
shape, for which a store of this kind has nothing to do."""

from __future__ import annotations

from dataclasses import asdict, replace

from ....catalog.values.errors import SQLError
from ...syntax.statement import rows_of
from ...syntax.statements import ShowSession
from ...syntax.transaction_statements import Direction, FetchCursor, TransactionModes
from ...variables.variables import LEVELS
from .. import kinds
from ..cursor import Cursor, Unmatched
from ..rules import Row, Rules

kinds.define_rules(
    "isolation", kinds.one_of({name.upper(): level for name, level in LEVELS.items()})
)
_MODES: tuple[Row, ...] = (
    ("ISOLATION LEVEL isolation:isolation", dict),
    ("READ ONLY", dict, {"read_only": True}),
    ("READ WRITE", dict, {"read_only": False}),
    ("DEFERRABLE", dict, {"deferrable": True}),
    ("NOT DEFERRABLE", dict, {"deferrable": False}),
)
_lasting_modes = kinds.gathered(Rules(*_MODES), commas=True)
_modes_given = kinds.gathered(Rules(*_MODES, ("AS OF SYSTEM TIME as_of:moment", dict)), commas=True)


@kinds.kind("modes")
def _modes(cursor: Cursor) -> TransactionModes:
    modes = TransactionModes(**_modes_given(cursor))  # type: ignore[arg-type]
    if modes.as_of is None:
        return modes
    if modes.read_only is False:
        raise SQLError("25006", "AS OF SYSTEM TIME reads only", position=modes.as_of.position)
    return replace(modes, read_only=True)


def _some(cursor: Cursor, modes: TransactionModes) -> TransactionModes:
    if modes == TransactionModes():
        cursor.fail("a transaction mode")
    return modes


kinds.define("some_modes", lambda cursor: _some(cursor, _modes(cursor)))
kinds.define(
    "lasting_modes",
    lambda cursor: _some(cursor, TransactionModes(**_lasting_modes(cursor))),  # type: ignore[arg-type]
)


# What SHOW takes.

_LONGER = frozenset(
    """
    changefeed cluster columns create dead external job paused ranges relaxed replication running
    schedule system transaction
    """.split()  # noqa: SIM905 (a list of words is read as such)
)


@kinds.kind("shown")
def _shown(cursor: Cursor) -> str:
    """A variable's name, which no word is that something else has to stand behind."""
    if cursor.key in _LONGER:
        raise Unmatched
    return kinds.dotted(cursor, "what to show")


_CATALOGS = {
    "ALL": "pg_settings lists a session's variables.",
    "DATABASE": "SELECT current_database() tells it.",
    "SCHEMAS": "information_schema.schemata lists them.",
    "SEQUENCES": "pg_sequences lists them, with their last values.",
    "TYPES/ENUMS": "pg_type lists them, and pg_enum their labels.",
    "INDEXES/INDEX/KEYS": "pg_indexes lists them, and SHOW CREATE TABLE those of a table.",
    "CONSTRAINTS/CONSTRAINT": "pg_constraint lists them, and SHOW CREATE TABLE those of a table.",
    "USERS/ROLES": "pg_roles lists them, and pg_auth_members the members of roles.",
    "GRANTS": "tailrace_internal.grants lists them, and pg_auth_members the members of roles.",
    "SESSIONS/QUERIES/STATEMENTS": "pg_stat_activity lists sessions, and what each runs.",
}
"""The names that SHOW refuses, with the catalog that has the answer."""

SHOWS: tuple[Row, ...] = (
    ("SHOW TRANSACTION ^ ISOLATION LEVEL", ShowSession, {"name": "transaction_isolation"}),
    *(
        (f"SHOW {words} ^ _:rest", kinds.refused(f"SHOW {words.partition('/')[0]}", hint))
        for words, hint in _CATALOGS.items()
    ),
    ("SHOW ^ TIME ZONE", ShowSession, {"name": "timezone"}),
    ("SHOW ^ name:shown", ShowSession),
)


# Prepared statements.


kinds.define_rules(
    "argument",
    Rules(
        ("NULL", lambda: None),
        ("name:text", kinds.itself),
        ("number:number", lambda number: f"{number}"),
    ),
)


# Cursors.


kinds.define_rules("direction", Rules(*rows_of(Direction)), absent=Direction())
kinds.refuses(
    "scroll",
    "SCROLL",
    "a cursor that goes backwards",
    "Declare it again to begin anew; ORDER BY … DESC reads from the end.",
)


def _fetched(position: int, name: str, direction: Direction, moves: bool = False) -> FetchCursor:
    return FetchCursor(**asdict(direction), name=name, moves=moves, position=position)


CURSORS: tuple[Row, ...] = (
    ("FETCH [direction:direction] [FROM/IN] ^ name:cursor", _fetched),
    ("FETCH ^ name:cursor", _fetched, {"direction": Direction()}),
    ("moves:MOVE [direction:direction] [FROM/IN] ^ name:cursor", _fetched),
    ("moves:MOVE ^ name:cursor", _fetched, {"direction": Direction()}),
)


# Chores.


kinds.define_rules("cleaned", Rules(("name:table [_:(column,…)]", kinds.itself)))
kinds.define_rules("locked", Rules(("[ONLY] name:table", kinds.itself)))
kinds.define_rules("chore_option", Rules(("_:option_word [_:value]", dict)))
_ONLY_SHARED = (
    "Serializable transactions need no table locks. SELECT … FOR UPDATE locks rows, "
    "and pg_advisory_xact_lock(n) whatever all agree on."
)

CHORES: tuple[Row, ...] = (
    (
        "LOCK ^ [TABLE] _:locked,… [IN _:rest]",
        kinds.refused("LOCK TABLE but IN ACCESS SHARE MODE", _ONLY_SHARED),
    ),
)
