"""`tailrace serve` as a process: how it starts, refuses and stops."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from urllib.request import urlopen

import duckdb
import httpx2
import pytest

from tests.harness.server_process import COMMAND, ServerProcess

pytestmark = pytest.mark.system


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def test_terminated_server_leaves_all_in_order(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        server.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
        at = server.sql("INSERT INTO t VALUES (1), (2)")[0]["commit_timestamp"]
        server.wait_for_feeds(at)
        assert server.terminate() == 0, server.errors()
        mirror = tmp_path / "data" / "mirrors" / "m.duckdb"
        assert mirror.exists()
        assert not mirror.with_name("m.duckdb.wal").exists()
        with duckdb.connect(mirror, read_only=True) as reader:
            assert reader.execute("SELECT k FROM t ORDER BY k").fetchall() == [(1,), (2,)]
        server.start()
        assert server.rows("SELECT k FROM t ORDER BY k") == [[1], [2]]
        assert server.terminate() == 0
        assert server.errors() == ""


def test_server_whose_disk_fails_ends_with_the_reason_and_loses_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        server.limit_files(1 << 20)
        kept = 0
        with pytest.raises((AssertionError, httpx2.TransportError)):
            while True:
                server.sql(
                    f"INSERT INTO t SELECT * FROM generate_series({kept + 1}, {kept + 1000})"
                )
                kept += 1000
        assert server.terminate() == 1, "the service manager starts it again"
        assert "the store has failed, and the server ends: [Errno 27]" in server.errors()
        server.start()
        [[found]] = server.rows("SELECT count(*) FROM t")
        assert found in (kept, kept + 1000), (
            "what was not acknowledged is there whole or not at all"
        )


def test_a_nice_server_gives_way(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--nice", "3") as server:
        assert server.niceness == min(os.nice(0) + 3, 19)


@pytest.mark.parametrize(("level", "told"), [("info", True), ("warning", False)])
def test_the_configuration_is_what_options_would_say(
    tmp_path: Path, level: str, told: bool
) -> None:
    log = tmp_path / "server.log"
    config = tmp_path / "tailrace.toml"
    config.write_text(
        f'[serve]\nport = 0\npg_port = 0\ninsecure = true\nlog_file = "{log}"\n'
        f'log_level = "{level}"\n'
    )
    *program, serve = COMMAND
    command = [*program, "--config", str(config), serve, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        assert server.stdout is not None
        said = [next(server.stdout) for _ in range(3)]
        server.terminate()
        rest, errors = server.communicate()
    assert (server.returncode, errors) == (0, b"")
    assert b"(trust)" in said[1] and b"ready on http://127.0.0.1:" in said[2], (said, rest)
    assert ("INFO tailrace: serves" in log.read_text()) is told


def test_second_server_on_a_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder) as server:
        second = serve(str(folder), "--port", "0")
        assert second.returncode == 1
        assert second.stdout == ""
        assert second.stderr.count("\n") == 1
        assert str(folder) in second.stderr
        assert server.rows("SELECT 1") == [[1]]


def test_server_starts_again_at_once_after_a_kill(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY); INSERT INTO t VALUES (1)")
        server.kill()
        server.start()
        server.sql("INSERT INTO t VALUES (2)")
        assert server.rows("SELECT count(*) FROM t") == [[2]]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_open_addresses_are_refused(tmp_path: Path, host: str) -> None:
    refused = serve(str(tmp_path / "data"), "--host", host)
    assert refused.returncode == 1
    assert host in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_taken_port_is_refused(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        port = server.url.rpartition(":")[2]
        refused = serve(str(tmp_path / "other"), "--port", port)
        assert refused.returncode == 1
        assert port in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_other_format_version_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with ServerProcess(folder) as server:
        assert server.terminate() == 0
    (folder / "FORMAT").write_text("99\n")
    refused = serve(str(folder), "--port", "0")
    assert refused.returncode == 1
    assert "99" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_endless_replies_end_with_the_server(tmp_path: Path) -> None:
    """At once, and without a word: nobody waits for what has no end."""
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        server.sql("INSERT INTO t VALUES (1)")
        paths = "/v1/debug/rangefeed?target=t", "/v1/overview/events", "/v1/changes?table=t"
        streams = [urlopen(f"{server.url}{path}") for path in paths]
        for stream in streams:
            assert stream.readline()
        assert server.terminate() == 0
        assert server.errors() == ""
        for stream in streams:
            while stream.readline():
                pass
            stream.close()


def test_an_interrupted_server_ends_without_a_word(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        stream = urlopen(f"{server.url}/v1/debug/rangefeed?target=t")
        assert stream.readline()
        assert server.interrupt() == 0
        assert server.errors() == ""
        stream.close()


def test_a_server_that_lets_nobody_in_says_how_to_make_the_first_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAILRACE_ROOT_PASSWORD", raising=False)
    told = "root has no password, and so cannot log in: start with TAILRACE_ROOT_PASSWORD"
    with ServerProcess(tmp_path / "data", insecure=False) as server:
        assert any(told in line for line in server.output), server.output
        answer = server.client.get(f"{server.url}/v1/tables")
        assert answer.status_code == 401
        assert "ALTER USER root PASSWORD" in answer.json()["hint"]
        assert server.terminate() == 0
        monkeypatch.setenv("TAILRACE_ROOT_PASSWORD", "first")
        server.start()
        assert not any(told in line for line in server.output), server.output
        found = server.client.get(f"{server.url}/v1/tables", auth=("root", "first"))
        assert found.status_code == 200
