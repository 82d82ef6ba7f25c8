"""Server-sent events: the newest state, again and again, to whoever still listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi import Request
from fastapi.responses import StreamingResponse

from .ending import mark_endless

RETRY_MS = 1000
"""After what time a browser whose stream broke asks again: a server restarts in about that."""

Render = Callable[[], Awaitable[bytes]]


def event_stream(
    request: Request, render: Render, *, every_seconds: float, allowed: Callable[[], bool]
) -> StreamingResponse:
    """A reply that sends what `render` returns, one JSON document an event, while it is `allowed`.

    The state is rendered anew for every event, after the last one went out: so a slow browser gets
    fewer events, and never an old one.
    """
    mark_endless(request)
    return StreamingResponse(
        _events(render, every_seconds, allowed),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store"},
    )


async def _events(
    render: Render, every_seconds: float, allowed: Callable[[], bool]
) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % RETRY_MS
    while allowed():
        yield b"data: " + await render() + b"\n\n"
        await asyncio.sleep(every_seconds)
