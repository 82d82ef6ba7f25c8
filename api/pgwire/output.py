"""Results on their way out: rows as frames, no faster than the client reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice

from ...sql import Result, Row, Session
from ...sql.variables.variables import CLIENT_MIN_MESSAGES, tells
from . import replies
from .channel import FLUSH_BYTES, Channel
from .interruption import Guard
from .portals import SLICE_ROWS, PendingRows, RowEncoder


class Output:
    """Sends results to one client."""

    def __init__(self, channel: Channel, guard: Guard, session: Session) -> None:
        self._channel = channel
        self._guard = guard
        self._session = session

    async def content(self, result: Result) -> None:
        """A result as the simple protocol has it: columns, and rows in text."""
        if not result.returns_rows:
            return
        formats = (0,) * len(result.columns)
        self._channel.write(replies.row_description(result.columns, formats))
        encode = RowEncoder(result.columns, formats)
        if result.stream is not None:
            await self.stream(result, encode)
        else:
            await self.rows(PendingRows(result), encode)

    def complete(self, result: Result, tag: str | None = None) -> None:
        if result.notice or result.warnings:
            self._tell(result.notice, result.warnings)
        self._channel.write(replies.command_complete(tag or result.full_tag))

    def _tell(self, notice: str | None, warnings: Sequence[str]) -> None:
        least = self._session.variables.get(CLIENT_MIN_MESSAGES)
        if notice and tells(least, "notice"):
            self._channel.write(replies.notice(notice))
        for warning in warnings if tells(least, "warning") else ():
            told = replies.notice(warning, sqlstate="01000", severity=replies.Severity.WARNING)
            self._channel.write(told)

    async def rows(self, rows: PendingRows, encode: RowEncoder, limit: int = 0) -> int:
        """Sends at most `limit` rows, or all for 0. Returns how many there were.

        While batches of them are computed, the statement runs: see `Session.sending`.
        """
        if rows.result.batches is None:
            return await self._send(rows, encode, limit, self.turn)
        return await self._guard.run(self._send_batches(rows, encode, limit))

    async def _send_batches(self, rows: PendingRows, encode: RowEncoder, limit: int) -> int:
        async with self._session.sending(rows.result):
            return await self._send(rows, encode, limit, self._turn)

    async def _send(
        self,
        rows: PendingRows,
        encode: RowEncoder,
        limit: int,
        turn: Callable[[], Awaitable[None]],
    ) -> int:
        count = 0
        while True:
            wanted = min(SLICE_ROWS, limit - count) if limit else SLICE_ROWS
            while portion := list(islice(rows.ready, wanted)):
                self._channel.write_all(encode.many(portion))
                count += len(portion)
                if count == limit:
                    return count
                if len(portion) == SLICE_ROWS:
                    await turn()
                wanted = min(SLICE_ROWS, limit - count) if limit else SLICE_ROWS
            if not await rows.more():
                return count

    async def turn(self) -> None:
        """Lets others work, and waits while the client does not read."""
        await self._guard.run(self._channel.drain())
        await asyncio.sleep(0)

    async def _turn(self) -> None:
        """As `turn`, within what the guard runs."""
        await self._channel.drain()
        await asyncio.sleep(0)

    async def stream(self, result: Result, encode: RowEncoder, limit: int = 0) -> int:
        """As `rows`, each row of the result's stream as it comes, until the stream ends or is
        interrupted."""
        assert result.stream is not None, result.tag
        return await self._guard.run(self._send_stream(result, result.stream, encode, limit))

    async def _send_stream(
        self, result: Result, rows: AsyncIterator[Row], encode: RowEncoder, limit: int
    ) -> int:
        async with self._session.sending(result):
            return await self._pump(rows, encode, limit)

    async def _pump(self, rows: AsyncIterator[Row], encode: RowEncoder, limit: int) -> int:
        channel, count, pending = self._channel, 0, 0
        channel.flush()
        async for row in rows:
            frame = encode.one(row)
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
