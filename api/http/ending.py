"""Replies that end because the server was told to stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import Request

from ...catalog.values.errors import SQLError
from .problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_ENDLESS = "endless"


def mark_endless(request: Request) -> None:
    """The reply to this request has no end of its own."""
    request.state.endless = True


_STOPPED = SQLError(
    "57P01", "the server ends, and has cancelled the request", hint="Ask again when it is back."
)


class EndingReplies:
    """An application whose endless replies end when it is told to.

    They hear that their client has gone, for which every stream listens, and their last chunk is
    sent. Whatever has an end of its own may come to it: a client could not tell a part of it from
    the whole. The server cancels what has not, after its patience: who was told nothing yet is told
    of that.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._stopped = False
        self._begun: set[asyncio.Event] = set()
        """The events that tell endless replies to end, one for each reply that has begun."""

    def stop(self) -> None:
        """Ends the endless replies that have begun, and others as they begin."""
        self._stopped = True
        for end in self._begun:
            end.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        end, asked, answered = asyncio.Event(), False, False

        async def receiving() -> Message:
            nonlocal asked
            if asked:
                return await _or_end(receive, end)
            message = await receive()
            asked = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            nonlocal answered
            answered = True
            if message["type"] == "http.response.start" and scope.get("state", {}).get(_ENDLESS):
                self._begun.add(end)
                if self._stopped:
                    end.set()
            await send(message)

        try:
            await self._app(scope, receiving, sending)
            if end.is_set():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not self._stopped or answered:
                raise
            await problem(_STOPPED).response()(scope, receive, send)
        finally:
            self._begun.discard(end)


async def _or_end(receive: Receive, end: asyncio.Event) -> Message:
    message = asyncio.ensure_future(receive())
    ended = asyncio.ensure_future(end.wait())
    try:
        await asyncio.wait([message, ended], return_when=asyncio.FIRST_COMPLETED)
        return message.result() if message.done() else {"type": "http.disconnect"}
    finally:
        message.cancel()
        ended.cancel()
