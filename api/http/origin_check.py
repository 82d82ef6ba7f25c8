"""Keeps pages of other sites from doing anything in the name of a browser's user.

A browser sends what it has of passwords with every request to this server, also with those that a
page of another site makes; and a server that asks nobody answers them all. Such a page cannot read
the replies, so reading is as it was. A request that may change something is refused where its
browser says that it comes from elsewhere (`Sec-Fetch-Site`, else `Origin`), and a POST where its
body has a type that forms of other sites may send, which no POST here takes. Programs send neither
header.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .problems import Problem

READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})
FORM_TYPES = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
"""Types of bodies that a page may POST to another site without asking it before. A PUT is always
asked for, so the value of a raw key may have any type, such as the one that curl gives."""


class SameOrigin:
    """Lets through what programs and this server's own pages ask, or answers 403 or 415."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal.response())(scope, receive, send)


def _refusal(scope: Scope) -> Problem | None:
    if scope["method"] in READING:
        return None
    headers = Headers(scope=scope)
    if not _own(headers):
        return Problem(
            title="Forbidden",
            status=403,
            detail="a page of another site may not do this here",
            hint="Use the dashboard under the server's own address, or a program.",
        )
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind in FORM_TYPES:
        return Problem(
            title="Unsupported Media Type",
            status=415,
            detail=f"a body of type {kind} is not taken: send application/json",
        )
    return None


def _own(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in OWN_SITES
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host", "").lower()
