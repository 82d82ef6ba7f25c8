"""Statements about external connections, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnection:
    """CREATE EXTERNAL CONNECTION [IF NOT EXISTS] name AS 'uri'."""

    name: str
    uri: str = field(repr=False)
    if_not_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterConnection:
    """ALTER EXTERNAL CONNECTION [IF EXISTS] name AS 'uri' | OWNER TO role: one of the two."""

    name: str
    uri: str | None = field(repr=False)
    owner: str | None
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConnection:
    """DROP EXTERNAL CONNECTION [IF EXISTS] name."""

    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowConnections:
    """SHOW EXTERNAL CONNECTIONS, or SHOW EXTERNAL CONNECTION name."""

    name: str | None


ConnectionChange = CreateConnection | AlterConnection | DropConnection
