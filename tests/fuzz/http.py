"""The HTTP door: requests for each route of its own document, with made-up values, and damaged."""

from __future__ import annotations

import asyncio
import json
import re
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from random import Random

import msgspec

from tailrace.kvlayer.clock import timestamp_at
from tailrace.kvlayer.keys import encode_bytes
from tailrace.kvlayer.raw.entry import encode_entry

from .besieged import PATIENCE_SECONDS, SOURCE, Besieged
from .besieged_node import PASSWORD, REPLICA

REQUESTS_A_CONNECTION = 8

ENDLESS = re.compile(r"/events$|/rangefeed$")
"""Streams without an end, of which a connection sees the head at most."""

SPARED = re.compile(r"^/v1/compare")
"""What replays a day of flights, as an admin."""

_SERVER_ERROR = re.compile(rb"^HTTP/1\.1 5", re.MULTILINE)

VALUES = (
    "t", "mine", REPLICA, "nosuch", "0", "1", "-1", "9" * 30, "%00", "..%2f..%2fetc", "é", "a b",
    "'",
)  # fmt: skip
TEXTS = (
    "SELECT 1", "SELECT * FROM t", "SELEC", "", "SELECT 1; SELECT 2", "INSERT INTO t VALUES (1)",
    "SELECT $1::INT8", "SHOW JOBS", "BEGIN", "SELECT 1/0", "SELECT repeat('x', 100000)",
)  # fmt: skip
JSON_VALUES: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1e400,
    "x",
    "ada",
    [],
    [1],
    {},
    2**70,
    "\ud800",
    "x" * 5000,
)
ODD_FIELDS: tuple[object, ...] = (None, True, -1, 1 << 63, b"", b"\x07", b"\xff" * 9, [], "x")
INGESTS = 0.1
"""The part of requests that send entries to a replica, as stores do."""

KINDS = ("application/json", "text/plain", "application/x-ndjson", "", "application/octet-stream")


class State(Enum):
    """Who asks."""

    NOBODY = "nobody"
    WRONG = "wrong"  # with a password or token that is nobody's
    USER = "user"  # without any right
    ADMIN = "admin"


class Fuzzer:
    """Makes requests from one seed, for the routes of an OpenAPI document."""

    def __init__(self, seed: int, routes: Sequence[tuple[str, str]]) -> None:
        self.random = Random(seed)
        self._routes = routes

    def request(self, state: State) -> bytes:
        pick = self.random.choice
        if self.random.random() < INGESTS:
            return self._ingest(state)
        method, path = pick(self._routes)
        if self.random.random() < 0.05:
            method = pick(("GET", "PUT", "PATCH", "OPTIONS", "HEAD", "BREW"))
        path = re.sub(r"\{\w+\}", lambda _: pick(VALUES), path)
        if self.random.random() < 0.3:
            path += "?" + "&".join(
                f"{pick(('as_of', 'database', 'cut', 'after', 'on_conflict', 'x'))}={pick(VALUES)}"
                for _ in range(self.random.randrange(3))
            )
        body = b"" if method == "GET" else self._body()
        headers: list[str] = []
        if kind := pick(KINDS):
            headers.append(f"Content-Type: {kind}")
        if self.random.random() < 0.3:
            headers.append(f"Accept: {pick((*KINDS[:3], '*/*', 'x'))}")
        return self._sent(state, f"{method} {path}", headers, body)

    def _sent(self, state: State, asked: str, headers: Sequence[str], body: bytes) -> bytes:
        length = f"Content-Length: {len(body)}"
        lines = [f"{asked} HTTP/1.1", "Host: 127.0.0.1", length, *headers]
        lines += self._credentials(state)
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def _ingest(self, state: State) -> bytes:
        """Entries as they are stored, in MessagePack; half of the requests have an odd field."""
        random = self.random
        now = timestamp_at(unix_us=time.time_ns() // 1000)
        texts = [random.randbytes(random.randrange(20)) for _ in range(random.randrange(4))]
        keys: list[object] = [encode_bytes(text) for text in texts]
        bodies: list[object] = [encode_entry(text) for text in texts]
        timestamps: list[object] = [now + number for number in range(len(texts))]
        epoch = random.choice((0, 1, 1, 1, 2))
        order: list[object] = ["ingest", SOURCE, epoch, 9, keys, bodies, timestamps]
        if random.random() < 0.5:
            part = random.choice((keys, bodies, timestamps, order))
            part[random.randrange(len(part) + 1) :] = [random.choice(ODD_FIELDS)]
        body = msgspec.msgpack.encode(order)
        if random.random() < 0.1:
            body = body[: random.randrange(len(body))]
        kind = "Content-Type: application/msgpack"
        return self._sent(state, f"POST /v1/keyspaces/{REPLICA}/ingest", [kind], body)

    def _credentials(self, state: State) -> list[str]:
        match state:
            case State.NOBODY:
                return []
            case State.WRONG:
                wrong = self.random.choice(("Bearer nosuch", "Basic !!", "Basic YTpi", "Digest x"))
                return [f"Authorization: {wrong}"]
            case State.USER | State.ADMIN:
                name = "ada" if state is State.USER else "boss"
                return [f"Authorization: Basic {b64encode(f'{name}:{PASSWORD}'.encode()).decode()}"]

    def _body(self) -> bytes:
        pick = self.random.choice
        if self.random.random() < 0.1:
            return self.random.randbytes(self.random.randrange(60))
        fields = ("sql", "params", "database", "user", "password", "mirror", "transaction", "at",
                  "upto", "value", "statement", "isolation", "idle_seconds", "ttl_seconds",
                  "tables", "into", "options")  # fmt: skip
        made = {name: pick(JSON_VALUES) for name in self.random.sample(fields, 4)}
        if self.random.random() < 0.6:
            made["sql"] = pick(TEXTS)
        return json.dumps(made, allow_nan=True).encode()

    def damaged(self, request: bytes) -> bytes:
        if not request:
            return request
        data = bytearray(request)
        at = self.random.randrange(len(data))
        match self.random.randrange(12):
            case 0:
                data[at] = self.random.randrange(256)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 9))
            case 3:
                data = data.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX")
            case _:
                pass
        return bytes(data)


def routes_of(document: dict[str, dict[str, dict[str, object]]]) -> list[tuple[str, str]]:
    """The routes that can be asked without end, as (method, path)."""
    return [
        (method.upper(), path)
        for path, methods in document["paths"].items()
        for method in methods
        if not ENDLESS.search(path) and not SPARED.search(path)
    ]


async def fuzz(besieged: Besieged, state: State, fuzzer: Fuzzer) -> None:
    """One connection with some requests, one behind the other without waiting."""
    reader, writer = await asyncio.open_connection("127.0.0.1", besieged.doors.http)
    for _ in range(REQUESTS_A_CONNECTION):
        writer.write(fuzzer.damaged(fuzzer.request(state)))
    if fuzzer.random.random() < 0.2:
        writer.transport.abort()
        return
    answers = b""
    with suppress(OSError):  # the server may hang up at any moment
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            answers = await reader.read()
    found = _SERVER_ERROR.search(answers)
    assert found is None, answers[found.start() : found.start() + 2000] if found else b""
    writer.close()
