"""A channel: frames of bytes between two processes, through memory that both have mapped.

Each direction has a ring of its own, and two counts of bytes that never go back:

    written   1200      what the writer has put into the ring, frames one behind the other
    read       900      what the reader has taken out: 300 of the ring's bytes are in use

Neither count stands in the memory. A *doorbell* tells the other side both of one's own: how far one
has written, and how far one has read what it wrote. It is a socket, so that what was put into the
memory before it rang is seen by whom it woke.

A frame that finds no room waits in the sender's outbox, and goes on piece by piece as the reader
takes: so nobody is blocked by memory that is full, and one frame may be larger than all of it.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol

COUNTS = struct.Struct("<QQ")
"""What a doorbell tells: bytes written, bytes read."""

LENGTH = struct.Struct("<Q")
"""The head of each frame: its length in bytes."""

UNTOLD_BYTES_MAX = 128 * 1024
"""Frames that can wait for the next ring are told of at the latest now: the other side may as well
begin."""

STEP_BYTES = 1024 * 1024
"""Bytes that are taken out of the ring in one step of the loop: a frame of a feed's rows takes
about as long to decode as to send."""


RECEIVED_BYTES = 4096
"""Bytes that are received of a socket at once: many rings, of which the last one counts."""


class Doorbell(Protocol):
    """Tells the other side of a channel how far this one is, and hears the same of it."""

    def start(self, heard: Callable[[int, int], None], ended: Callable[[], None]) -> None:
        """`heard` is told the other side's counts, and `ended` once that it is gone."""
        ...

    def ring(self, written: int, read: int) -> None:
        """Never waits. Of several that the other side has not heard yet it hears the last."""
        ...

    def close(self) -> None: ...


class Channel:
    """One side of a channel. It is used in the loop in which it was started."""

    def __init__(self, doorbell: Doorbell, outgoing: memoryview, incoming: memoryview) -> None:
        self._doorbell = doorbell
        self._outgoing = outgoing
        self._incoming = incoming
        self._outbox: deque[memoryview] = deque()
        self._written = 0
        self._told_written = 0
        self._taken = 0
        """The bytes of what was written that the other side has read."""
        self._given = 0
        """The bytes that the other side has written."""
        self._read = 0
        self._told_read = 0
        self._head = bytearray()
        """The length of the next frame, as far as it has come."""
        self._body: bytearray | None = None
        self._body_size = 0
        self._on_frame: Callable[[bytearray], None]
        self._on_end: Callable[[], None]
        self._taking = False
        self._open = False

    def start(self, on_frame: Callable[[bytearray], None], on_end: Callable[[], None]) -> None:
        """`on_frame` is given each frame, in order, and `on_end` is called once, when the other
        side is gone and all that it had told of was given."""
        self._on_frame, self._on_end = on_frame, on_end
        self._open = True
        self._doorbell.start(self._heard, self._ended)

    @property
    def waiting_bytes(self) -> int:
        """The bytes that have found no room."""
        return sum(map(len, self._outbox))

    def send(self, frame: bytes, *, rings: bool = True) -> None:
        """Sends a frame, which may wait where it does not ring: for the next that does."""
        if not self._open:
            return
        self._outbox.append(memoryview(LENGTH.pack(len(frame))))
        if frame:
            self._outbox.append(memoryview(frame))
        self._put()
        if rings or self._outbox or self._written - self._told_written >= UNTOLD_BYTES_MAX:
            self._ring()

    def close(self) -> None:
        """The other side hears that this one is gone."""
        if self._open:
            self._open = False
            self._outbox.clear()
            self._doorbell.close()

    # Writing

    def _put(self) -> None:
        """Puts into the ring what finds room."""
        ring, size = self._outgoing, len(self._outgoing)
        while self._outbox:
            room = size - (self._written - self._taken)
            if not room:
                return
            waiting = self._outbox[0]
            place = self._written % size
            count = min(len(waiting), room, size - place)
            ring[place : place + count] = waiting[:count]
            self._written += count
            if count == len(waiting):
                self._outbox.popleft()
            else:
                self._outbox[0] = waiting[count:]

    def _ring(self) -> None:
        if self._written != self._told_written or self._read != self._told_read:
            self._told_written, self._told_read = self._written, self._read
            self._doorbell.ring(self._written, self._read)

    # Reading

    def _heard(self, given: int, taken: int) -> None:
        assert self._given <= given <= self._read + len(self._incoming), (self._given, given)
        assert self._taken <= taken <= self._written, (self._taken, taken, self._written)
        self._given, self._taken = given, taken
        if self._outbox:
            self._put()
            self._ring()
        if not self._taking:
            self._take()

    def _take(self) -> None:
        """Takes frames out of the ring. Where there are many it goes on in the loop's next step."""
        self._taking = False
        stop = self._read + STEP_BYTES
        while self._open and self._read < self._given:
            if self._read >= stop:
                self._taking = True
                asyncio.get_running_loop().call_soon(self._take)
                break
            self._take_piece()
        # The writer goes on when it hears that. Telling it of each frame would double the rings.
        if self._open and self._read - self._told_read >= len(self._incoming) // 4:
            self._ring()

    def _take_piece(self) -> None:
        ring, size = self._incoming, len(self._incoming)
        place = self._read % size
        there = min(self._given - self._read, size - place)
        if self._body is None:
            count = min(there, LENGTH.size - len(self._head))
            self._head += ring[place : place + count]
            self._read += count
            if len(self._head) < LENGTH.size:
                return
            (self._body_size,) = LENGTH.unpack(self._head)
            self._head.clear()
            self._body = bytearray()
        else:
            count = min(there, self._body_size - len(self._body))
            self._body += ring[place : place + count]
            self._read += count
        if len(self._body) == self._body_size:
            frame, self._body = self._body, None
            self._on_frame(frame)

    def _ended(self) -> None:
        while self._open and self._read < self._given:
            self._take_piece()
        if self._open:
            self.close()
            self._on_end()

    def __repr__(self) -> str:
        sent = f"written={self._written} taken={self._taken} waiting={self.waiting_bytes}"
        return f"<Channel {sent} given={self._given} read={self._read}>"


class SocketDoorbell:
    """A doorbell between processes: one end of a pair of stream sockets."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._socket = end
        self._loop: asyncio.AbstractEventLoop
        self._heard: Callable[[int, int], None]
        self._ended: Callable[[], None]
        self._received = b""
        self._unsent = b""
        """The rest of a ring that the socket had no room for."""
        self._due: tuple[int, int] | None = None
        """The ring that is to follow it."""

    def start(self, heard: Callable[[int, int], None], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard, self._ended = heard, ended
        self._loop.add_reader(self._socket, self._readable)

    def ring(self, written: int, read: int) -> None:
        if self._unsent:
            self._due = written, read
            return
        self._send(COUNTS.pack(written, read))

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()

    def _send(self, data: bytes) -> None:
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # the reader hears of the end
        self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._socket, self._writable)

    def _writable(self) -> None:
        self._loop.remove_writer(self._socket)
        due = b""
        if self._due is not None:
            due, self._due = COUNTS.pack(*self._due), None
        self._send(self._unsent + due)

    def _readable(self) -> None:
        ended = False
        try:
            while True:
                data = self._socket.recv(RECEIVED_BYTES)
                self._received += data
                ended = not data
                if len(data) < RECEIVED_BYTES:
                    break
        except BlockingIOError:
            pass
        except OSError:
            ended = True
        whole = len(self._received) // COUNTS.size * COUNTS.size
        if whole:
            counts = COUNTS.unpack_from(self._received, whole - COUNTS.size)
            self._received = self._received[whole:]
            self._heard(*counts)
        if ended:
            self._ended()
