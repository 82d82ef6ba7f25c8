"""`postgres://` URIs: a database of a server, and where in it the mirror lies.

    postgres://app:secret@db.example:5432/mirror?schema=eu&table=orders&sslmode=verify-full

The mirror tables lie in `schema` (`public` where the URI names none), under the names of their
source tables, or as `table` where the feed has one table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..protocol import SinkRefused
from ..uri import ServerURI, bad_uri, bracketed, parse_server_uri

SCHEMES = ("postgres", "postgresql")
DEFAULT_PORT = 5432
NAME_BYTES_MAX = 63
"""PostgreSQL cuts longer names off."""

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
PARAMETERS = ("application_name", "connect_timeout", "schema", "sslmode", "table")
CONNECT_SECONDS = 10
CONNECT_SECONDS_MAX = 60
KEEPALIVE_SECONDS = 10
UNACKNOWLEDGED_SECONDS = 30
"""A server that vanished without a word is given up after so long."""

NO_FILE = f"{os.devnull}/none"
"""No password file: the process that feeds the sink lends nobody what its own account may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresTarget:
    """A database, and the names of mirror tables in it."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    schema: str
    table: str | None
    ssl_mode: str
    application_name: str
    connect_seconds: int

    @property
    def shown(self) -> str:
        """The database, as messages name it."""
        return f"PostgreSQL database {self.database} at {bracketed(self.host)}:{self.port}"

    @property
    def connection(self) -> dict[str, str | int]:
        """The parameters of libpq's connection."""
        return {
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "user": self.user,
            "password": self.password,
            "passfile": NO_FILE,
            "sslmode": self.ssl_mode,
            "application_name": self.application_name,
            "connect_timeout": self.connect_seconds,
            "client_encoding": "utf8",
            "keepalives_idle": KEEPALIVE_SECONDS,
            "tcp_user_timeout": UNACKNOWLEDGED_SECONDS * 1000,
        }

    def names(self, tables: Iterable[tuple[int, str]]) -> dict[int, str]:
        """The mirror table's name for each table id and name. Raises SinkRefused."""
        found = {table_id: name if self.table is None else self.table for table_id, name in tables}
        if self.table is not None and len(found) != 1:
            raise SinkRefused(
                f"sink parameter table={self.table!r} names one mirror table, and the feed has "
                f"{len(found)} tables"
            )
        if len(set(found.values())) < len(found):
            raise SinkRefused("two tables of the feed have one name: give each a feed of its own")
        for name in found.values():
            check_name(name, f'table "{name}"')
        return found


def check_name(name: str, what: str) -> None:
    """Raises SinkRefused where PostgreSQL would cut the name off."""
    if len(name.encode()) > NAME_BYTES_MAX:
        raise SinkRefused(
            f"{what} has a name of more than {NAME_BYTES_MAX} bytes, which PostgreSQL cuts off"
        )


def parse_target(text: str) -> PostgresTarget:
    """The target of a sink URI. Raises SQLError 22023."""
    uri = parse_server_uri(text, known=PARAMETERS, secret=())
    database = uri.path.removeprefix("/")
    if not database or "/" in database:
        raise bad_uri(text, "the path is the name of one database")
    if not uri.user:
        raise bad_uri(text, "a user is missing")
    if uri.host.startswith("/") or uri.host.startswith("@") or "," in uri.host:
        raise bad_uri(text, "the host is one name or address")
    values = uri.parameters
    for name in ("schema", "table", "application_name"):
        if values.get(name) == "":
            raise bad_uri(text, f"parameter {name!r} has no value")
    ssl_mode = values.get("sslmode", "prefer")
    if ssl_mode not in SSL_MODES:
        raise bad_uri(text, f"sslmode is one of {', '.join(SSL_MODES)}")
    target = PostgresTarget(
        host=uri.host,
        port=uri.port or DEFAULT_PORT,
        database=database,
        user=uri.user,
        password=uri.password or "",
        schema=values.get("schema", "public"),
        table=values.get("table"),
        ssl_mode=ssl_mode,
        application_name=values.get("application_name", "tailrace changefeed"),
        connect_seconds=_seconds(text, uri),
    )
    for name in (target.schema, target.table or ""):
        if len(name.encode()) > NAME_BYTES_MAX:
            raise bad_uri(text, f"PostgreSQL cuts names off after {NAME_BYTES_MAX} bytes")
    if target.schema == "_tailrace" or target.schema.startswith("pg_"):
        raise bad_uri(text, f"schema {target.schema!r} is kept for other things")
    return target


def _seconds(text: str, uri: ServerURI) -> int:
    given = uri.parameters.get("connect_timeout", str(CONNECT_SECONDS))
    if not given.isascii() or not given.isdigit() or not 2 <= int(given) <= CONNECT_SECONDS_MAX:
        raise bad_uri(text, f"connect_timeout is 2 to {CONNECT_SECONDS_MAX} seconds")
    return int(given)
