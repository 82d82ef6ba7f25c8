"""Every bound of what a client can make, as rows of docs/limits.md.

A row names the constant that is obeyed, or the field of a door's `Bounds`, so that the document
shows what the code has; and the function of `exceeding` that goes beyond it, with a smaller bound
in its place, and says what the client was told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

from tailrace.api import passwords
from tailrace.api.admission import Bounds
from tailrace.api.descriptors import HTTP_BOUNDS, POSTGRES_BOUNDS
from tailrace.api.http import arrow_stream, bodies, connections, json_lines
from tailrace.api.http import transactions as http_transactions
from tailrace.api.http.routes import login_routes
from tailrace.api.pgwire import extended, greeting, server, states
from tailrace.api.rpc import grpc_server
from tailrace.catalog.rights import users, web_sessions
from tailrace.catalog.rights.quotas import KEYSPACE_QUOTA
from tailrace.changefeed import (
    CONNECTION_QUOTA,
    FEED_QUOTA,
    SCHEDULE_QUOTA,
    SUBSCRIPTION_QUOTA,
)
from tailrace.changefeed.backup import BACKUP_QUOTA
from tailrace.changefeed.sinks import locations
from tailrace.kvlayer.settings import Setting
from tailrace.kvlayer.txn import limits as stored
from tailrace.sql.parse import lexer
from tailrace.sql.results import result_batches
from tailrace.sql.runtime import transactions
from tailrace.sql.session import cursors, prepared_names


class Unit(Enum):
    """How a number of this kind is written."""

    COUNT = ""
    BYTES = "bytes"
    CHARACTERS = " characters"
    SECONDS = " s"
    MILLISECONDS = " ms"

    def shown(self, number: float) -> str:
        if self is not Unit.BYTES:
            return f"{number:,g}{self.value}" if number < 1e6 else f"{int(number):,}{self.value}"
        for size, name in ((1024 * 1024, "MiB"), (1024, "KiB")):
            if number >= size and number % size == 0:
                return f"{number // size:g} {name}"
        return f"{number:,g} bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`answer` is an SQLSTATE, at the HTTP door behind a status, or what happens in words."""

    door: str
    what: str
    of: str
    """One connection, user, address, statement, … or the server: whom the bound is counted for."""
    source: ModuleType | Bounds | Setting[int]
    name: str
    """Of the constant, or of the setting."""
    unit: Unit = Unit.COUNT
    answer: str
    beyond: str
    """The function of `exceeding`."""

    @property
    def number(self) -> float:
        if isinstance(self.source, Setting):
            return self.source.default
        number = getattr(self.source, self.name)
        assert isinstance(number, int | float), self.name
        return number

    def row(self) -> str:
        shown = self.unit.shown(self.number)
        if isinstance(self.source, Setting):
            shown = f"{shown}, `{self.name}`"
        return f"| {self.door} | {self.what} | {self.of} | {shown} | {self.answer} |"


POSTGRES, HTTP, BOTH, NODES, SQL = "Postgres", "HTTP", "both", "nodes", "SQL"
B, C, S = Unit.BYTES, Unit.CHARACTERS, Unit.SECONDS


def _limits() -> Iterator[Limit]:
    for door, bounds, full, crowded in (
        (POSTGRES, POSTGRES_BOUNDS, "53300", "53300 to the oldest"),
        (HTTP, HTTP_BOUNDS, "429 53300", "the oldest is closed"),
    ):
        for what, of, name, answer, beyond in (
            ("connections", "the server", "known", full, "server"),
            ("connections", "a user who is no admin", "per_user", full, "user"),
            ("connections that have not authenticated", "the server", "unknown", crowded,
             "unknown"),
            ("connections that have not authenticated", "an address", "unknown_per_address",
             crowded, "unknown_address"),
        ):  # fmt: skip
            yield Limit(
                door=door,
                what=what,
                of=of,
                source=bounds,
                name=name,
                answer=answer,
                beyond=f"{door.lower()}_{beyond}",
            )


def _quotas() -> Iterator[Limit]:
    for beyond, quota in (
        ("feeds", FEED_QUOTA),
        ("schedules", SCHEDULE_QUOTA),
        ("subscriptions", SUBSCRIPTION_QUOTA),
        ("external_connections", CONNECTION_QUOTA),
        ("keyspaces", KEYSPACE_QUOTA),
        ("keyspace_backups", BACKUP_QUOTA),
    ):
        for of, setting in (
            ("a user who is no admin", quota.of_user),
            ("all users who are no admins", quota.of_store),
        ):
            yield Limit(
                door=SQL,
                what=quota.what,
                of=of,
                source=setting,
                name=setting.name,
                answer="53400",
                beyond=beyond,
            )


def _row(
    beyond: str,
    door: str,
    what: str,
    of: str,
    source: ModuleType,
    name: str,
    answer: str,
    unit: Unit = Unit.COUNT,
) -> Limit:
    return Limit(
        door=door,
        what=what,
        of=of,
        source=source,
        name=name,
        unit=unit,
        answer=answer,
        beyond=beyond,
    )


LIMITS: tuple[Limit, ...] = (
    *_limits(),
    _row(
        "postgres_time",
        POSTGRES,
        "time to authenticate",
        "a connection",
        server,
        "GREETING_SECONDS",
        "closed",
        S,
    ),
    _row(
        "postgres_handshake",
        POSTGRES,
        "TLS handshake",
        "a connection",
        greeting,
        "HANDSHAKE_SECONDS",
        "closed",
        S,
    ),
    _row(
        "postgres_first_message",
        POSTGRES,
        "a message before that",
        "a connection",
        states,
        "FIRST_BYTES_MAX",
        "08P01",
        B,
    ),
    _row(
        "postgres_message",
        POSTGRES,
        "a message",
        "a connection",
        states,
        "MESSAGE_BYTES_MAX",
        "08P01",
        B,
    ),
    _row("postgres_portals", POSTGRES, "portals", "a connection", extended, "PORTALS_MAX", "53400"),
    _row(
        "http_handshake",
        HTTP,
        "TLS handshake",
        "a connection",
        connections,
        "HANDSHAKE_SECONDS",
        "closed",
        S,
    ),
    _row(
        "http_head",
        HTTP,
        "a request's head",
        "a connection",
        connections,
        "REQUEST_SECONDS",
        "408",
        S,
    ),
    _row(
        "http_body_piece",
        HTTP,
        "next piece of a body",
        "a connection",
        connections,
        "BODY_SECONDS",
        "closed",
        S,
    ),
    _row(
        "http_login_body",
        HTTP,
        "a login's body",
        "a request",
        login_routes,
        "LOGIN_BYTES_MAX",
        "413 54000",
        B,
    ),
    _row(
        "http_json_body", HTTP, "a JSON body", "a request", bodies, "BODY_BYTES_MAX", "413 54000", B
    ),
    _row(
        "http_line",
        HTTP,
        "a line of a load",
        "a request",
        json_lines,
        "LINE_BYTES_MAX",
        "413 54000",
        B,
    ),
    _row(
        "http_record_batch",
        HTTP,
        "a record batch, also unpacked",
        "a request",
        arrow_stream,
        "MESSAGE_BYTES_MAX",
        "413 54000",
        B,
    ),
    _row(
        "http_transactions",
        HTTP,
        "transactions by token",
        "the server",
        http_transactions,
        "OPEN_MAX",
        "429 53300",
    ),
    _row(
        "http_transactions_user",
        HTTP,
        "transactions by token",
        "a user",
        http_transactions,
        "OPEN_OF_USER_MAX",
        "429 53300",
    ),
    _row("http_tokens", HTTP, "tokens", "a user", web_sessions, "SESSIONS_MAX", "the oldest ends"),
    _row("password", BOTH, "a password", "a user", users, "PASSWORD_BYTES_MAX", "22023", B),
    _row(
        "failures_user",
        BOTH,
        "failures without a wait",
        "a user from an address",
        passwords,
        "USER_FAILURES_FREE",
        "53300 for 1 s, 2 s, 4 s … 60 s",
    ),
    _row(
        "failures_address",
        BOTH,
        "failures without a wait",
        "an address",
        passwords,
        "ADDRESS_FAILURES_FREE",
        "53300 for 1 s, 2 s, 4 s … 60 s",
    ),
    _row(
        "passwords_waiting",
        BOTH,
        "passwords being compared",
        "the server",
        passwords,
        "WAITING_MAX",
        "53300",
    ),
    _row("nodes", NODES, "connections", "the server", grpc_server, "CONNECTIONS_MAX", "closed"),
    _row(
        "handshake_of_node",
        NODES,
        "handshake",
        "a connection",
        grpc_server,
        "HANDSHAKE_MS_MAX",
        "closed",
        Unit.MILLISECONDS,
    ),
    _row("prepared", SQL, "prepared statements", "a session", prepared_names, "NAMES_MAX", "53400"),
    _row(
        "prepared_text",
        SQL,
        "prepared statements",
        "a session, in all",
        prepared_names,
        "TEXT_MAX",
        "53400",
        C,
    ),
    _row("cursors", SQL, "cursors", "a session", cursors, "CURSORS_MAX", "53400"),
    _row("savepoints", SQL, "savepoints", "a transaction", transactions, "SAVEPOINTS_MAX", "54000"),
    _row(
        "results",
        SQL,
        "results that wait for their clients",
        "the server",
        result_batches,
        "WAITING_MAX",
        "53400",
    ),
    _row(
        "results",
        SQL,
        "results that wait for their clients",
        "a user",
        result_batches,
        "WAITING_OF_USER_MAX",
        "53400",
    ),
    _row("number", SQL, "a number", "a statement", lexer, "NUMBER_LENGTH_MAX", "22003", C),
    _row("key", SQL, "a primary key, encoded", "a row", stored, "KEY_BYTES_MAX", "54000", B),
    _row("value", SQL, "the other columns", "a row", stored, "VALUE_BYTES_MAX", "54000", B),
    _row(
        "mirror_name",
        SQL,
        "a name in a mirror's path",
        "a changefeed",
        locations,
        "NAME_BYTES_MAX",
        "22023",
        B,
    ),
    *_quotas(),
)

HEAD = "| door | what | of | bound | beyond it |\n| --- | --- | --- | --- | --- |\n"


def table() -> str:
    return HEAD + "".join(f"{limit.row()}\n" for limit in LIMITS)
