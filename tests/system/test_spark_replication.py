"""A replication whose entries Spark sends: its application, on a cluster too, and both servers are
killed."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from tailrace.kvlayer.clock import Timestamp, format_timestamp, parse_timestamp
from tests.harness.server_process import ServerProcess
from tests.harness.spark_cluster import LOOPBACK, WORKER_PYTHON, SparkCluster
from tests.system.test_replication import KEYS, Writer, resolved

pytestmark = pytest.mark.system

DOCUMENT = (Path(__file__).parents[2] / "docs/raw.md").read_text()
PATIENCE_SECONDS = 600.0


def wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def documented(uri: str, master: str = "local[2]") -> str:
    """The statement of docs/raw.md, for another keyspace."""
    (found,) = re.findall(r"```sql\nCREATE REPLICATION abroad (.*);\n```", DOCUMENT)
    text = re.sub("'tailrace:[^']*'", f"'{uri}'", f"CREATE REPLICATION r {found}")
    text = text.replace("local[2]", master)
    asked = text.replace("KEYSPACE sessions", "KEYSPACE ks")
    return f"{asked[:-1]}, concurrency = 2, batch_size = 20, backoff_max = 0.5)"


def applications(name: str) -> list[int]:
    """The processes of the replication's application: its Python and its JVM."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended, or is no process
        if name.encode() in command:
            found.append(int(entry.name))
    return found


def caught_up(main: ServerProcess, recovery: ServerProcess, until: Timestamp) -> None:
    def reached() -> bool:
        (row,) = main.rows("SHOW REPLICATIONS")
        assert row[4] == "running", row
        return bool(recovery.rows("SHOW KEYSPACES")) and resolved(recovery) >= until

    wait(reached, "the replica does not catch up")


def check(recovery: ServerProcess, writer: Writer) -> None:
    """What was answered last of each key is there, at its timestamp."""
    for key, versions in writer.acknowledged.items():
        for at, value in versions[-10:]:
            asked = {"at": format_timestamp(at)}
            found = recovery.client.get(f"{recovery.url}{KEYS}/{key}", params=asked)
            assert found.content == value, (key, at, found.text)


def test_spark_sends_every_version_whatever_is_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        main = stack.enter_context(ServerProcess(tmp_path / "main"))
        recovery = stack.enter_context(ServerProcess(tmp_path / "recovery"))
        port, main_port = recovery.port, main.port
        main.sql("CREATE KEYSPACE ks")
        main.sql("ALTER KEYSPACE ks SPLIT AT 'k2', 'k35'")
        main.sql(
            "SELECT raw_put('ks', 'old', 'scanned'), raw_put('ks', 'brief', 'x', '1h'), "
            "raw_put('ks', 'gone', 'x'), raw_delete('ks', 'gone')"
        )
        text = documented(f"tailrace://127.0.0.1:{port}/ks")
        ((job_id,),) = main.rows(text)
        ((target, status),) = [row[3:5] for row in main.rows("SHOW REPLICATIONS")]
        assert (str(target).partition(":")[0], status) == ("spark+tailrace", "running")
        stop = Event()
        writer = Writer(main, stop)
        writer.start()
        try:
            wait(lambda: bool(writer.acknowledged), "nothing is written")
            first = next(iter(writer.acknowledged.values()))[0][0]
            caught_up(main, recovery, first)
            victims = applications(f"tailrace replication {job_id}")
            assert victims, "no application runs"
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            recovery.kill()
            recovery.start(port=port)
            caught_up(main, recovery, writer.acknowledged["k1"][-1][0])
            main.kill()
            main.start(port=main_port)
            wait(lambda: writer.is_alive(), "the writer has failed")
        finally:
            stop.set()
            writer.join()
        last = max(versions[-1][0] for versions in writer.acknowledged.values())
        caught_up(main, recovery, last)
        assert main.rows("VERIFY REPLICATION r") == []
        check(recovery, writer)
        (row,) = main.rows("SHOW REPLICATION r TASKS")
        assert row[9] > 0, row
        main.sql("SELECT raw_delete('ks', 'old')")
        now = parse_timestamp(str(main.rows("SELECT raw_put('ks', 'old', 'again')")[0][0]))
        caught_up(main, recovery, now)
        assert main.rows("VERIFY REPLICATION r") == []
        recovery.rows("ALTER KEYSPACE ks PROMOTE")
        main.sql("SELECT raw_put('ks', 'k1', 'too late')")
        wait(lambda: main.rows("SHOW REPLICATIONS")[0][4] == "failed", "the replication goes on")
        assert "was promoted" in str(main.rows("SHOW REPLICATIONS")[0][7])
        wait(lambda: not applications(f"tailrace replication {job_id}"), "it does not end")


def test_a_cluster_sends_and_goes_on_with_another_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has no Tailrace: each task's code came with the batch."""
    with ExitStack() as stack:
        cluster = stack.enter_context(SparkCluster(tmp_path / "cluster", workers=1))
        monkeypatch.setenv("SPARK_LOCAL_IP", LOOPBACK)
        monkeypatch.setenv(WORKER_PYTHON, str(cluster.python))
        main = stack.enter_context(ServerProcess(tmp_path / "main"))
        recovery = stack.enter_context(ServerProcess(tmp_path / "recovery"))
        main.sql("CREATE KEYSPACE ks")
        main.sql("ALTER KEYSPACE ks SPLIT AT 'k2', 'k4'")
        main.sql(f"SET CLUSTER SETTING changefeed.lake.masters = '{cluster.master}'")
        written = {(f"k{n}", round): put(main, f"k{n}", round) for round in "ab" for n in range(6)}
        text = documented(f"tailrace://127.0.0.1:{recovery.port}/ks", cluster.master)
        ((job_id,),) = main.rows(text)
        caught_up(main, recovery, max(written.values()))
        first, victims = cluster.applications(), applications(f"tailrace replication {job_id}")
        assert len(first) == 1, first
        assert victims, "no driver runs"
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        written |= {(f"k{n}", "c"): put(main, f"k{n}", "c") for n in range(6)}
        ((gone,),) = main.rows("SELECT raw_delete('ks', 'k0')")
        caught_up(main, recovery, parse_timestamp(str(gone)))
        assert main.rows("VERIFY REPLICATION r") == []
        assert cluster.applications() > first, "nothing has run on the cluster again"
        for (key, value), at in written.items():
            if value != "a":  # of each key the scan has the newest version
                asked = {"at": format_timestamp(at)}
                found = recovery.client.get(f"{recovery.url}{KEYS}/{key}", params=asked)
                assert found.text == value, (key, at, found.text)
        assert recovery.client.get(f"{recovery.url}{KEYS}/k0").status_code == 404


def put(server: ServerProcess, key: str, value: str) -> Timestamp:
    ((at,),) = server.rows(f"SELECT raw_put('ks', '{key}', '{value}')")
    return parse_timestamp(str(at))
