"""An HTTP server that can be told to be slow, to refuse, and to lose its answers."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wsgi import get_input_stream

Application = Callable[[Any, Callable[..., Any]], Iterable[bytes]]

OF_A_CONNECTION = {"connection", "expect", "keep-alive", "transfer-encoding"}
"""Headers that a gateway does not pass on."""


class FaultyServer:
    """A WSGI application on a port of this machine.

    Of its answers a share of `refuse` is 503, `lose` is lost after the request was carried out,
    `vanish` is a connection that ends in mid-request, and `delay` seconds pass before each request
    is looked at. `fault_count` counts them. With `spare_bodies` no connection ends
    around a request that has a body.
    """

    def __init__(
        self, application: Application, seed: int = 0, *, spare_bodies: bool = False
    ) -> None:
        self.refuse = self.lose = self.vanish = self.delay = 0.0
        self.fault_count = 0
        self._random = random.Random(seed)
        self._application = application
        self._spare_bodies = spare_bodies
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=_Handler
        )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _answer(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.delay:
            time.sleep(self.delay)
        lot = self._random.random()
        spared = self._spare_bodies and int(environ.get("CONTENT_LENGTH") or 0) > 0
        if lot < self.vanish and not spared:
            return self._hang_up(environ)
        if lot < self.vanish + self.refuse:
            self.fault_count += 1
            start_response("503 Slow Down", [("Content-Length", "0"), ("Connection", "close")])
            return [b""]
        answer = self._application(environ, start_response)
        if lot < self.vanish + self.refuse + self.lose and not spared:
            return self._hang_up(environ)
        return answer

    def _hang_up(self, environ: Any) -> Iterable[bytes]:
        """Ends the connection by a reset."""
        self.fault_count += 1
        handler: WSGIRequestHandler = environ["tests.handler"]
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True
        raise ConnectionError("told to hang up")


class FaultyGateway(FaultyServer):
    """Passes requests on to the server at `port`, with faults of its own."""

    def __init__(self, port: int, seed: int = 0, *, spare_bodies: bool = False) -> None:
        super().__init__(self._pass_on, seed, spare_bodies=spare_bodies)
        self._target = port

    def _pass_on(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = get_input_stream(environ).read()
        headers = {
            name: value
            for name, value in environ["tests.handler"].headers.items()
            if name.lower() not in OF_A_CONNECTION
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._target)
        connection.request(environ["REQUEST_METHOD"], environ["RAW_URI"], body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        kept = [each for each in answer.getheaders() if each[0].lower() not in OF_A_CONNECTION]
        if answer.chunked:
            kept.append(("Content-Length", str(len(content))))
        start_response(f"{answer.status} {answer.reason}", kept)
        return [content]


class _Handler(WSGIRequestHandler):
    def make_environ(self) -> Any:
        """With the connection, and the headers as they came: an environment knows no "_" in their
        names."""
        return {**super().make_environ(), "tests.handler": self}

    def handle_expect_100(self) -> bool:
        """Leaves "100 Continue" to werkzeug, which says it too: Azure's client takes one only."""
        return True

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing: what a test asserts tells more."""
