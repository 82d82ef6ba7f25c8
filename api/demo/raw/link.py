"""A link between two stores: slow, and cut when it is asked to be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

PIECE_BYTES = 64 * 1024


class Link:
    """Relays connections to a port of loopback, each piece `delay_seconds` later, as many pieces
    on their way as there are. While it is cut, connections break, and new ones do too."""

    def __init__(self, target_port: int, delay_seconds: float) -> None:
        self.port = 0
        self._target_port = target_port
        self._delay_seconds = delay_seconds
        self._cut = False
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        self._cut = True
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        self._cut = False

    @asynccontextmanager
    async def relaying(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            self.cut()
            server.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._cut:
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            self._open.add(back)
            try:
                await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
            finally:
                self._open.discard(back)
                back.transport.abort()
        except OSError:
            pass  # a server was killed, or the link was cut
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pieces in order, each when it is due: waiting for one delays none behind it."""
        loop = asyncio.get_running_loop()
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)
        sending = asyncio.create_task(_send(due, writer))
        try:
            while piece := await reader.read(PIECE_BYTES):
                await due.put((loop.time() + self._delay_seconds, piece))
            await due.put((0.0, b""))
            await sending
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await sending


async def _send(due: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    while True:
        at, piece = await due.get()
        if not piece:
            writer.write_eof()
            return
        await asyncio.sleep(max(0.0, at - loop.time()))
        writer.write(piece)
        await writer.drain()
