"""The Postgres door: PostgreSQL's frontend/backend protocol, version 3.0.

What lives here: messages, the table of states that says which may come when, the text and binary
forms of values, authentication, COPY's formats, and the server that carries bytes between sockets
and SQL sessions. Everything but `channel` and `server` does no I/O.

It promises that whatever a client sends is answered, or ends that one connection, and that what a
connection holds in memory is bounded. It must never know what a statement means: that is the
session's business.

`serve_postgres` is the face.
"""

from .options import PostgresOptions
from .server import PostgresServer, serve_postgres

__all__ = ["PostgresOptions", "PostgresServer", "serve_postgres"]
