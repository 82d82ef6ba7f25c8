"""The node under siege: `python -m tests.fuzz.besieged_node FOLDER [--trust]`

It is a process of its own, as a server is, so that its memory and the steps of its loop are its own
too, and its collector walks none of the fuzzer's objects. It writes its `Doors`, and an answer to
each `Question`, as a line of JSON. At the end of its input it ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from benchmarks.loop_steps import worst_step
from tailrace.api.http.server import HttpOptions, HttpServer
from tailrace.api.loop_steps import LoopSteps
from tailrace.api.node import Node
from tailrace.api.pgwire import PostgresOptions, serve_postgres
from tailrace.api.pgwire.authentication import Method
from tailrace.api.rpc import JoinToken
from tailrace.kvlayer.process.tuned_process import tuned_process

TOKEN = "the token of this node"
PASSWORD = "x"
MIRROR = "mine.duckdb"
REPLICA = "copied"

OBJECTS = (
    f"CREATE USER boss PASSWORD '{PASSWORD}'; GRANT admin TO boss;"
    f"CREATE USER ada PASSWORD '{PASSWORD}';"
    "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING);"
    "CREATE TABLE mine (id INT8 PRIMARY KEY, at INT8);"
    f"CREATE CHANGEFEED FOR TABLE mine INTO 'duckdb:///{MIRROR}';"
    f"CREATE KEYSPACE {REPLICA} WITH (role = 'replica')"
)


class Doors(NamedTuple):
    """Where the node's process can be reached."""

    pid: int
    http: int
    postgres: int
    rpc: int


Question = Literal["steps", "settle"]
"""One line of the input. `steps` asks for the longest step since it was asked last; `settle` waits
until the mirror holds all that is committed, and asks for the faults that nothing handled."""


def main() -> None:
    parser = ArgumentParser(description="a node under siege")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trust", action="store_true")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # clients that hang up are no news
    logging.getLogger("tailrace.loop").setLevel(logging.INFO)  # each long step, and what it did
    asyncio.run(_serve(arguments.folder, arguments.trust))


async def _serve(folder: Path, trust: bool) -> None:
    faults: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(repr(context)))
    http, postgres = _listener(), _listener()
    method = Method.TRUST if trust else Method.SCRAM
    node = await Node.open(folder)
    session = node.session()
    await session.execute(OBJECTS)
    await session.close()
    rpc_port = await node.serve_nodes("127.0.0.1", 0, JoinToken(TOKEN))
    server = HttpServer(node, http, HttpOptions(trust=trust))
    async with serve_postgres(node, postgres, PostgresOptions(method=method)):
        running = asyncio.create_task(server.run())
        with tuned_process(), LoopSteps().watched(loop), worst_step(loop) as worst:
            _write(Doors(os.getpid(), _port(http), _port(postgres), rpc_port))
            while question := await asyncio.to_thread(sys.stdin.readline):
                if question == "settle\n":
                    await node.wait_for_mirror(MIRROR, None)
                    _write(faults)
                else:
                    _write(worst)
                    worst.cpu_ms = worst.wall_ms = 0.0
        server.stop()
        await running
        await server.close()
    await node.close()


def _write(line: object) -> None:
    print(msgspec.json.encode(line).decode(), flush=True)


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


if __name__ == "__main__":
    main()
