"""Connections of the HTTP door: their places, TLS, and how long clients may take.

uvicorn waits for ever for the rest of a request's head, for a TLS handshake a minute, and counts
connections only when a request is whole. Here a connection has its place from the moment it is
accepted, before TLS; and its client has

    HANDSHAKE_SECONDS     to agree on TLS,
    REQUEST_SECONDS       to send a request, body and all, before it is known,
    REQUEST_SECONDS       to send a request's head, once it is known,
    BODY_SECONDS          for each next piece of a body that the server is waiting for.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import partial
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..admission import Admission, Place

HANDSHAKE_SECONDS = 10.0
REQUEST_SECONDS = 10.0
BODY_SECONDS = 60.0

PLACE = "place"
"""Where a request's scope has its connection's place, in `state`."""

_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Doorway(asyncio.Protocol):
    """A connection that has been accepted: takes a place, and is handed on to HTTP."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        admission: Admission,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._http = partial(BoundedHttp, config, server_state, app_state, _loop)
        self._admission = admission
        self._tls = tls
        self._shaking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), transport
        name = transport.get_extra_info("peername")
        address = str(name[0]) if isinstance(name, tuple) else "local"
        http = self._http(self._admission.arrive(address, transport.abort))
        if self._tls is None:
            transport.set_protocol(http)
            http.connection_made(transport)
        else:
            transport.pause_reading()  # what comes is TLS's, and nobody reads TLS yet
            self._shaking = asyncio.get_running_loop().create_task(
                _shake_hands(transport, http, self._tls)
            )


async def _shake_hands(
    transport: asyncio.Transport, http: BoundedHttp, context: ssl.SSLContext
) -> None:
    loop = asyncio.get_running_loop()
    try:
        encrypted = await loop.start_tls(
            transport, http, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_SECONDS
        )
    except (OSError, ssl.SSLError):  # also when it took too long: there is nobody to tell
        encrypted = None
    if encrypted is None or http.lost:
        transport.abort()
        http.place.leave()
    else:
        http.connection_made(encrypted)


NOT_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 31\r\n\r\nInvalid HTTP request received.\n"
)


class BoundedHttp(H11Protocol):
    """uvicorn's HTTP/1.1, for a client that has a place and so much time.

    One timer runs at most: that of a *request* is set once and runs out, that of a *body* begins
    anew with each piece. None runs while the client waits for the server, nor between requests,
    where uvicorn's own does.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None,
        place: Place,
    ) -> None:
        super().__init__(config, server_state, {**app_state, PLACE: place}, _loop)
        self.place = place
        self.lost = False
        self._early = bytearray()
        """What was decrypted in the step in which the handshake ended."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_seconds = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_timer(REQUEST_SECONDS)
        if self._early:
            self.data_received(bytes(self._early))
            self._early.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._stop_timer()
        self.place.leave()
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:
            self._early += data
            return
        super().data_received(data)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no HTTP, in bytes of its own: h11 would have them fit to the request
        before. Behind a half-sent response or a last one there is nothing to say."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(NOT_HTTP)
        self.transport.close()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self._stop_timer()
        else:
            self._watch()

    def _watch(self) -> None:
        """Sets the timer for what the client has yet to send."""
        sending = self.conn.their_state is h11.SEND_BODY
        if self.transport.is_closing() or (self._running and not sending):
            self._stop_timer()
        elif self._running and self.place.user is not None:
            self._set_timer(BODY_SECONDS)
        elif self._timer is None or self._timer_seconds != REQUEST_SECONDS:
            self._set_timer(REQUEST_SECONDS)

    @property
    def _running(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _set_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._too_slow)
        self._timer_seconds = seconds

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        known = self.place.user is not None
        held_back = known and self.flow.read_paused
        if self._running and (held_back or (known and self._timer_seconds != BODY_SECONDS)):
            self._set_timer(BODY_SECONDS)
            return
        if not self.transport.is_closing():
            if self.conn.our_state is h11.IDLE:
                self.transport.write(_TOO_SLOW)
            self.transport.close()
