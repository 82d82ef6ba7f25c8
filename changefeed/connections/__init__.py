"""External connections, and how secrets of sinks are sealed.

Never knows: feeds that use a connection (`jobs.connection_feeds` does).
"""

from .connection import (
    CONNECTION_QUOTA,
    ExternalConnection,
    connection_name,
    find_connection,
    give_connections,
    list_connections,
    put_connection,
    remove_connection,
)
from .sealing import KEY_BYTES, Sealer

__all__ = [
    "CONNECTION_QUOTA",
    "KEY_BYTES",
    "ExternalConnection",
    "Sealer",
    "connection_name",
    "find_connection",
    "give_connections",
    "list_connections",
    "put_connection",
    "remove_connection",
]
