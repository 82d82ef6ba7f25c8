"""Two real processes on one store: leases, feeds and jobs when one of them dies or stands still."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, rmtree
from threading import Thread
from typing import Any

import psycopg
import pytest

from tests.harness.pg_door import WireClient, WireError
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SESSION_SECONDS = 5.0
"""server.liveness.ttl: how long a node that says nothing still counts."""

LOCK = "ALTER TABLE t SET (changefeed_optimized = true)"
UNLOCK = "ALTER TABLE t SET (changefeed_optimized = false)"
ADOPTERS = "SELECT claim_node_id FROM system.jobs WHERE id = $1"


@contextmanager
def two_nodes(folder: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    with ServerProcess(folder / "store", "--rpc-port", "0", "--insecure") as first:
        token = folder / "store" / "join.token"
        assert token.stat().st_mode & 0o077 == 0
        joining = ("--join", first.rpc_address, "--join-token", str(token), "--insecure")
        with ServerProcess(folder / "node", *joining) as second:
            first.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            yield first, second


@contextmanager
def using_the_table(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    """A client in a transaction that holds a lease on the table's newest version."""
    client = psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", sslmode="disable"
    )
    client.execute("SELECT * FROM t")
    try:
        yield client
    finally:
        client.close()


class Altering(Thread):
    """A schema change that runs beside the test. `ended` is when its statement returned."""

    def __init__(self, server: ServerProcess, statement: str) -> None:
        super().__init__()
        self._url, self._statement = server.url, statement
        self.ended = 0.0
        self.answer: Any = None
        self.start()

    def run(self) -> None:
        import httpx2

        with httpx2.Client(timeout=60) as client:
            self.answer = client.post(f"{self._url}/v1/sql", json={"sql": self._statement}).json()
        self.ended = time.monotonic()


def wait_until_waiting(server: ServerProcess) -> list[Any]:
    """The holder that a schema change of that node waits for."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        rows = server.rows(
            "SELECT holder_node_id, holder_version FROM tailrace_internal.lease_waits"
        )
        if rows:
            return list(rows[0])
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def test_a_joined_node_reads_and_writes_the_store(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        second.sql("INSERT INTO t VALUES (1, 'from the second')")
        assert first.rows("SELECT * FROM t") == [[1, "from the second"]]
        first.sql("UPDATE t SET v = 'from the first' WHERE k = 1")
        assert second.rows("SELECT * FROM t") == [[1, "from the first"]]
        nodes = "SELECT node_id FROM tailrace_internal.nodes WHERE live ORDER BY 1"
        assert first.rows(nodes) == second.rows(nodes) == [[1], [2]]
        assert second.terminate() == 0
        second.start()
        assert first.rows(nodes) == [[1], [2]], "its folder makes it the same node"
        assert second.terminate() == 0
        assert first.terminate() == 0
        assert first.errors() + second.errors() == ""


def test_a_schema_change_goes_on_when_the_other_lets_go(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        with using_the_table(second) as client:
            altering = Altering(first, LOCK)
            assert wait_until_waiting(first) == [2, 1]
            client.rollback()
            released = time.monotonic()
            altering.join(30)
        assert "results" in altering.answer, altering.answer
        assert altering.ended - released < 0.1, altering.ended - released


def test_a_killed_nodes_leases_end_with_its_session(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        with using_the_table(second):
            altering = Altering(first, LOCK)
            wait_until_waiting(first)
            second.kill()
            killed = time.monotonic()
            altering.join(30)
        assert "results" in altering.answer, altering.answer
        assert altering.ended - killed < SESSION_SECONDS + 1.0


def test_a_killed_nodes_locks_are_free_at_once(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        first.sql("INSERT INTO t VALUES (1, 'a')")
        with using_the_table(second) as client:
            client.execute("UPDATE t SET v = 'b' WHERE k = 1")
            second.kill()
            killed = time.monotonic()
            first.sql("UPDATE t SET v = 'c' WHERE k = 1")
            assert time.monotonic() - killed < 2.0
        assert first.rows("SELECT v FROM t") == [["c"]]


def test_a_stopped_node_progresses_no_job_that_another_adopted(tmp_path: Path) -> None:
    """It wakes up after its session's end, with its feed claimed by the other."""
    with two_nodes(tmp_path) as (first, second):
        job = feed_claimed_by(second, 2)
        second.send(signal.SIGSTOP)
        assert wait_for_claim(first, job, 2) == 1
        epoch = first.rows("SELECT epoch FROM system.jobs WHERE id = $1", job)[0][0]
        second.send(signal.SIGCONT)
        first.sql("INSERT INTO t VALUES (1, 'after')")
        time.sleep(2)
        assert first.rows("SELECT claim_node_id, epoch FROM system.jobs WHERE id = $1", job) == [
            [1, epoch]
        ]
        saved = first.rows("SELECT epoch FROM system.job_progress WHERE id = $1", job)
        assert saved in ([], [[epoch]])


def test_a_stopped_node_does_not_stop_schema_changes(tmp_path: Path) -> None:
    """Continued, it claims nothing of what it slept through, and takes the newest version."""
    with two_nodes(tmp_path) as (first, second):
        second.sql("INSERT INTO t VALUES (1, 'a')")
        second.send(signal.SIGSTOP)
        first.sql(LOCK)
        first.sql(UNLOCK)
        second.send(signal.SIGCONT)
        assert second.rows("SELECT v FROM t WHERE k = 1") == [["a"]]
        held = second.rows(
            "SELECT version FROM tailrace_internal.leases WHERE node_id = 2 AND live"
        )
        assert held == [[3]]


def feed_claimed_by(server: ServerProcess, node_id: int) -> int:
    """A feed that this node runs: either may take a new one, so until it is this one."""
    for _ in range(20):
        job = int(server.rows("CREATE CHANGEFEED FOR TABLE t INTO 'null://'")[0][0])
        if wait_for_claim(server, job, None) == node_id:
            return job
    raise AssertionError(f"node {node_id} never takes a feed")


def wait_for_claim(server: ServerProcess, job: int, other_than: int | None) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        [[node]] = server.rows(ADOPTERS, job)
        if node is not None and node != other_than:
            return int(node)
        time.sleep(0.05)
    raise AssertionError("nobody claims the job")


def test_a_killed_nodes_mirror_is_canceled_from_another(tmp_path: Path) -> None:
    """Its file stays as it is; the protected timestamp goes with the job."""
    with two_nodes(tmp_path) as (first, second):
        job = second.rows("CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb'")[0][0]
        mark = second.sql("INSERT INTO t VALUES (1, 'mirrored')")[0]["commit_timestamp"]
        second.wait_for_feeds(mark)
        second.kill()
        deadline = time.monotonic() + 30
        told = "SELECT running_status FROM [SHOW CHANGEFEED JOBS]"
        away = [["node 2, which ran it, is not there"]]
        while time.monotonic() < deadline and first.rows(told) != away:
            time.sleep(0.2)
        assert first.rows(told) == away
        first.sql(f"CANCEL JOB {job}")
        state = "SELECT state FROM system.finished_jobs WHERE id = $1"
        while time.monotonic() < deadline and first.rows(state, job) != [["canceled"]]:
            time.sleep(0.2)
        assert first.rows(state, job) == [["canceled"]]
        assert (tmp_path / "node" / "mirrors" / "m.duckdb").exists()


def test_who_lacks_the_token_is_not_let_in(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "store", "--rpc-port", "0") as first:
        false = tmp_path / "false.token"
        false.write_text("0" * 64)
        false.chmod(0o600)
        joining = ServerProcess(
            tmp_path / "node", "--join", first.rpc_address, "--join-token", str(false)
        )
        with pytest.raises(AssertionError, match="the join token is not this one"):
            joining.start()
        false.chmod(0o644)
        with pytest.raises(AssertionError, match="can be read by others"):
            joining.start()
        joining.client.close()


def test_advisory_locks_are_the_stores_and_end_with_their_node(tmp_path: Path) -> None:
    with two_nodes(tmp_path) as (first, second):
        address: dict[str, Any] = {"host": "127.0.0.1", "user": "root", "dbname": "defaultdb"}
        with (
            psycopg.connect(port=first.pg_port, autocommit=True, **address) as here,
            psycopg.connect(port=second.pg_port, autocommit=True, **address) as there,
        ):
            there.execute("SELECT pg_advisory_lock(7)")
            assert first.rows("SELECT pg_try_advisory_lock(7)") == [[False]]
            waiting = Thread(target=lambda: here.execute("SELECT pg_advisory_lock(7)"))
            waiting.start()
            time.sleep(0.5)
            assert waiting.is_alive()
            second.kill()
            waiting.join(30)
            assert here.execute("SELECT pg_advisory_unlock(7)").fetchone() == (True,)


def test_a_node_whose_store_is_away_says_so(tmp_path: Path) -> None:
    """To statements, to who prepares them, and to who connects: none of it is an internal error."""
    with two_nodes(tmp_path) as (first, second):

        async def ask() -> list[str]:
            simple, extended = await wire_client(second), await wire_client(second)
            assert await simple.query("SELECT * FROM t") == []
            first.kill()
            told = []
            for statement in ("SELECT * FROM t", "INSERT INTO t VALUES (1)", "SHOW JOBS"):
                told.append(await refused_with(simple, [(b"Q", statement.encode() + b"\0")]))
            parse = b"\0SELECT * FROM t WHERE k = $1\0" + b"\0\0"
            told.append(await refused_with(extended, [(b"P", parse), (b"D", b"S\0"), (b"S", b"")]))
            newcomer = WireClient(*await asyncio.open_connection("127.0.0.1", second.pg_port))
            newcomer.startup(user="root")
            told.append(await refused_with(newcomer, []))
            for client in (simple, extended, newcomer):
                await client.close()
            return told

        assert set(asyncio.run(ask())) <= {"08006", "57P03"}
        assert "Traceback" not in second.errors()


def test_a_node_ends_when_its_store_was_put_back(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "store", "--rpc-port", "0") as store:
        assert store.terminate() == 0
    copytree(tmp_path / "store", tmp_path / "copy")
    with two_nodes(tmp_path) as (first, second):
        port = first.rpc_address.rpartition(":")[2]
        first.kill()
        rmtree(tmp_path / "store")
        (tmp_path / "copy").rename(tmp_path / "store")
        with ServerProcess(tmp_path / "store", "--rpc-port", port):
            assert second.wait() == 1
        told = second.errors()
        assert "the store does not answer" in told
        assert "put back from an older copy" in told
        assert "Traceback" not in told


async def wire_client(server: ServerProcess) -> WireClient:
    client = WireClient(*await asyncio.open_connection("127.0.0.1", server.pg_port))
    client.startup(user="root")
    await client.until_ready()
    return client


async def refused_with(client: WireClient, messages: Sequence[tuple[bytes, bytes]]) -> str:
    """The SQLSTATE of the error that answers."""
    for kind, body in messages:
        client.send(kind, body)
    while True:
        kind, body = await client.frame()
        if kind == b"E":
            error = WireError(body)
            if error.fields["S"] == "ERROR":
                await client.until_ready()
            return error.sqlstate
