"""`POST /v1/login` and `/v1/logout`: a token instead of a password in each request."""

from __future__ import annotations

import secrets
from datetime import timedelta

import msgspec
from fastapi import APIRouter, Request, Response

from ....catalog.rights.audit import DONE, AuditEvent
from ....catalog.rights.users import find_user
from ....catalog.rights.web_sessions import WebSession, put_web_session, remove_web_session
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Transaction
from ....sql.results.as_of import datetime_of
from ...node import Node
from ..access import Doorkeeper, address_of, parse_authorization
from ..bodies import JSON, LoginReply, LoginRequest, read_json
from ..openapi import described

TOKEN_BYTES = 32

LOGIN_BYTES_MAX = 8 * 1024
"""A body that anybody may send: a name, and a password of 1 KiB in JSON."""


def login_routes(node: Node, doorkeeper: Doorkeeper) -> APIRouter:
    router = APIRouter(tags=["users"])

    @router.post("/v1/login", **described(request=LoginRequest, reply=LoginReply))
    async def login(request: Request) -> Response:
        """A token for `Authorization: Bearer`, until it expires or is logged out."""
        asked = await read_json(request, LoginRequest, bytes_max=LOGIN_BYTES_MAX)
        refused = SQLError("28P01", f'password authentication failed for user "{asked.user}"')
        known = await find_user(node.store.snapshot(await node.store.now()), asked.user)
        user = await doorkeeper.check_password(asked.user, asked.password, address_of(request))
        if user is None:
            raise refused
        token = secrets.token_urlsafe(TOKEN_BYTES)
        now = datetime_of(await node.store.now())
        session = WebSession(user, now, now + timedelta(seconds=asked.ttl_seconds))

        async def work(transaction: Transaction) -> None:
            # A change of the password that commits meanwhile does not see this session to end it.
            if await find_user(transaction, user) != known:
                raise refused
            await put_web_session(transaction, token, session)

        node.services.audit.record(
            AuditEvent(
                event="CreateToken",
                outcome=DONE,
                user=user,
                address=address_of(request),
                what={"expires": session.expires.isoformat()},
            )
        )
        await node.transact(work)
        reply = LoginReply(token=token, user=user, expires=session.expires)
        return Response(msgspec.json.encode(reply), media_type=JSON)

    @router.post("/v1/logout", status_code=204)
    async def logout(request: Request) -> Response:
        """Forgets the token that the request bears. Logging out twice is once."""
        credentials = parse_authorization(request.headers.get("authorization", ""))
        if credentials is not None and credentials.token is not None:
            token = credentials.token
            await node.transact(lambda transaction: remove_web_session(transaction, token))
        return Response(status_code=204)

    return router
