"""Statements about external connections, as the parser hands them on."""

from __future__ import annotations

from dataclasses import field

from .statement import NamedStatement, Statement


class CreateConnection(NamedStatement):
    """CREATE EXTERNAL CONNECTION [IF NOT EXISTS] name AS 'uri'."""

    uri: str = field(repr=False)
    if_not_exists: bool


class AlterConnection(NamedStatement):
    """ALTER EXTERNAL CONNECTION [IF EXISTS] name AS 'uri' | OWNER TO role: one of the two."""

    uri: str | None = field(repr=False)
    owner: str | None
    if_exists: bool


class DropConnection(NamedStatement):
    """DROP EXTERNAL CONNECTION [IF EXISTS] name."""

    if_exists: bool


class ShowConnections(Statement):
    """SHOW EXTERNAL CONNECTIONS, or SHOW EXTERNAL CONNECTION name."""

    name: str | None = None


ConnectionChange = CreateConnection | AlterConnection | DropConnection
