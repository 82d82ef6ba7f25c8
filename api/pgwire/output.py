"""Results on their way out: rows as frames, no faster than the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

from ...sql import Result, Row
from . import replies
from .channel import FLUSH_BYTES, Channel
from .interruption import Guard
from .portals import SLICE_ROWS, row_encoder, rows_of

Encode = Callable[[Row], bytes]


class Output:
    """Sends results to one client."""

    def __init__(self, channel: Channel, guard: Guard) -> None:
        self._channel = channel
        self._guard = guard

    async def whole(self, result: Result) -> None:
        """A result as the simple protocol has it: columns, rows in text, and the tag."""
        if result.returns_rows:
            formats = (0,) * len(result.columns)
            self._channel.write(replies.row_description(result.columns, formats))
            encode = row_encoder(result.columns, formats)
            if result.stream is not None:
                await self.stream(result.stream, encode)
            else:
                await self.rows(rows_of(result), encode)
        self.complete(result)

    def complete(self, result: Result, tag: str | None = None) -> None:
        if result.notice:
            self._channel.write(replies.notice(result.notice))
        self._channel.write(replies.command_complete(tag or result.tag))

    async def rows(self, rows: Iterator[Row], encode: Encode, limit: int = 0) -> int:
        """Sends at most `limit` rows, or all for 0. Returns how many there were."""
        write, count = self._channel.write, 0
        for row in rows:
            write(encode(row))
            count += 1
            if count == limit:
                break
            if count % SLICE_ROWS == 0:
                await self.turn()
        return count

    async def turn(self) -> None:
        """Lets others work, and waits while the client does not read."""
        await self._guard.run(self._channel.drain())
        await asyncio.sleep(0)

    async def stream(self, rows: AsyncIterator[Row], encode: Encode, limit: int = 0) -> int:
        """As `rows`, each row as it comes, until the stream ends or is interrupted."""
        return await self._guard.run(self._pump(rows, encode, limit))

    async def _pump(self, rows: AsyncIterator[Row], encode: Encode, limit: int) -> int:
        channel, count, pending = self._channel, 0, 0
        channel.flush()
        async for row in rows:
            frame = encode(row)
            channel.write_soon(frame)
            count += 1
            pending += len(frame)
            if pending >= FLUSH_BYTES:
                pending = 0
                await channel.drain()
                await asyncio.sleep(0)
            if count == limit:
                break
        return count
