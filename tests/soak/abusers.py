"""Abusers: users without rights, and strangers, each of whom does one thing without end.

python -m tests.soak.abusers HTTP_PORT PG_PORT [NAME …]      until it is ended
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable

import asyncpg

MALLORY = "mallory"
PASSWORD = "m"
HALF_SENT = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
ELSEWHERE = ("127.0.0.2", 0)
"""Where strangers come from: failures count for an address, and here everybody has loopback's."""

PAUSE_SECONDS = 0.05
"""Between one misdeed and the next, so that a bound is met and not the processor's end."""


async def _connection(pg_port: int) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=pg_port, user=MALLORY, password=PASSWORD, database="defaultdb"
    )


async def _say(port: int, said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=ELSEWHERE)
    writer.write(said)
    answer = await reader.read()
    writer.close()
    return answer


def _request(method: str, path: str, body: bytes, *, auth: bool = True) -> bytes:
    basic = b64encode(f"{MALLORY}:{PASSWORD}".encode()).decode()
    head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
    head += ["Content-Type: application/json", "Connection: close"]
    head += [f"Authorization: Basic {basic}"] if auth else []
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


async def silence(http_port: int, pg_port: int) -> None:
    """Opens connections to both doors and says nothing, or half of something."""
    held = []
    for port, said in ((pg_port, b""), (http_port, HALF_SENT)) * 40:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        held.append(writer)
    await asyncio.sleep(1.0)
    for writer in held:
        writer.transport.abort()


async def guess(http_port: int, pg_port: int) -> None:
    """Guesses root's password, in a body that is too long, too."""
    body = b'{"user": "root", "password": "' + b"x" * 20 + b'"}'
    await _say(http_port, _request("POST", "/v1/login", body, auth=False))
    await _say(http_port, _request("POST", "/v1/login", b"x" * 100_000, auth=False))


async def plan(http_port: int, pg_port: int) -> None:
    """Has wide and deep statements planned, each a new text."""
    connection = await _connection(pg_port)
    try:
        for number in range(20):
            wide = ", ".join(f"{number + each} + k" for each in range(1000))
            await connection.prepare(f"SELECT {wide} FROM own")
            many = " UNION ALL ".join(f"SELECT {number + each}" for each in range(300))
            await connection.prepare(many)
    finally:
        await connection.close()


async def compute(http_port: int, pg_port: int) -> None:
    """Runs a query that does not end, and hangs up."""
    endless = "SELECT count(*) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b"
    connection = await _connection(pg_port)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(connection.execute(endless), 5.0)
    connection.terminate()


async def hoard(http_port: int, pg_port: int) -> None:
    """Asks for a large result over and over, and does not read it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", http_port)
    text = b'{"sql": "SELECT repeat(\'x\', 1000) FROM generate_series(1, 100000)"}'
    writer.write(_request("POST", "/v1/sql", text))
    await reader.read(1)
    await asyncio.sleep(1.0)
    writer.transport.abort()


async def prepare(http_port: int, pg_port: int) -> None:
    """Keeps statements, cursors and savepoints until it is refused, then does so anew."""
    connection = await _connection(pg_port)
    await connection.execute("BEGIN")
    with contextlib.suppress(asyncpg.PostgresError):
        for number in range(2_000):
            await connection.execute(f"DECLARE c{number} CURSOR FOR SELECT {number}")
    connection.terminate()


async def burden(http_port: int, pg_port: int) -> None:
    """Commits rows of a megabyte to a table of its own, as fast as they are taken."""
    connection = await _connection(pg_port)
    try:
        for number in range(20):
            await connection.execute("UPSERT INTO own VALUES ($1, $2)", number, "x" * 1_000_000)
    finally:
        await connection.close()


ABUSERS: tuple[Callable[[int, int], Awaitable[None]], ...] = (
    silence, guess, plan, compute, hoard, prepare, burden,
)  # fmt: skip


async def _on_and_on(abuse: Callable[[int, int], Awaitable[None]], ports: tuple[int, int]) -> None:
    while True:
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            await abuse(*ports)
        await asyncio.sleep(PAUSE_SECONDS)


async def main() -> None:
    http_port, pg_port = int(sys.argv[1]), int(sys.argv[2])
    chosen = [abuse for abuse in ABUSERS if abuse.__name__ in (sys.argv[3:] or [abuse.__name__])]
    await asyncio.gather(*(_on_and_on(abuse, (http_port, pg_port)) for abuse in chosen))


if __name__ == "__main__":
    asyncio.run(main())
