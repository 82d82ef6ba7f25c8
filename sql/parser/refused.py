"""Statements that are understood and not offered: what is said of each, by how it begins."""

from __future__ import annotations

from ...catalog.errors import SQLError
from .cursor import Cursor

_TEMPORARY = "Create a table, and drop it when it is not needed any more."
_CHANNELS = "CREATE CHANGEFEED FOR t streams the rows that change to the client."
_FUNCTIONS = "Statements are sent one by one, or several in one text."

REFUSED: dict[tuple[str, ...], tuple[str, str]] = {
    ("create", "temp"): ("temporary tables", _TEMPORARY),
    ("create", "temporary"): ("temporary tables", _TEMPORARY),
    ("create", "local", "temp"): ("temporary tables", _TEMPORARY),
    ("create", "local", "temporary"): ("temporary tables", _TEMPORARY),
    ("create", "global", "temporary"): ("temporary tables", _TEMPORARY),
    ("create", "unlogged"): ("unlogged tables", "Every table is durable: leave UNLOGGED out."),
    ("create", "or"): ("CREATE OR REPLACE", "Drop what is there, and create it again."),
    ("create", "materialized"): (
        "materialized views",
        "CREATE TABLE … AS keeps a query's rows; a changefeed keeps a mirror current.",
    ),
    ("create", "trigger"): ("triggers", "A changefeed tells of every row that changes."),
    ("create", "function"): ("functions", _FUNCTIONS),
    ("create", "procedure"): ("procedures", _FUNCTIONS),
    ("listen",): ("LISTEN", _CHANNELS),
    ("notify",): ("NOTIFY", _CHANNELS),
    ("do",): ("DO", _FUNCTIONS),
    ("call",): ("CALL", _FUNCTIONS),
    ("lock",): ("LOCK", "SELECT … FOR UPDATE locks rows; transactions are serializable."),
    ("merge",): ("MERGE", "INSERT … ON CONFLICT and UPDATE … FROM do what it does."),
    ("refresh",): ("REFRESH", "There are no materialized views."),
    ("verify",): ("VERIFY", "SHOW CHANGEFEED JOBS tells how far each feed is."),
}


def refusal(cursor: Cursor) -> SQLError | None:
    """What is said of the statement that begins at the cursor, if it is one of these."""
    for words, (what, hint) in REFUSED.items():
        if cursor.at_words(*words):
            return SQLError(
                "0A000", f"{what} {_verb(what)} not supported", hint=hint, position=cursor.position
            )
    return None


def _verb(what: str) -> str:
    return "are" if what.endswith("s") else "is"
