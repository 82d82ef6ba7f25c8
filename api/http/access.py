"""Authentication of requests: before any route is asked.

    Authorization: Basic …       a user and its password
    Authorization: Bearer …      a token of POST /v1/login, or one lent to a program of the node's

A server that is insecure believes that everybody is `root`, and so listens on loopback only. Routes
read `user_of(request)`, and what they run is run as that user. Doors into the node itself (its
debug pages, the comparison, which runs statements as root) are named here with what they need.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ...catalog.rights.audit import DONE, AuditEvent
from ...catalog.rights.privileges import SYSTEM, Privilege
from ...catalog.rights.users import ITERATIONS, ROOT, SALT_BYTES, Verifier, find_user
from ...catalog.rights.web_sessions import find_web_session
from ...catalog.values.errors import SQLError
from ...changefeed.sinks.worker_tokens import Worker
from ...kvlayer.errors import KVError
from ...sql.results.as_of import datetime_of
from ...sql.results.errors import from_kv
from ..admission import Place
from ..node import Node
from .connections import PLACE
from .problems import Problem, problem

REMEMBERED_MAX = 1_000
"""Passwords that were right, remembered as keyed hashes: to check one takes milliseconds."""

OPEN_PATHS = frozenset({"/healthz", "/v1/login"})
"""What needs no user: whether the store is well, and to become one."""

ADMIN_PATHS = ("/v1/debug/", "/v1/compare/", "/v1/backup")
"""The store's keys and log, what runs statements as root, and the store whole."""

JOB_PATHS = ("/v1/overview/",)
"""What shows everybody's feeds: VIEWJOB."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The contents of an Authorization header: a token, or a name and a password."""

    token: str | None = None
    name: str = ""
    password: str = ""


class Doorkeeper:
    """Finds out who a user is. `trust` believes that it is root."""

    def __init__(self, node: Node, *, trust: bool) -> None:
        self.trust = trust
        self._node = node
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, str] = {}
        # What nobody's password matches: it takes as long to be refused as with a real one.
        self._nobody = Verifier(ITERATIONS, self._key[:SALT_BYTES], self._key, self._key)

    async def user(self, header: str | None, address: str) -> str | None:
        """The user behind an Authorization header; None for nobody. Raises SQLError 53300 for an
        address that was wrong too often."""
        if self.trust:
            return ROOT
        credentials = None if header is None else parse_authorization(header)
        if credentials is None:
            return None
        if credentials.token is not None:
            return await self._of_token(credentials.token)
        return await self.check_password(credentials.name, credentials.password, address)

    async def _of_token(self, token: str) -> str | None:
        now = await self._node.store.now()
        reader = self._node.store.snapshot(now)
        session = await find_web_session(reader, token, datetime_of(now))
        if session is None:
            return None
        user = await find_user(reader, session.user)
        return None if user is None or not user.login else user.name

    async def check_password(self, name: str, password: str, address: str) -> str | None:
        """The name, if the password is its user's. Raises SQLError 53300."""
        reader = self._node.store.snapshot(await self._node.store.now())
        user = await find_user(reader, name)
        verifier = self._nobody if user is None or user.verifier is None else user.verifier
        text = f"{name}\0{verifier}\0{password}".encode(errors="surrogatepass")
        digest = hashlib.blake2b(text, key=self._key).digest()
        if digest not in self._right:
            match = self._node.passwords.match
            if not await match(password, verifier, user=name, address=address):
                return None
            if len(self._right) >= REMEMBERED_MAX:
                self._right.clear()
            self._right[digest] = name
            self._node.services.audit.record(
                AuditEvent(event="Login", outcome=DONE, user=name, address=address)
            )
        return name if user is not None and user.login else None


def parse_authorization(header: str) -> Credentials | None:
    """The credentials of an Authorization header; None where it is neither Basic nor Bearer."""
    scheme, _, rest = header.strip().partition(" ")
    match scheme.lower():
        case "bearer":
            return Credentials(token=rest.strip())
        case "basic":
            try:
                name, colon, password = (
                    b64decode(rest.strip(), validate=True).decode().partition(":")
                )
            except ValueError:
                return None
            return Credentials(name=name, password=password) if colon else None
    return None


def address_of(request: Request) -> str:
    """The address from which a request comes, without the port."""
    return "local" if request.client is None else request.client.host


class Access:
    """Lets requests through with their user in the scope, or answers 401 or 403."""

    def __init__(self, app: ASGIApp, node: Node, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._node = node
        self._doorkeeper = doorkeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        worker = self._worker(request)
        if worker is not None:
            if not _may_ask(worker, scope["method"], scope["path"]):
                told = SQLError("42501", "the token is for the export of one table alone")
                await problem(told).response()(scope, receive, send)
                return
            scope.setdefault("state", {}).update(user=worker.user, worker=worker)
            await self._app(scope, receive, send)
            return
        try:
            header = request.headers.get("authorization")
            user = await self._doorkeeper.user(header, address_of(request))
        except KVError as error:
            await problem(from_kv(error)).response()(scope, receive, send)
            return
        except SQLError as error:
            await problem(error).response()(scope, receive, send)
            return
        if user is None:
            await _unauthorized().response({"WWW-Authenticate": 'Basic realm="tailrace"'})(
                scope, receive, send
            )
            return
        refusal = lacking(self._node, user, scope["path"])
        if refusal is not None:
            await problem(refusal).response()(scope, receive, send)
            return
        refused = self._take_place(scope, user)
        if refused is not None:
            await problem(refused).response({"connection": "close"})(scope, receive, send)
            return
        scope.setdefault("state", {})["user"] = user
        await self._app(scope, receive, send)

    def _take_place(self, scope: Scope, user: str) -> SQLError | None:
        """The connection is from now on one of that user's, unless there are too many."""
        place: Place | None = scope.get("state", {}).get(PLACE)
        if place is not None:
            try:
                place.known(user, admin=self._node.services.rights.current.admin(user))
            except SQLError as error:
                return error
        return None

    def _worker(self, request: Request) -> Worker | None:
        """The program of the node's own that asks, if it is one."""
        if self._doorkeeper.trust:
            return None
        credentials = parse_authorization(request.headers.get("authorization", ""))
        if credentials is None or credentials.token is None:
            return None
        return self._node.worker_tokens.find(credentials.token)


def lacking(node: Node, user: str, path: str) -> SQLError | None:
    """Why a user may not have what is behind a path, if so."""
    rights = node.services.rights.current
    if path.startswith(ADMIN_PATHS) and not rights.admin(user):
        return SQLError("42501", f"{path} is for users with the admin role")
    if path.startswith(JOB_PATHS) and not rights.held(user, SYSTEM) & Privilege.VIEWJOB:
        return SQLError("42501", f"user {user} does not have VIEWJOB system privilege")
    return None


def _unauthorized() -> Problem:
    return Problem(
        title="authentication failed",
        status=401,
        sqlstate="28000",
        hint="Send a user and its password (Basic), or a token of POST /v1/login (Bearer). A new "
        "store has no passwords: start it with --insecure and ALTER USER root PASSWORD '…'.",
    )


def _may_ask(worker: Worker, method: str, path: str) -> bool:
    """Whether a worker may ask the route at all. The route of a position checks the right on its
    table: see `check_readable`."""
    table = f"/v1/tables/{worker.table_id}"
    if path.startswith("/v1/positions/"):
        return True
    if method == "POST":
        return path == f"{table}/positions"
    return method == "GET" and path in (table, f"{table}/spans", f"{table}/export")


def worker_of(request: Request) -> Worker | None:
    """The program that asks, where it is one of the node's own."""
    worker: Worker | None = getattr(request.state, "worker", None)
    return worker


def user_of(request: Request) -> str:
    """Whose request it is."""
    user: str = request.state.user
    return user
