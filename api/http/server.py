"""The HTTP door as a whole: a listener, the application and the dashboard, served in this loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import cast

import uvicorn

from ...changefeed.sinks.spark import LakeServer
from ...changefeed.sinks.uri import bracketed
from ..admission import Admission, Bounds
from ..descriptors import ACCEPTED_AT_ONCE, HTTP_BOUNDS
from ..node import Node
from ..refusal import NodeRefused
from ..tls import server_context
from .app import create_app
from .connections import Doorway
from .ending import EndingReplies
from .host_check import is_loopback
from .routes.dashboard_routes import Dashboard
from .transactions import HeldTransactions

BACKLOG = 1024
"""Connections that wait in the kernel until the loop accepts them, `ACCEPTED_AT_ONCE` at a time."""

STOP_PATIENCE_SECONDS = 10
"""How long requests that run have to end, once the server is told to stop."""


import_module("anyio._backends._asyncio")
# Or the first reply that is a stream does, in one step of the loop: 15 ms.


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """The terms of the door. With `trust` everybody is root, which is for loopback alone."""

    trust: bool = True
    loopback: bool = True
    cert: Path | None = None
    key: Path | None = None
    bounds: Bounds = HTTP_BOUNDS

    @property
    def scheme(self) -> str:
        return "http" if self.cert is None else "https"


def http_options(host: str, *, insecure: bool, cert: Path | None, key: Path | None) -> HttpOptions:
    """The options of a server on `host`. Raises NodeRefused for what would let anybody in, or
    would send passwords in the clear. With a certificate TLS is spoken on loopback, too."""
    if (cert is None) != (key is None):
        raise NodeRefused("TLS needs both --cert and --key")
    if is_loopback(host):
        return HttpOptions(trust=insecure, cert=cert, key=key)
    if insecure:
        raise NodeRefused(
            f"will not listen on {host} with --insecure: without passwords only a loopback "
            "address is served (127.0.0.1, ::1, localhost)"
        )
    if cert is None or key is None:
        raise NodeRefused(
            f"will not listen on {host} in the clear: give --cert and --key, or a loopback address"
        )
    return HttpOptions(trust=False, loopback=False, cert=cert, key=key)


class HttpServer:
    """REST and the dashboard of a node, on a socket that is bound already.

    `run` serves until `stop`; `close` comes after it, and before the node's own.
    """

    def __init__(
        self, node: Node, listener: socket.socket, options: HttpOptions | None = None
    ) -> None:
        options = options or HttpOptions()
        self._listener = listener
        self._dashboard = Dashboard(node)
        self._held = HeldTransactions(node)
        self._app = EndingReplies(
            create_app(
                node,
                self._dashboard.router,
                held=self._held,
                trust=options.trust,
                loopback=options.loopback,
            )
        )
        config = uvicorn.Config(
            self._app,
            http=_doorway(node, options),
            ws="none",
            backlog=ACCEPTED_AT_ONCE,
            proxy_headers=False,  # a client that is believed to come from elsewhere is not counted
            log_config=None,  # the process decides what is logged, and where
            lifespan="off",
            timeout_graceful_shutdown=STOP_PATIENCE_SECONDS,
        )
        # Its warnings tell of broken requests, of which strangers could fill the log.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._server = _Server(config)

    async def run(self) -> None:
        await self._server.serve(sockets=[self._listener])

    def stop(self) -> None:
        """Also before it has begun."""
        self._server.should_exit = True
        self._app.stop()

    async def close(self) -> None:
        """Ends what the dashboard runs, and rolls back what nobody has committed."""
        await self._held.close()
        await self._dashboard.close()


def _doorway(node: Node, options: HttpOptions) -> type[asyncio.Protocol]:
    """The protocol that uvicorn makes of each connection."""
    admission = Admission(options.bounds, node.store.metrics, "http")
    tls = None
    if options.cert is not None and options.key is not None:
        tls = server_context(options.cert, options.key)
    # uvicorn only calls it, as it would call a class.
    return cast(type[asyncio.Protocol], partial(Doorway, admission=admission, tls=tls))


class _Server(uvicorn.Server):
    """uvicorn without its signal handling: the node must close after the last request."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)


def bind(host: str, port: int) -> socket.socket:
    """A socket at that address, 0 being any free port; `listen` is still to come.

    Raises NodeRefused when it is taken, or is no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio sets TCP_NODELAY on no other: without it each reply takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise NodeRefused(f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


def server_for_lakes(url: str, options: HttpOptions) -> LakeServer:
    """The address and certificate for programs that this process starts. Raises NodeRefused."""
    if options.cert is None:
        return LakeServer(url)
    try:
        text = options.cert.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NodeRefused(f"certificate {options.cert} cannot be read: {error}") from error
    # The first is the server's own; those behind it vouch for others, too.
    end = "-----END CERTIFICATE-----"
    own, found, _ = text.partition(end)
    if not found:
        raise NodeRefused(f"certificate {options.cert} has none in PEM")
    return LakeServer(url, own[own.index("-----BEGIN") :] + found + "\n")


def url_of(host: str, listener: socket.socket, scheme: str = "http") -> str:
    """The URL at which a client finds a listener."""
    return f"{scheme}://{bracketed(host)}:{listener.getsockname()[1]}"
