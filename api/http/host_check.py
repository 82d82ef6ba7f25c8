"""The host names to which a server answers that listens on a loopback address only.

A page of another site can make a browser ask 127.0.0.1 under a name of its own (DNS rebinding),
and would then be of our origin. Its name is in the Host header, and is refused.
"""

from __future__ import annotations

import ipaddress

from starlette.types import ASGIApp, Receive, Scope, Send

from .problems import Problem


class LoopbackHosts:
    """Lets through requests whose Host is a loopback address or `localhost`, at any port."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not is_loopback(_host(scope)):
            refusal = Problem(
                title="Misdirected Request",
                status=421,
                detail=f"this server answers to loopback names only, not to {_host(scope)!r}",
                hint="Use http://127.0.0.1 or http://localhost.",
            )
            await refusal.response()(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether a host, without its port, is `localhost` or a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host(scope: Scope) -> str:
    """The Host header without its port."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    value = next((value for name, value in headers if name == b"host"), b"").decode("latin-1")
    name, colon, port = value.rpartition(":")
    return name.lower() if colon and port.isdigit() else value.lower()
