"""The beginning of a connection: encryption, start-up, authentication, and what it was told."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...catalog.descriptors.system_tables import DEFAULT_DATABASE
from ...catalog.rights.audit import DONE, AuditEvent
from ...catalog.rights.privileges import Privilege
from ...catalog.rights.users import User, find_user
from ...catalog.values.errors import SQLError
from ...sql import Session
from ...sql.variables.variables import CRDB_COMPAT, CRDB_VERSION
from ..admission import Place
from ..node import MIRROR_DATABASE, Node
from . import replies
from .authentication import Claim, Cleartext, Exchange, Method, Scram, Trusting
from .channel import Channel, HangUp
from .messages import (
    CancelRequest,
    EncryptionRequest,
    Malformed,
    Password,
    ProtocolViolation,
    Startup,
)
from .options import PostgresOptions
from .replies import Severity

HANDSHAKE_SECONDS = 30.0
UNKNOWN_VARIABLE = "42704"

_NO_VARIABLES = frozenset({"user", "database", "options", "replication"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A client's greeting: its claim, and what it asked for. `cancels` is set where that is all it
    came for."""

    user: str = ""
    database: str = DEFAULT_DATABASE
    parameters: Mapping[str, str] = field(default_factory=dict)
    cancels: tuple[int, int] | None = None

    @property
    def mirror(self) -> str | None:
        """The mirror that is its database, if it is one."""
        named = self.database.startswith(MIRROR_DATABASE)
        return self.database.removeprefix(MIRROR_DATABASE) if named else None

    def settings(self) -> Iterator[tuple[str, str]]:
        """The session variables that the start-up sets, by `options` (`-c name=value`) too."""
        for word in _words(self.parameters.get("options", "")):
            if word != "-c":
                name, _, value = word.removeprefix("--").removeprefix("-c").partition("=")
                yield name.lower().replace("-", "_"), value
        for name, value in self.parameters.items():
            if name not in _NO_VARIABLES and not name.startswith("_pq_."):
                yield name.lower(), value


def _words(options: str) -> list[str]:
    """The arguments of a command line: a backslash takes the blank behind it for a letter."""
    words = [""]
    letters = iter(options)
    for letter in letters:
        if letter == "\\":
            words[-1] += next(letters, "")
        elif letter.isspace():
            words.append("")
        else:
            words[-1] += letter
    return [word for word in words if word]


def begin_session(channel: Channel, session: Session, greeting: Greeting) -> None:
    """Sets what the start-up asked for. Raises SQLError 22023 for a value that a variable does not
    take: the client would go by what is not so.

    A variable that there is not is a warning and no more, because drivers send settings that they
    can do without: how to plan, what to log.
    """
    for name, value in greeting.settings():
        try:
            session.variables.begin_with(name, value)
        except SQLError as error:
            if error.sqlstate != UNKNOWN_VARIABLE:
                raise
            message = f"{error.message}; the setting is left out"
            channel.write(
                replies.notice(message, sqlstate=error.sqlstate, severity=Severity.WARNING)
            )
    if session.variables.get(CRDB_COMPAT):
        channel.write(replies.parameter_status("crdb_version", CRDB_VERSION))


async def greet(channel: Channel, node: Node, options: PostgresOptions, place: Place) -> Greeting:
    """Leads a client in. Raises SQLError where it is not let in, HangUp when it goes."""
    startup = await _startup(channel, options.tls)
    if isinstance(startup, CancelRequest):
        return Greeting(cancels=(startup.process_id, startup.secret))
    if options.tls_only and not channel.encrypted:
        raise SQLError(
            "28000",
            "connections to this server are encrypted",
            hint="Connect with sslmode=require, or better with sslmode=verify-full.",
        )
    unknown = [name for name in startup.parameters if name.startswith("_pq_.")]
    if startup.minor > 0 or unknown:
        channel.write(replies.negotiate_version(unknown))
    user = startup.parameters.get("user", "")
    if not user:
        raise SQLError("28000", "no PostgreSQL user name specified in startup packet")
    _check_encoding(startup.parameters.get("client_encoding"))
    known = await _find(node, user)
    claim = Claim(user, channel.peer, known, node.decoy_key)
    await _authenticate(channel, _exchange(channel, node, options, claim))
    if known is not None and not known.login:
        raise SQLError("28000", f'role "{user}" is not permitted to log in')
    place.known(user, admin=node.services.rights.current.admin(user))
    node.services.audit.record(
        AuditEvent(
            event="Login",
            outcome=DONE,
            user=user,
            address=channel.peer,
            application=startup.parameters.get("application_name", ""),
            database=startup.parameters.get("database", ""),
        )
    )
    channel.machine.authenticated()
    channel.write(replies.AUTHENTICATION_OK)
    database = await _database(node, startup.parameters.get("database"), user)
    return Greeting(user=user, database=database, parameters=startup.parameters)


async def _startup(channel: Channel, tls: ssl.SSLContext | None) -> Startup | CancelRequest:
    while True:
        message = await channel.next_message()
        match message:
            case Startup() | CancelRequest():
                return message
            case EncryptionRequest(gss=False) if tls is not None and not channel.encrypted:
                if channel.machine.buffered_bytes:
                    # What came in the clear would be taken for a part of what is encrypted.
                    raise ProtocolViolation("received unencrypted data after SSL request")
                channel.write(replies.TLS_ACCEPTED)
                await channel.start_tls(tls, HANDSHAKE_SECONDS)
            case EncryptionRequest():
                channel.write(replies.TLS_DECLINED)
                channel.flush()
            case _:
                raise AssertionError(f"{message} in the start-up")


def _check_encoding(name: str | None) -> None:
    wanted = "" if name is None else name.strip("'\"").lower().replace("-", "").replace("_", "")
    if wanted not in ("", "utf8", "unicode"):
        raise SQLError(
            "22023",
            f'invalid value for parameter "client_encoding": "{name}"',
            hint="Text is UTF-8 here: SET client_encoding = 'UTF8'.",
        )


async def _find(node: Node, name: str) -> User | None:
    snapshot = node.store.begin(read_only=True)
    try:
        return await find_user(snapshot, name)
    finally:
        await snapshot.rollback()


def _exchange(channel: Channel, node: Node, options: PostgresOptions, claim: Claim) -> Exchange:
    match options.method:
        case Method.TRUST:
            return Trusting(claim)
        case Method.PASSWORD:
            if not channel.encrypted:
                raise SQLError(
                    "28000",
                    "a password in the clear is taken over TLS only",
                    hint="Connect with sslmode=require.",
                )
            return Cleartext(claim, node.passwords)
        case Method.SCRAM:
            binding = options.binding if channel.encrypted else None
            return Scram(claim, node.passwords.guesses, node.store.random, binding)


async def _authenticate(channel: Channel, exchange: Exchange) -> None:
    channel.write(exchange.request())
    while not exchange.done:
        message = await channel.next_message()
        match message:
            case Password(body=body):
                channel.write(await exchange.receive(body))
            case Malformed(error=error):
                raise error
            case _:
                raise HangUp


async def _database(node: Node, name: str | None, user: str) -> str:
    """The database to begin in: the one that was named, else the default.

    libpq names the user's own where it is told of none, and `postgres` is what tools look for. A
    mirror's session judges its user itself.
    """
    if name is not None and name.startswith(MIRROR_DATABASE):
        return name
    reader = node.store.begin(read_only=True)
    try:
        known = await node.services.catalog.list_databases(reader)
        if name is None or (name not in known and name in (user, "postgres")):
            name = DEFAULT_DATABASE
        if name not in known:
            raise SQLError("3D000", f'database "{name}" does not exist')
        await node.actor(user, name, reader).need_database(name, Privilege.CONNECT)
    finally:
        await reader.rollback()
    return name
