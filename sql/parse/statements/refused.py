"""Statements that are understood and not offered: what is said of each, by how it begins."""

from __future__ import annotations

_TEMPORARY = "CREATE TEMPORARY TABLE is; drop others when they are not needed any more."
_CHANNELS = "CREATE CHANGEFEED FOR t streams the rows that change to the client."
_FEEDS = "CREATE CHANGEFEED FOR TABLE t INTO … keeps another database in step."
_FUNCTIONS = "Statements are sent one by one, or several in one text."

REFUSED = {
    "CANCEL QUERY": ("CANCEL QUERY", "SELECT pg_cancel_backend(pid) cuts its statement short."),
    "CANCEL SESSION": ("CANCEL SESSION", "SELECT pg_terminate_backend(pid) ends it."),
    "CREATE TEMP": ("temporary views and sequences", _TEMPORARY),
    "CREATE TEMPORARY": ("temporary views and sequences", _TEMPORARY),
    "CREATE UNLOGGED": ("unlogged tables", "Every table is durable: leave UNLOGGED out."),
    "CREATE OR REPLACE": ("CREATE OR REPLACE", "Drop what is there, and create it again."),
    "CREATE MATERIALIZED": (
        "materialized views",
        "CREATE TABLE … AS keeps a query's rows; a changefeed keeps a mirror current.",
    ),
    "CREATE TRIGGER": ("triggers", "A changefeed tells of every row that changes."),
    "CREATE FUNCTION": ("functions", _FUNCTIONS),
    "CREATE PROCEDURE": ("procedures", _FUNCTIONS),
    "CREATE DOMAIN": ("domains", "Give each column its type and a CHECK."),
    "CREATE EXTENSION": (
        "extensions",
        "gen_random_uuid() and the functions of docs/sql.md are there without one.",
    ),
    "CREATE RULE": ("rules", "A view reads; a changefeed tells of every row that changes."),
    "CREATE AGGREGATE": ("aggregates", _FUNCTIONS),
    "CREATE OPERATOR": ("operators", _FUNCTIONS),
    "CREATE FOREIGN": ("foreign tables", "A changefeed carries a table to another database."),
    "CREATE SERVER": ("foreign servers", _FEEDS),
    "CREATE PUBLICATION": ("publications", _FEEDS),
    "CREATE POLICY": ("policies", "GRANT gives rights on tables; a view shows some rows."),
    "CREATE TABLESPACE": ("tablespaces", "A store is one folder."),
    "ALTER DEFAULT PRIVILEGES": (
        "ALTER DEFAULT PRIVILEGES",
        "GRANT SELECT ON SCHEMA s, or ON DATABASE d, holds for every table in it, later ones too.",
    ),
    "ALTER SYSTEM": ("ALTER SYSTEM", "SET CLUSTER SETTING name = value sets the store's."),
    "MERGE": (
        "MERGE",
        "INSERT … ON CONFLICT (…) DO UPDATE writes a row or changes the one that is there; "
        "UPDATE … FROM and DELETE … USING go by another table.",
    ),
    "REINDEX": ("REINDEX", "Indexes do not bloat: there is nothing to do."),
    "CLUSTER": ("CLUSTER", "Rows are kept in the order of their primary key."),
    "CHECKPOINT": ("CHECKPOINT", "What is committed is durable: there is nothing to do."),
    "LISTEN": ("LISTEN", _CHANNELS),
    "NOTIFY": ("NOTIFY", _CHANNELS),
    "DO": ("DO", _FUNCTIONS),
    "CALL": ("CALL", _FUNCTIONS),
    "REFRESH": ("REFRESH", "There are no materialized views."),
    "VERIFY": ("VERIFY", "SHOW CHANGEFEED JOBS tells how far each feed is."),
}
"""By the words that each begins with: what the error calls it, and its hint."""
