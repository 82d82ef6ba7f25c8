"""What each step of the extended protocol takes, one client, beside PostgreSQL 15.

    python -m benchmarks.protocol_steps [--rounds 500]

Each message is sent with a Flush and answered before the next one is. Metrics are medians in
microseconds, `…_postgres` those of PostgreSQL:

    parse_new       Parse of a text that nobody has sent: parsing, typing, planning
    parse_known     Parse of a text that the server has seen: what its plan cache is worth
    simple_new      a Query whose text nobody has sent, but for its number others like it
    select_bind, select_execute, select_sync     a point SELECT
    update_bind, update_execute, update_sync     a single-row UPDATE; its commit is in Execute or
                                                 in Sync, as the server finds right
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from struct import pack, unpack

from benchmarks.outcome import print_outcome
from benchmarks.servers import postgres_installed, postgres_server, tailrace_server

ROWS = 1000
FLUSH = b"H\0\0\0\x04"
SYNC = b"S\0\0\0\x04"


class Wire:
    """A connection that is greeted, and the clock of its answers."""

    def __init__(self, port: int, database: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        body = f"user\0root\0database\0{database}\0\0".encode()
        self._socket.sendall(pack("!II", len(body) + 8, 196608) + body)
        self._until(b"Z")

    def close(self) -> None:
        self._socket.close()

    def timed(self, data: bytes, answer: bytes) -> float:
        """Microseconds from sending until the message of kind `answer` is here."""
        began = time.perf_counter()
        self._socket.sendall(data)
        self._until(answer)
        return (time.perf_counter() - began) * 1e6

    def query(self, text: str) -> float:
        return self.timed(message(b"Q", text.encode() + b"\0"), b"Z")

    def _until(self, kind: bytes) -> None:
        while True:
            found, body = self._message()
            if found == b"E":
                raise RuntimeError(f"the server says {body!r}")
            if found == kind:
                return

    def _message(self) -> tuple[bytes, bytes]:
        while len(self._buffer) < 5 or len(self._buffer) < 1 + unpack("!I", self._buffer[1:5])[0]:
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionError("the server has hung up")
            self._buffer += received
        end = 1 + unpack("!I", self._buffer[1:5])[0]
        found, self._buffer = self._buffer[:end], self._buffer[end:]
        return found[:1], found[5:]


def message(kind: bytes, body: bytes) -> bytes:
    return kind + pack("!I", len(body) + 4) + body


def parse(name: str, text: str) -> bytes:
    return message(b"P", f"{name}\0{text}\0".encode() + pack("!HI", 1, 20)) + FLUSH


def bind(name: str, key: int) -> bytes:
    body = f"\0{name}\0".encode() + pack("!HHHIqH", 1, 1, 1, 8, key, 0)
    return message(b"B", body) + FLUSH


EXECUTE = message(b"E", b"\0\0\0\0\0") + FLUSH
TEXTS = {
    "select": "SELECT id, note, n FROM steps WHERE id = $1",
    "update": "UPDATE steps SET n = n + 1 WHERE id = $1",
}


@contextmanager
def connected(port: int, database: str) -> Iterator[Wire]:
    wire = Wire(port, database)
    try:
        yield wire
    finally:
        wire.close()


def measure(port: int, database: str, rounds: int) -> dict[str, float]:
    """Medians of one server, in microseconds."""
    with connected(port, database) as wire:
        wire.query("CREATE TABLE steps (id INT8 PRIMARY KEY, note TEXT, n INT8 NOT NULL)")
        rows = ", ".join(f"({number}, 'note {number}', 0)" for number in range(ROWS))
        wire.query(f"INSERT INTO steps VALUES {rows}")
        taken: dict[str, list[float]] = {}
        for number in range(rounds):
            new = f"SELECT id AS c{number}, note, n FROM steps WHERE id = $1"
            taken.setdefault("parse_new", []).append(wire.timed(parse("", new), b"1"))
            wire.timed(SYNC, b"Z")
            taken.setdefault("parse_known", []).append(wire.timed(parse("", new), b"1"))
            wire.timed(SYNC, b"Z")
            text = f"SELECT id, note, n FROM steps WHERE id = {number + 100_000}"
            taken.setdefault("simple_new", []).append(wire.query(text))
        for name, text in TEXTS.items():
            wire.timed(parse(name, text) + SYNC, b"Z")
            for number in range(rounds):
                steps = {"bind": (bind(name, number % ROWS), b"2"), "execute": (EXECUTE, b"C")}
                for step, (data, answer) in {**steps, "sync": (SYNC, b"Z")}.items():
                    taken.setdefault(f"{name}_{step}", []).append(wire.timed(data, answer))
    return {name: median(values) for name, values in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="tailrace-steps-") as name:
        folder = Path(name)
        with tailrace_server(folder) as (_, port):
            metrics = measure(port, "defaultdb", rounds)
        if postgres_installed():
            with postgres_server(folder) as port:
                beside = measure(port, "postgres", rounds)
            metrics |= {f"{name}_postgres": value for name, value in beside.items()}
    print_outcome("protocol_steps", metrics)


if __name__ == "__main__":
    main()
