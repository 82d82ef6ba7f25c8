"""A node with its three doors open, a fed mirror, and what its loop is seen to do meanwhile."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from resource import getpagesize
from types import TracebackType
from typing import Any

import httpx2

from benchmarks.loop_steps import WorstStep, worst_step
from tailrace.api.http.server import HttpOptions, HttpServer
from tailrace.api.node import Node
from tailrace.api.pgwire import PostgresOptions, serve_postgres
from tailrace.api.pgwire.authentication import Method
from tailrace.api.rpc import JoinToken
from tailrace.kvlayer.tuned_process import tuned_process

TOKEN = "the token of this node"
PASSWORD = "x"
MIRROR = "mine.duckdb"
REPLICA = "copied"
SOURCE = "another store"
"""What the replica's source calls itself."""

PATIENCE_SECONDS = 60.0


@dataclass(slots=True)
class Observed:
    """What was seen of a node under siege: `memory` in bytes, at each look."""

    memory: list[int] = field(default_factory=list)
    faults: list[object] = field(default_factory=list)
    worst: WorstStep = field(default_factory=WorstStep)
    rows: int = 0

    @property
    def growth(self) -> float:
        """Memory over the last tenth of the looks by that over the second tenth."""
        tenth = max(1, len(self.memory) // 10)
        early, late = self.memory[tenth : 2 * tenth], self.memory[-tenth:]
        return (sum(late) / len(late)) / (sum(early) / len(early)) if early else 1.0


class Besieged:
    """The node, on a loop and a thread of its own. The good client works with each `look`."""

    def __init__(self, folder: Path, *, trust: bool) -> None:
        """With `trust` nobody is asked who he is, but at the door for nodes."""
        self.seen = Observed()
        self._folder = folder
        self._trust = trust
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run)
        self._listeners = [_listener(), _listener()]
        self.http_port, self.pg_port = (each.getsockname()[1] for each in self._listeners)
        self.rpc_port = 0
        self._client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.http_port}", timeout=30.0, auth=("boss", PASSWORD)
        )

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(lambda _, context: self.seen.faults.append(context))
        self._stop = asyncio.Event()
        http, postgres = self._listeners
        method = Method.TRUST if self._trust else Method.SCRAM
        try:
            node = await Node.open(self._folder)
            session = node.session()
            await session.execute(
                f"CREATE USER boss PASSWORD '{PASSWORD}'; GRANT admin TO boss;"
                f"CREATE USER ada PASSWORD '{PASSWORD}';"
                "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING);"
                "CREATE TABLE mine (id INT8 PRIMARY KEY, at INT8);"
                f"CREATE CHANGEFEED FOR TABLE mine INTO 'duckdb:///{MIRROR}';"
                f"CREATE KEYSPACE {REPLICA} WITH (role = 'replica')"
            )
            await session.close()
            self.rpc_port = await node.serve_nodes("127.0.0.1", 0, JoinToken(TOKEN))
        except BaseException as error:
            self._ready.set_exception(error)
            return
        server = HttpServer(node, http, HttpOptions(trust=self._trust))
        async with serve_postgres(node, postgres, PostgresOptions(method=method)):
            running = asyncio.create_task(server.run())
            self._node = node
            with tuned_process(), worst_step(self._loop) as self.seen.worst:
                self._ready.set_result(None)
                await self._stop.wait()
            server.stop()
            await running
            await server.close()
        await node.close()

    def look(self) -> None:
        """The good client commits a row and reads it back; memory is noted."""
        number = self.seen.rows
        self._sql("INSERT INTO mine VALUES ($1, $1)", number)
        assert self._sql("SELECT at FROM mine WHERE id = $1", number) == [[number]]
        self.seen.rows = number + 1
        self.seen.memory.append(_resident_bytes())

    def _sql(self, text: str, *parameters: object) -> list[list[Any]]:
        answer = self._client.post("/v1/sql", json={"sql": text, "params": parameters})
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["results"][-1].get("rows", [])
        return rows

    def check(self) -> None:
        """The mirror holds each row that was committed, and nothing failed."""
        wait = self._node.wait_for_mirror(MIRROR, None)
        asyncio.run_coroutine_threadsafe(wait, self._loop).result(PATIENCE_SECONDS)
        asked = {"mirror": MIRROR, "sql": "SELECT count(*), count(DISTINCT id) FROM mine"}
        answer = self._client.post("/v1/mirrors/sql", json=asked)
        assert answer.json()["rows"] == [[self.seen.rows, self.seen.rows]], answer.text
        assert not self.seen.faults, self.seen.faults[:3]

    def __enter__(self) -> Besieged:
        self._thread.start()
        self._ready.result(PATIENCE_SECONDS)
        opening = {"source": SOURCE}
        opened = self._client.post(f"/v1/keyspaces/{REPLICA}/ingest/open", json=opening)
        assert opened.status_code == 200, opened.text
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        for listener in self._listeners:
            listener.close()


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
