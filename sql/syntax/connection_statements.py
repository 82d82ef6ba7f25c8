"""Statements about external connections, as the parser hands them on."""

from __future__ import annotations

from dataclasses import field

from .statement import NamedStatement, Statement


class CreateConnection(NamedStatement):
    grammar = (
        "CREATE EXTERNAL CONNECTION if_not_exists:[IF NOT EXISTS] ^ name:connection AS uri:sink_uri"
    )
    uri: str = field(repr=False)
    if_not_exists: bool


class AlterConnection(NamedStatement):
    grammar = (
        "ALTER EXTERNAL CONNECTION if_exists:[IF EXISTS] ^ name:connection "
        "( AS uri:sink_uri | OWNER TO owner:role )"
    )
    uri: str | None = field(repr=False)
    owner: str | None
    if_exists: bool


class DropConnection(NamedStatement):
    grammar = "DROP EXTERNAL CONNECTION if_exists:[IF EXISTS] ^ name:connection"
    if_exists: bool


class ShowConnections(Statement):
    grammar = ("SHOW EXTERNAL CONNECTIONS", "SHOW EXTERNAL CONNECTION name:connection")
    name: str | None = None


ConnectionChange = CreateConnection | AlterConnection | DropConnection
