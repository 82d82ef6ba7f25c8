"""Server-sent events: the newest state, again and again, to whoever still listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.responses import StreamingResponse

RETRY_MS = 1000
"""After what time a browser whose stream broke asks again: a server restarts in about that."""

Render = Callable[[], Awaitable[bytes]]


class EventStreams:
    """The event streams of one server, which all end when it closes.

    Each stream renders the state anew for every event, after the last one went out: so a slow
    browser gets fewer events, and never an old one.
    """

    def __init__(self) -> None:
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Ends every stream: a server that stops waits for its replies to end."""
        self._closing.set()

    def response(
        self, render: Render, *, every_seconds: float, allowed: Callable[[], bool]
    ) -> StreamingResponse:
        """A reply that sends what `render` returns, one JSON document an event, while it is
        `allowed`."""
        return StreamingResponse(
            self._events(render, every_seconds, allowed),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )

    async def _events(
        self, render: Render, every_seconds: float, allowed: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        yield b"retry: %d\n\n" % RETRY_MS
        while not self._closing.is_set() and allowed():
            yield b"data: " + await render() + b"\n\n"
            try:
                async with asyncio.timeout(every_seconds):
                    await self._closing.wait()
            except TimeoutError:
                pass
