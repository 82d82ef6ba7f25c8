"""The Postgres door in process, and a client that speaks the protocol byte by byte.

async with pg_door() as door:
    client = await door.client()                  # greeted, as root
    assert await client.query("SELECT 1") == [("1",)]
    client.send(b"Q", b"SELECT 1\\0")              # or anything else
    kind, body = await client.frame()
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack, unpack

from tailrace.api.node import Node
from tailrace.api.pgwire import PostgresOptions, PostgresServer, serve_postgres
from tailrace.api.pgwire.authentication import Method

PATIENCE_SECONDS = 120.0

Frame = tuple[bytes, bytes]


class WireError(Exception):
    """What the server said in an ErrorResponse, by the letters of its fields."""

    def __init__(self, body: bytes) -> None:
        self.fields = {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}
        super().__init__(self.fields)

    @property
    def sqlstate(self) -> str:
        return self.fields["C"]


class WireClient:
    """One connection, of which the test sees every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.notices: list[bytes] = []
        self.status: dict[str, str] = {}
        self.key = (0, 0)

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.raw(kind + pack("!I", len(body) + 4) + body)

    def startup(self, **parameters: str) -> None:
        body = b"".join(f"{k}\0{v}\0".encode() for k, v in parameters.items()) + b"\0"
        self.raw(pack("!II", len(body) + 8, 196608) + body)

    async def frame(self) -> Frame:
        """The next frame but notices and statuses. Raises IncompleteReadError at the end."""
        while True:
            async with asyncio.timeout(PATIENCE_SECONDS):
                head = await self.reader.readexactly(5)
                kind, length = head[:1], unpack("!I", head[1:])[0]
                body = await self.reader.readexactly(length - 4)
            if kind == b"N":
                self.notices.append(body)
            elif kind == b"S":
                name, value, _ = body.split(b"\0")
                self.status[name.decode()] = value.decode()
            elif kind == b"K":
                self.key = unpack("!ii", body)
            else:
                return kind, body

    async def until_ready(self) -> list[Frame]:
        """All frames up to ReadyForQuery, that one included."""
        frames = [await self.frame()]
        while frames[-1][0] != b"Z":
            frames.append(await self.frame())
        return frames

    async def query(self, text: str) -> list[tuple[str | None, ...]]:
        """The rows of a simple query, in text. Raises WireError."""
        self.send(b"Q", text.encode() + b"\0")
        frames = await self.until_ready()
        for kind, body in frames:
            if kind == b"E":
                raise WireError(body)
        return [row_of(body) for kind, body in frames if kind == b"D"]

    async def ended(self) -> bytes:
        """What is left when the server has closed the connection."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.reader.read()

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass


def row_of(body: bytes) -> tuple[str | None, ...]:
    """A DataRow's values, as text."""
    (count,) = unpack("!H", body[:2])
    at = 2
    values: list[str | None] = []
    for _ in range(count):
        (length,) = unpack("!i", body[at : at + 4])
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(body[at : at + length].decode())
            at += length
    return tuple(values)


class PgDoor:
    """A node in memory behind the Postgres door."""

    def __init__(self, node: Node, server: PostgresServer, port: int) -> None:
        self.node = node
        self.server = server
        self.port = port
        self._clients: list[WireClient] = []

    async def connect(self) -> WireClient:
        """A connection on which nothing was said yet."""
        client = WireClient(*await asyncio.open_connection("127.0.0.1", self.port))
        self._clients.append(client)
        return client

    async def client(self, user: str = "root", **parameters: str) -> WireClient:
        client = await self.connect()
        client.startup(user=user, **parameters)
        await client.until_ready()
        return client

    def forget(self, client: WireClient) -> None:
        """The test has ended this one itself."""
        self._clients.remove(client)

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


@asynccontextmanager
async def pg_door(
    options: PostgresOptions | None = None, path: str | Path = ":memory:"
) -> AsyncIterator[PgDoor]:
    """A new node, in memory and trusting everybody unless told otherwise."""
    node = await Node.open(path)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    try:
        chosen = options or PostgresOptions(method=Method.TRUST)
        async with serve_postgres(node, listener, chosen) as server:
            door = PgDoor(node, server, listener.getsockname()[1])
            try:
                yield door
            finally:
                await door.close()
    finally:
        await node.close()
        listener.close()
