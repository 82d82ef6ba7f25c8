"""Statements about external connections, as the parser hands them on."""

from __future__ import annotations

from dataclasses import field

from .statement import Statement


class CreateConnection(Statement):
    """CREATE EXTERNAL CONNECTION [IF NOT EXISTS] name AS 'uri'."""

    name: str
    uri: str = field(repr=False)
    if_not_exists: bool
    position: int


class AlterConnection(Statement):
    """ALTER EXTERNAL CONNECTION [IF EXISTS] name AS 'uri' | OWNER TO role: one of the two."""

    name: str
    uri: str | None = field(repr=False)
    owner: str | None
    if_exists: bool
    position: int


class DropConnection(Statement):
    """DROP EXTERNAL CONNECTION [IF EXISTS] name."""

    name: str
    if_exists: bool
    position: int


class ShowConnections(Statement):
    """SHOW EXTERNAL CONNECTIONS, or SHOW EXTERNAL CONNECTION name."""

    name: str | None


ConnectionChange = CreateConnection | AlterConnection | DropConnection
