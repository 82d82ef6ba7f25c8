"""Statements that are understood and not offered: what is said of each, by how it begins."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from ..cursor import Cursor

_TEMPORARY = "CREATE TEMPORARY TABLE is; drop others when they are not needed any more."
_CHANNELS = "CREATE CHANGEFEED FOR t streams the rows that change to the client."
_FEEDS = "CREATE CHANGEFEED FOR TABLE t INTO … keeps another database in step."
_FUNCTIONS = "Statements are sent one by one, or several in one text."

REFUSED: dict[tuple[str, ...], tuple[str, str]] = {
    ("create", "temp"): ("temporary views and sequences", _TEMPORARY),
    ("create", "temporary"): ("temporary views and sequences", _TEMPORARY),
    ("create", "unlogged"): ("unlogged tables", "Every table is durable: leave UNLOGGED out."),
    ("create", "or"): ("CREATE OR REPLACE", "Drop what is there, and create it again."),
    ("create", "materialized"): (
        "materialized views",
        "CREATE TABLE … AS keeps a query's rows; a changefeed keeps a mirror current.",
    ),
    ("create", "trigger"): ("triggers", "A changefeed tells of every row that changes."),
    ("create", "function"): ("functions", _FUNCTIONS),
    ("create", "procedure"): ("procedures", _FUNCTIONS),
    ("create", "domain"): ("domains", "Give each column its type and a CHECK."),
    ("create", "extension"): (
        "extensions",
        "gen_random_uuid() and the functions of docs/sql.md are there without one.",
    ),
    ("create", "rule"): ("rules", "A view reads; a changefeed tells of every row that changes."),
    ("create", "aggregate"): ("aggregates", _FUNCTIONS),
    ("create", "operator"): ("operators", _FUNCTIONS),
    ("create", "foreign"): ("foreign tables", "A changefeed carries a table to another database."),
    ("create", "server"): ("foreign servers", _FEEDS),
    ("create", "publication"): ("publications", _FEEDS),
    ("create", "policy"): ("policies", "GRANT gives rights on tables; a view shows some rows."),
    ("create", "tablespace"): ("tablespaces", "A store is one folder."),
    ("alter", "default", "privileges"): (
        "ALTER DEFAULT PRIVILEGES",
        "GRANT SELECT ON SCHEMA s, or ON DATABASE d, holds for every table in it, later ones too.",
    ),
    ("alter", "system"): ("ALTER SYSTEM", "SET CLUSTER SETTING name = value sets the store's."),
    ("merge",): (
        "MERGE",
        "INSERT … ON CONFLICT (…) DO UPDATE writes a row or changes the one that is there; "
        "UPDATE … FROM and DELETE … USING go by another table.",
    ),
    ("reindex",): ("REINDEX", "Indexes do not bloat: there is nothing to do."),
    ("cluster",): ("CLUSTER", "Rows are kept in the order of their primary key."),
    ("checkpoint",): ("CHECKPOINT", "What is committed is durable: there is nothing to do."),
    ("listen",): ("LISTEN", _CHANNELS),
    ("notify",): ("NOTIFY", _CHANNELS),
    ("do",): ("DO", _FUNCTIONS),
    ("call",): ("CALL", _FUNCTIONS),
    ("refresh",): ("REFRESH", "There are no materialized views."),
    ("verify",): ("VERIFY", "SHOW CHANGEFEED JOBS tells how far each feed is."),
}


def refusal(cursor: Cursor) -> SQLError | None:
    """Returns the error for the statement at the cursor if it is one of `REFUSED`; else None."""
    for words, (what, hint) in REFUSED.items():
        if cursor.at_words(*words):
            return unsupported(what, cursor.position, hint)
    return None
