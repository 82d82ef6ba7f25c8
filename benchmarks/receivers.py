"""Receivers for the sinks' benchmark, each in a process of its own.

    python -m benchmarks.receivers webhook | stalled | kafka

`webhook` answers 200 to every request once it has read it, and looks into none; `stalled` takes
connections and reads nothing; `kafka` is librdkafka's mock cluster of one broker, which keeps
records in memory. Each prints its address, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
HEAD_BYTES_MAX = 1 << 16


@contextmanager
def receiver(kind: str) -> Iterator[str]:
    """Starts one, and gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.receivers", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            writer.write(ANSWER)
    except asyncio.IncompleteReadError:
        writer.close()


async def _stand_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await writer.wait_closed()


async def _serve(kind: str) -> None:
    serve = _answer if kind == "webhook" else _stand_still
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
    host, port = server.sockets[0].getsockname()
    print(f"{host}:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    (kind,) = sys.argv[1:]
    if kind != "kafka":
        asyncio.run(_serve(kind))
        return
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=10).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
