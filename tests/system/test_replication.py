"""A replication between two servers, of which each is killed under load; then the main is lost.

What the clients were answered is in the replica, at the timestamps that they were given.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

import httpx2
import pytest

from tailrace.kvlayer.clock import Timestamp, format_timestamp, parse_timestamp
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

KEYS = "/v1/keyspaces/ks/keys"
PATIENCE_SECONDS = 30.0


class Writer(Thread):
    """Puts one key after the other, and remembers what was acknowledged."""

    def __init__(self, server: ServerProcess, stop: Event) -> None:
        super().__init__()
        self.acknowledged: dict[str, list[tuple[Timestamp, bytes]]] = {}
        self._server = server
        self._stopped = stop

    def run(self) -> None:
        number = 0
        with httpx2.Client(timeout=5.0) as client:
            while not self._stopped.is_set():
                number += 1
                key, value = f"k{number % 50}", b"%d" % number
                try:
                    answer = client.put(f"{self._server.url}{KEYS}/{key}", content=value)
                    at = parse_timestamp(answer.json()["timestamp"])
                except (httpx2.HTTPError, KeyError, ValueError):
                    time.sleep(0.05)  # it was killed
                    continue
                self.acknowledged.setdefault(key, []).append((at, value))


def resolved(server: ServerProcess) -> Timestamp:
    text = server.rows("SHOW KEYSPACES")[0][-1]
    return Timestamp(0) if text is None else parse_timestamp(str(text))


def wait_resolved(server: ServerProcess, until: Timestamp) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while resolved(server) < until:
        assert time.monotonic() < deadline, "the replica does not catch up"
        time.sleep(0.1)


def test_each_side_is_killed_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with ExitStack() as stack:
        main = stack.enter_context(ServerProcess(tmp_path / "main"))
        recovery = stack.enter_context(ServerProcess(tmp_path / "recovery"))
        port, main_port = recovery.port, main.port
        main.sql("CREATE KEYSPACE ks")
        main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://127.0.0.1:{port}/ks'")
        stop = Event()
        writer = Writer(main, stop)
        writer.start()
        try:
            time.sleep(1.0)
            recovery.kill()
            time.sleep(0.5)
            recovery.start(port=port)
            time.sleep(1.0)
            main.kill()
            main.start(port=main_port)
            time.sleep(1.0)
        finally:
            stop.set()
            writer.join()
        last = max(versions[-1][0] for versions in writer.acknowledged.values())
        wait_resolved(recovery, last)
        assert main.rows("VERIFY REPLICATION r") == []
        main.kill()  # for good
        ((checkpoint,),) = recovery.rows("ALTER KEYSPACE ks PROMOTE")
        assert parse_timestamp(str(checkpoint)) >= last
        for key, versions in writer.acknowledged.items():
            for at, value in versions[-20:]:
                asked = {"at": format_timestamp(at)}
                found = recovery.client.get(f"{recovery.url}{KEYS}/{key}", params=asked)
                assert found.content == value, (key, at)
        put = recovery.client.put(f"{recovery.url}{KEYS}/k1", content=b"after")
        assert parse_timestamp(put.json()["timestamp"]) > last
        assert recovery.client.get(f"{recovery.url}{KEYS}/k1").content == b"after"


def test_a_dead_nodes_tasks_are_claimed_by_others(tmp_path: Path) -> None:
    with ExitStack() as stack:
        main = stack.enter_context(
            ServerProcess(tmp_path / "main", "--rpc-port", "0", "--insecure")
        )
        token = tmp_path / "main" / "join.token"
        joining = ("--join", main.rpc_address, "--join-token", str(token), "--insecure")
        node = stack.enter_context(ServerProcess(tmp_path / "node", *joining))
        recovery = stack.enter_context(ServerProcess(tmp_path / "recovery"))
        main.sql("CREATE KEYSPACE ks")
        main.sql("ALTER KEYSPACE ks SPLIT AT 'k25'")
        main.sql(
            f"CREATE REPLICATION r FOR KEYSPACE ks INTO 'tailrace://127.0.0.1:{recovery.port}/ks' "
            "WITH (workers = 2)"
        )

        def nodes(*, until: set[object]) -> None:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while (found := {row[4] for row in main.rows("SHOW REPLICATION r TASKS")}) != until:
                assert time.monotonic() < deadline, found
                time.sleep(0.05)

        nodes(until={1, 2})
        stop = Event()
        writer = Writer(main, stop)
        writer.start()
        try:
            for asked in (main, node):  # one of the tasks runs on the other node
                assert asked.rows("VERIFY REPLICATION r") == []
            node.kill()
            nodes(until={1})
        finally:
            stop.set()
            writer.join()
        wait_resolved(recovery, max(found[-1][0] for found in writer.acknowledged.values()))
        assert main.rows("VERIFY REPLICATION r") == []
