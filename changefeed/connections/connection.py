"""External connections: sink URIs that have a name, an owner, and secrets of their own.

    CREATE EXTERNAL CONNECTION mirror AS 'postgres://app:secret@db.example/mirror'
    CREATE CHANGEFEED FOR TABLE orders INTO 'external://mirror'

    system.external_connections    name -> owner, uri (shown), sealed (or NULL)

Who is a member of the owner uses a connection without ever seeing its secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...catalog.descriptors.system_tables import EXTERNAL_CONNECTIONS
from ...catalog.rights.quotas import owned_rows
from ...catalog.rows.records import RecordCodec
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ...kvlayer.span import Span
from ..sinks.uri import shown_place

SCHEME = "external"

CONNECTION_QUOTA = owned_rows(
    "external connections",
    "changefeed.connections",
    100,
    1_000,
    remedy="DROP EXTERNAL CONNECTION",
    table=EXTERNAL_CONNECTIONS,
)


class Reader(Protocol):
    """A transaction or a snapshot, as far as connections are read."""

    async def get(self, key: bytes) -> bytes | None: ...
    async def scan(self, span: Span) -> Sequence[tuple[bytes, bytes]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalConnection:
    """`uri` is the sink's URI as anybody may see it; `sealed` the whole one where that differs."""

    name: str
    owner: str
    uri: str
    sealed: bytes | None


_rows = RecordCodec(EXTERNAL_CONNECTIONS, ExternalConnection)


def connection_name(uri: str) -> str | None:
    """The name in `external://name`, or None for the URI of a sink. Raises SQLError 22023."""
    scheme, separator, name = uri.partition("://")
    if not separator or scheme.lower() != SCHEME:
        return None
    if not name or "/" in name or "?" in name:
        raise SQLError(
            "22023",
            f"{shown_place(uri)!r} names no external connection",
            hint="Write external://name; parameters belong to the connection's own URI.",
        )
    return name


async def find_connection(reader: Reader, name: str) -> ExternalConnection | None:
    key = _rows.encode_key((name,))
    body = await reader.get(key)
    return None if body is None else _rows.decode(key, body)


async def list_connections(reader: Reader) -> list[ExternalConnection]:
    """All connections, by name."""
    return [_rows.decode(*row) for row in await reader.scan(EXTERNAL_CONNECTIONS.primary_span)]


async def put_connection(transaction: Transaction, connection: ExternalConnection) -> None:
    key, body = _rows.encode(connection)
    await transaction.put([key], [body])


async def remove_connection(transaction: Transaction, name: str) -> None:
    await transaction.delete([_rows.encode_key((name,))])


async def give_connections(transaction: Transaction, owner: str, to: str) -> None:
    """Gives the connections of a role to another one."""
    for connection in await list_connections(transaction):
        if connection.owner == owner:
            await put_connection(transaction, replace(connection, owner=to))
