"""REST onto a node in memory: a real server on a free loopback port, its loop on a thread.

with HttpDoor() as door:
    door.sql("SELECT 1")
    problem = door.refused("SELEC", status=400)
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx2

from tailrace.api.http.server import HttpOptions, HttpServer
from tailrace.api.node import Node, NodeOptions

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
MIRROR_PATIENCE_SECONDS = 20.0

T = TypeVar("T")
Body = bytes | Iterable[bytes]


class HttpDoor:
    """A client, and the server that it talks to."""

    def __init__(
        self,
        options: HttpOptions | None = None,
        *,
        trust: bool = True,
        node: NodeOptions | None = None,
        path: Path | str = ":memory:",
    ) -> None:
        self._path = path
        self._node_options = node or NodeOptions()
        self._options = options or HttpOptions(trust=trust)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._ready: Future[Node] = Future()
        self._server: HttpServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30.0)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        with self._listener:
            try:
                node = await Node.open(self._path, self._node_options)
            except BaseException as error:
                self._ready.set_exception(error)
                return
            server = self._server = HttpServer(node, self._listener, self._options)
            try:
                self._ready.set_result(node)
                await server.run()
            finally:
                await server.close()
                await node.close()

    @property
    def node(self) -> Node:
        return self._ready.result()

    def call(self, function: Any, *arguments: Any) -> None:
        """Runs a plain function in the server's loop, and waits for it."""
        assert self._loop is not None

        async def run() -> None:
            function(*arguments)

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for a coroutine."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def post(self, path: str, body: object) -> httpx2.Response:
        return self.client.post(path, json=body)

    def sql(self, text: str, *params: object) -> list[dict[str, Any]]:
        """The results of all statements."""
        answer = self.post("/v1/sql", {"sql": text, "params": params})
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def rows(self, text: str, *params: object) -> list[list[Any]]:
        rows: list[list[Any]] = self.sql(text, *params)[-1]["rows"]
        return rows

    def refused(self, text: str, *params: object, **options: object) -> dict[str, Any]:
        """The problem document that a text must end in."""
        return problem_of(self.post("/v1/sql", {"sql": text, "params": params, **options}))

    def load(self, table: str, kind: str, body: Body, **query: str) -> httpx2.Response:
        return self.client.post(
            f"/v1/tables/{table}/rows", content=body, params=query, headers={"content-type": kind}
        )

    def mirror_rows(self, mirror: str, text: str) -> list[list[Any]]:
        answer = self.post("/v1/mirrors/sql", {"mirror": mirror, "sql": text})
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["rows"]
        return rows

    def wait_for_mirror(self, mirror: str) -> None:
        assert self._loop is not None
        wait = self.node.wait_for_mirror(mirror, None)
        asyncio.run_coroutine_threadsafe(wait, self._loop).result(MIRROR_PATIENCE_SECONDS)

    def __enter__(self) -> HttpDoor:
        self._thread.start()
        self._ready.result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        if self._server is not None:
            self._server.stop()
        self._thread.join()


def problem_of(answer: httpx2.Response) -> dict[str, Any]:
    """A problem document, whose status is the answer's."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == answer.status_code >= 400, answer.text
    return problem
