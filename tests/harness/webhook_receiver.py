"""A receiver of webhooks: a server of the standard library, which shares no code with the sink."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Mapping
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any


class Fault(Enum):
    HANG = "the request is not answered"
    VANISH = "the connection breaks off before the answer, and nothing was taken"
    LOSE_ANSWER = "the connection breaks off behind a batch that was taken"
    HALF = "half of a batch is taken, and the answer is 500"
    BUSY = "429"
    FAIL = "503"
    CLOSE = "the connection is closed behind a good answer"


class WebhookReceiver:
    """Takes requests on loopback, and keeps what it took.

    `messages` are those of all payloads in the order of arrival, a resolved message among them as
    it came. A fault happens to a request with `chance`, chosen by `random`; `status` is answered to
    every request where it is not 200.
    """

    def __init__(
        self, *, certificate: tuple[Path, Path] | None = None, clients: Path | None = None
    ) -> None:
        """`certificate` and its key make it speak TLS; `clients` is what clients are trusted by."""
        self.messages: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self.chance = 0.0
        self.random = Random(0)
        self.faults: set[Fault] = set()
        self.status = 200
        self.words = ""
        self.answer_headers: dict[str, str] = {}
        self.bytes_max = 1 << 30
        self.refused: set[str] = set()
        """Names: a request with a row of such a name is answered with 422."""
        self._closed = threading.Event()
        self._lock = threading.Lock()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                receiver._handle(self)

            def log_message(self, format: str, *args: object) -> None:
                """Tests read what came, not a log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            if clients is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(clients)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> WebhookReceiver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        with self._lock:
            fault = self._fault()
            status = self._take(body, fault)
            self.headers.append(dict(request.headers))
            self.paths.append(request.path)
        if fault is Fault.HANG:
            self._closed.wait(10)
        if fault in (Fault.HANG, Fault.VANISH, Fault.LOSE_ANSWER):
            request.close_connection = True
            request.connection.shutdown(socket.SHUT_RDWR)
            return
        answer = b"" if status == 200 else (self.words or "as told").encode()
        request.send_response_only(status)
        for name, value in self.answer_headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer)
        if fault is Fault.CLOSE:
            request.close_connection = True

    def _fault(self) -> Fault | None:
        if self.random.random() >= self.chance:
            return None
        fault = self.random.choice(list(Fault))
        self.faults.add(fault)
        return fault

    def _take(self, body: bytes, fault: Fault | None) -> int:
        if self.status != 200:
            return self.status
        if len(body) > self.bytes_max:
            return 413
        document = json.loads(body)
        payload = [document]
        if "payload" in document:
            payload = document["payload"]
            assert document == {"payload": payload, "length": len(payload)}, document
            if any((each.get("after") or {}).get("name") in self.refused for each in payload):
                return 422
        status = {Fault.BUSY: 429, Fault.FAIL: 503, Fault.HALF: 500}.get(fault, 200)  # type: ignore[arg-type]
        if fault in (Fault.BUSY, Fault.FAIL, Fault.HANG, Fault.VANISH):
            payload = []
        elif fault is Fault.HALF:
            payload = payload[: len(payload) // 2]
        self.bodies.append(body)
        self.messages += payload
        return status
