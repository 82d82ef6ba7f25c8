"""The sink of a feed: what CREATE CHANGEFEED named, and what the job keeps of it.

    INTO 'external://mirror'                      connection mirror, and what stands behind it
    INTO 'postgres://app:secret@db/mirror'        postgres://app:redacted@db/mirror, and sealed
    INTO 'duckdb:///mirror.duckdb'                as it is: it holds no secret

A job's row so holds all that an attempt needs, and no secret that can be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ...kvlayer.settings import declare_bool
from ..connections import ExternalConnection, connection_name, find_connection
from ..sinks.locations import in_schema
from .details import ChangefeedDetails
from .services import ChangefeedServices

CONNECTION_REQUIRED = declare_bool(
    "changefeed.permissions.require_external_connection_sink.enabled",
    False,
    "whether who is no admin may create changefeeds into external connections alone",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSink:
    """`uri` is whole, `shown` what anybody may see of it, `sealed` the whole where they differ, and
    `connection` the name of the external connection that it is of, or empty."""

    uri: str
    shown: str
    sealed: bytes
    connection: str = ""


async def find_sink(
    services: ChangefeedServices, transaction: Transaction, uri: str, user: str
) -> FeedSink:
    """The sink behind a URI that the user has named. Raises SQLError."""
    name = connection_name(uri)
    if name is not None:
        return sink_of(services, await usable_connection(services, transaction, name, user))
    required = services.store.settings.get(CONNECTION_REQUIRED)
    if required and not services.rights.current.admin(user):
        raise SQLError(
            "42501",
            f"user {user} may create changefeeds into external connections alone",
            hint=f"INTO 'external://name'. The setting {CONNECTION_REQUIRED.name} says so.",
        )
    return sealed_sink(services, uri)


async def usable_connection(
    services: ChangefeedServices, transaction: Transaction, name: str, user: str
) -> ExternalConnection:
    """The connection of that name, which the transaction depends on. Raises SQLError: 42704 where
    there is none that the user may know of."""
    with transaction.tracking(True):  # or a feed would miss a change of its connection
        found = await find_connection(transaction, name)
    rights = services.rights.current
    if found is None or not (rights.admin(user) or found.owner in rights.roles_of(user)):
        raise SQLError("42704", f'external connection "{name}" does not exist')
    return found


def sealed_sink(services: ChangefeedServices, uri: str) -> FeedSink:
    """The sink of a URI, sealed if it holds a secret. Raises SQLError for an unknown scheme."""
    shown = services.kinds.kind_of(uri).redacted(uri)
    return FeedSink(uri=uri, shown=shown, sealed=b"" if shown == uri else services.sealer.seal(uri))


def sink_of(services: ChangefeedServices, connection: ExternalConnection) -> FeedSink:
    """The sink that a connection stands for. Raises SinkError where another key sealed it."""
    sealed = connection.sealed or b""
    return FeedSink(
        uri=services.sealer.open(sealed) if sealed else connection.uri,
        shown=connection.uri,
        sealed=sealed,
        connection=connection.name,
    )


def in_mirror_schema(sink: FeedSink, schema: str) -> FeedSink:
    """A mirror's sink, its tables in that schema: the option is part of the place from then on."""
    assert not sink.sealed, "a mirror's URI holds no secret"
    return replace(sink, uri=in_schema(sink.uri, schema), shown=in_schema(sink.shown, schema))


def whole_uri(services: ChangefeedServices, details: ChangefeedDetails) -> str:
    """The URI of a feed's sink, with its secrets. Raises SinkError where another key sealed it."""
    return services.sealer.open(details.sealed_uri) if details.sealed_uri else details.sink_uri
