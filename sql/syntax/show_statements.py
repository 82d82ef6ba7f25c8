"""SHOW statements about sessions, and CANCEL."""

from __future__ import annotations

from .statement import Statement


class ShowSessions(Statement):
    pass


class ShowQueries(Statement):
    """SHOW QUERIES, and SHOW STATEMENTS."""


class Cancel(Statement):
    """CANCEL QUERY and CANCEL SESSION, with their plurals."""

    ids: tuple[str, ...]
    session: bool
    if_exists: bool
    position: int


SHOWN = (
    "changefeed jobs", "changefeed lag", "changefeed latency", "cluster settings", "columns",
    "create table", "databases", "jobs", "queries", "ranges", "roles", "sessions",
    "statements", "tables", "transaction", "users",
)  # fmt: skip
"""Words that SHOW takes beside variables, suggested for a misspelt name."""
