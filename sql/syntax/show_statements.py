"""SHOW statements about the catalog and sessions, and CANCEL."""

from __future__ import annotations

from dataclasses import dataclass

from .names import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSchemas:
    database: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowIndexes:
    table: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowConstraints:
    table: ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowSequences:
    database: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTypes:
    """SHOW TYPES, and SHOW ENUMS."""

    database: str | None


@dataclass(frozen=True, slots=True)
class ShowSessions:
    pass


@dataclass(frozen=True, slots=True)
class ShowQueries:
    """SHOW QUERIES, and SHOW STATEMENTS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """CANCEL QUERY and CANCEL SESSION, with their plurals."""

    ids: tuple[str, ...]
    session: bool
    if_exists: bool
    position: int


ShowObjects = (
    ShowSchemas
    | ShowIndexes
    | ShowConstraints
    | ShowSequences
    | ShowTypes
    | ShowSessions
    | ShowQueries
)

SHOWN = (
    "changefeed jobs", "changefeed lag", "changefeed latency", "cluster settings", "columns",
    "constraints", "create table", "databases", "default privileges", "enums", "grants",
    "indexes", "jobs", "queries", "ranges", "roles", "schemas", "sequences", "sessions",
    "statements", "system grants", "tables", "transaction", "types", "users",
)  # fmt: skip
"""Words that SHOW takes beside variables, suggested for a misspelt name."""
