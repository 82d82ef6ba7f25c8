"""The lines that a child process prints, however long they are."""

from __future__ import annotations

import asyncio


async def next_line(stream: asyncio.StreamReader) -> bytes:
    """The next line, empty behind the last. One beyond the stream's limit comes in pieces:
    `readline` raises ValueError at it, and a reader that ends leaves the child to wait for ever
    until somebody reads on."""
    try:
        return await stream.readuntil()
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(overrun.consumed)
