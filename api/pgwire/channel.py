"""The socket's side of one connection: bytes to the machine, frames to the socket.

Reading stops while more is buffered than the conversation has taken, and writing waits while the
client does not read: neither side can make the other hold more than a bound.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence

from .messages import First, Message
from .states import Machine

READ_AHEAD_BYTES = 1024 * 1024
"""Received and not yet taken. A message longer than this is read on to its end."""

WRITE_AHEAD_BYTES = 256 * 1024
"""Written and not yet read by the client: from there on, writers wait."""

FLUSH_BYTES = 64 * 1024
"""Frames are handed to the socket together, at the latest when they are this long."""


class HangUp(Exception):
    """The client has gone."""


class Channel(asyncio.Protocol):
    """One connection. `on_lost` is called once, when it has ended."""

    def __init__(self, on_connected: Callable[[Channel], None]) -> None:
        self.machine = Machine()
        self.lost = False
        self.on_lost: Callable[[], object] = lambda: None
        self.at_once: Callable[[bytes], bool] = lambda data: False
        """Offered what arrives while nothing else is here and somebody waits for `more`: True where
        it took that, and nobody is to be woken."""
        self._on_connected = on_connected
        self._transport: asyncio.Transport | None = None
        self._arrived: asyncio.Future[None] | None = None
        self.writable = True
        """Whether the client reads what is written: `drain` would not wait."""
        self._resumed = asyncio.Event()
        """Set while the channel is `writable`, and when it is lost."""
        self._resumed.set()
        self._reading = True
        self._ended = False
        self._stopped = False
        self._shaking_hands = False
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._flush_is_due = False

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), transport
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)
        self._on_connected(self)

    def data_received(self, data: bytes) -> None:
        machine, arrived = self.machine, self._arrived
        awaited = arrived is not None and not arrived.done() and not self._stopped
        if awaited and not machine.buffered_bytes and self.at_once(data):
            return
        machine.receive(data)
        if machine.buffered_bytes > READ_AHEAD_BYTES:
            self._pause()
        self.wake()

    def eof_received(self) -> bool:
        """A client that shuts down its side is gone: there is nobody to answer."""
        self._ended = True
        self.wake()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._ended = True
        self._out.clear()
        self._resumed.set()
        self.wake()
        self.on_lost()

    def pause_writing(self) -> None:
        self.writable = False
        self._resumed.clear()

    def resume_writing(self) -> None:
        self.writable = True
        self._resumed.set()

    # Reading

    async def next_message(self) -> First | Message:
        """The next message. Raises HangUp, or ProtocolViolation."""
        while (message := self.message_here()) is None:
            await self.more()
        return message

    def message_here(self) -> First | Message | None:
        """The next message, if it has arrived whole. Raises HangUp, or ProtocolViolation."""
        if self._stopped:
            raise HangUp
        return self.machine.next_message()

    async def more(self) -> None:
        """Waits for more bytes, having sent what is kept. Raises HangUp where none will come."""
        if self._ended:
            raise HangUp
        self.flush()
        self._resume()
        self._arrived = asyncio.get_running_loop().create_future()
        try:
            await self._arrived
        finally:
            self._arrived = None

    def wake(self) -> None:
        """Wakes whoever waits for `more`, to look at what has arrived."""
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def _resume(self) -> None:
        """Reads on: there is no whole message, and only more bytes can help."""
        if not self._reading and self._transport is not None and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    def end_input(self) -> None:
        """From now on there are no more messages, whatever has come already."""
        self._stopped = True
        self.wake()

    # Writing

    def write(self, frame: bytes) -> None:
        """Keeps a frame for the next flush."""
        self._out.append(frame)
        self._out_bytes += len(frame)

    def write_all(self, frames: Sequence[bytes]) -> None:
        """Keeps frames for the next flush."""
        self._out += frames
        self._out_bytes += sum(map(len, frames))

    def write_soon(self, frame: bytes) -> None:
        """Keeps a frame, and flushes at the end of this turn of the loop."""
        self.write(frame)
        if not self._flush_is_due:
            self._flush_is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def send(self, frames: list[bytes]) -> None:
        """Sends frames, and what is kept before them."""
        self._out += frames
        self.flush()

    def flush(self) -> None:
        self._flush_is_due = False
        if not self._out or self._transport is None:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Hands on what is kept once it is long, and waits while the client does not read.

        Raises HangUp when there is nobody to read.
        """
        if self._out_bytes >= FLUSH_BYTES:
            self.flush()
        if not self._resumed.is_set():
            await self._resumed.wait()
        if self.lost:
            raise HangUp

    # Its end, and its beginning

    async def start_tls(self, context: ssl.SSLContext, timeout: float) -> None:
        """Goes on encrypted. Raises OSError or ssl.SSLError, and then the connection has ended."""
        assert self._transport is not None
        assert self.machine.buffered_bytes == 0, "bytes before encryption must not be read after it"
        loop = asyncio.get_running_loop()
        self.flush()
        self._shaking_hands = True
        try:
            transport = await loop.start_tls(
                self._transport, self, context, server_side=True, ssl_handshake_timeout=timeout
            )
        finally:
            self._shaking_hands = False
        if transport is None:
            raise ConnectionError("the connection ended in the handshake")
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_AHEAD_BYTES)

    @property
    def peer(self) -> str:
        """The client's address, without its port."""
        assert self._transport is not None
        name = self._transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, tuple) else "local"

    @property
    def encrypted(self) -> bool:
        assert self._transport is not None
        return self._transport.get_extra_info("ssl_object") is not None

    def close(self) -> None:
        """Sends what is kept, and ends the connection."""
        self.machine.close()
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def turn_away(self, frame: bytes) -> None:
        """Ends a connection whose client is not let in, and says why where that can be read: in
        the middle of a TLS handshake it cannot."""
        self.end_input()
        if self._shaking_hands:
            self.abort()
        else:
            self.write(frame)
            self.close()

    def abort(self) -> None:
        """Ends the connection now, whatever is still to be sent."""
        self.machine.close()
        if self._transport is not None:
            self._transport.abort()
