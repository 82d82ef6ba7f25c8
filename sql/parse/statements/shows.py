"""SHOW of what only its words tell from a session variable."""

from __future__ import annotations

from ...syntax.statements import ShowSession
from ..cursor import Cursor, Unmatched
from ..kinds import define, dotted, refused
from ..rules import Row

_LONGER = frozenset(
    """
    changefeed cluster columns create dead external job paused ranges relaxed replication running
    schedule system transaction
    """.split()  # noqa: SIM905 (a list of words is read as such)
)


def _shown(cursor: Cursor) -> str:
    """A variable's name, which no word is that something else has to stand behind."""
    if cursor.keys[cursor.index] in _LONGER:
        raise Unmatched
    return dotted(cursor, "what to show")


define("shown", _shown)
_CONSTRAINTS = (
    "pg_constraint lists them, pg_get_constraintdef(oid) says what each is, and SHOW CREATE "
    "TABLE all of a table's."
)
_CATALOGS = {
    "SCHEMAS": "information_schema.schemata lists them.",
    "SEQUENCES": "pg_sequences lists them, with their last values.",
    "TYPES": "pg_type lists them, and pg_enum their labels.",
    "ENUMS": "pg_type lists them, and pg_enum their labels.",
    **dict.fromkeys(("INDEXES", "INDEX", "KEYS"), "pg_indexes lists them."),
    **dict.fromkeys(("CONSTRAINTS", "CONSTRAINT"), _CONSTRAINTS),
    **dict.fromkeys(
        ("GRANTS", "SYSTEM GRANTS"),
        "tailrace_internal.grants lists them, and pg_auth_members the members of roles.",
    ),
}
"""What SHOW does not tell, with where it stands."""

SHOWS: tuple[Row, ...] = (
    *(
        (f"SHOW TRANSACTION ^ {words}", ShowSession, {"name": f"transaction_{name}"})
        for words, name in (("ISOLATION LEVEL", "isolation"), ("STATUS", "status"))
    ),
    *(
        (f"SHOW {words} ^ _:rest", refused(f"SHOW {words}", hint))
        for words, hint in _CATALOGS.items()
    ),
    ("SHOW ^ ALL", ShowSession, {"name": "all"}),
    ("SHOW ^ TIME ZONE", ShowSession, {"name": "timezone"}),
    ("SHOW ^ name:shown", ShowSession),
)
