"""The connection of a shell: statements in, results in the server's own text out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.pq import ExecStatus, TransactionStatus

from .formats import Rows, Value

FEED_OIDS = (25, 114, 114)
"""Keys and values of changefeeds are BYTES to the server, and JSON to who reads them."""


ADDRESS = (
    "the address that `tailrace serve` printed as postgres, such as "
    "postgresql://root@127.0.0.1:26257/defaultdb"
)


class ConnectFailed(Exception):
    """No server, or none that lets this user in."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement's: its rows, or none, and its command tag."""

    rows: Rows | None
    tag: str


class Client:
    """Runs one statement at a time. KeyboardInterrupt cancels it on the server, and is raised."""

    def __init__(self, url: str, on_notice: Callable[[str], None]) -> None:
        """Raises ConnectFailed."""
        self._url = url
        self._on_notice = on_notice
        self._connection = self._connect(None)

    def _connect(self, database: str | None) -> psycopg.Connection[tuple[object, ...]]:
        if self._url.startswith(("http://", "https://")):
            raise ConnectFailed(
                f"{self._url} is a server's REST door; this shell speaks the Postgres protocol: "
                f"give {ADDRESS}"
            )
        try:
            where = make_conninfo(self._url, application_name="tailrace sql")
            if database is not None:
                where = make_conninfo(where, dbname=database)
        except (psycopg.Error, ValueError) as error:
            raise ConnectFailed(f"{error}: give {ADDRESS}") from None
        try:
            connection = psycopg.connect(where, autocommit=True)
        except (psycopg.Error, ValueError) as error:
            told = f"{error}".strip()
            if "SSL negotiation" in told:  # libpq's words for an answer in another protocol
                told = f"{told}: is it a server's REST door? Give {ADDRESS}"
            raise ConnectFailed(told) from None
        connection.add_notice_handler(
            lambda told: self._on_notice(f"{told.severity}:  {told.message_primary}")
        )
        return connection

    @property
    def lost(self) -> bool:
        return self._connection.closed

    @property
    def user(self) -> str:
        return self._connection.info.user

    @property
    def address(self) -> str:
        info = self._connection.info
        return f"{info.host or 'localhost'}:{info.port}"

    @property
    def database(self) -> str:
        return self._connection.info.dbname

    @property
    def transaction(self) -> str:
        """The prompt's mark of the transaction's state."""
        match self._connection.info.transaction_status:
            case TransactionStatus.INTRANS:
                return "OPEN"
            case TransactionStatus.INERROR:
                return "ERROR"
        return ""

    def switch(self, database: str) -> None:
        """Connects to another database. Raises ConnectFailed, and the old connection stays."""
        connection = self._connect(database)
        self._connection.close()
        self._connection = connection

    def run(self, text: str) -> Iterator[Outcome]:
        """Raises psycopg.Error."""
        cursor = self._connection.cursor()
        cursor.execute(text.encode(), prepare=False)
        while True:
            found = cursor.pgresult
            assert found is not None, text
            if found.status in (ExecStatus.COPY_IN, ExecStatus.COPY_OUT):
                raise psycopg.NotSupportedError("COPY is not for this shell: use psql's \\copy")
            tag = (found.command_status or b"").decode()
            yield Outcome(_rows(cursor) if found.nfields else None, tag)
            if not cursor.nextset():
                return

    def feed(self, text: str) -> Iterator[Rows]:
        """The rows of a changefeed without a sink, each as it comes. Raises psycopg.Error."""
        cursor = self._connection.cursor()
        for row in cursor.stream(text.encode()):
            told = [each.decode() if isinstance(each, bytes) else each for each in row]
            yield Rows(("table", "key", "value"), FEED_OIDS, [cast(list[Value], told)])

    def close(self) -> None:
        self._connection.close()


def _rows(cursor: psycopg.Cursor[tuple[object, ...]]) -> Rows:
    found = cursor.pgresult
    assert found is not None
    places = range(found.nfields)
    names = [(found.fname(place) or b"").decode() for place in places]
    rows = []
    for row in range(found.ntuples):
        values = [found.get_value(row, place) for place in places]
        rows.append([None if value is None else value.decode() for value in values])
    return Rows(names, [found.ftype(place) for place in places], rows)
