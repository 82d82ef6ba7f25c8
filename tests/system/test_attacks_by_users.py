"""Attacks on a real server, over TLS, by users who have passwords and no privileges."""

from __future__ import annotations

import io
import os
import re
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pyarrow as pa
import pytest

from tailrace.api.demo.lake import read_lake
from tests.harness.certificates import certificate
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROOT, ADA, BO = ("root", "r"), ("ada", "a"), ("bo", "b")
MIRROR = "duckdb:///m.duckdb"
PATIENCE_SECONDS = 240.0


class Server:
    """A server over TLS that knows root, ada and bo. Ada has a table, and a mirror of it."""

    def __init__(self, process: ServerProcess, client: httpx2.Client) -> None:
        self.process = process
        self.client = client
        self.sql(ROOT, "CREATE USER ada PASSWORD 'a'; CREATE USER bo PASSWORD 'b'")
        self.sql(ADA, "CREATE TABLE secret (k INT8 PRIMARY KEY); INSERT INTO secret VALUES (7)")
        self.sql(BO, "CREATE TABLE own (k INT8 PRIMARY KEY); INSERT INTO own VALUES (1)")

    def post(self, user: tuple[str, str], path: str, body: object) -> httpx2.Response:
        return self.client.post(f"{self.process.url}{path}", json=body, auth=user)

    def sql(self, user: tuple[str, str], text: str) -> list[dict[str, Any]]:
        answer = self.post(user, "/v1/sql", {"sql": text})
        assert answer.status_code == 200, answer.text
        result = answer.json()["results"][-1]
        names = [column["name"] for column in result.get("columns", [])]
        return [dict(zip(names, row, strict=True)) for row in result.get("rows", [])]

    def read(self, user: tuple[str, str], text: str) -> httpx2.Response:
        return self.post(user, "/v1/mirrors/sql", {"mirror": MIRROR, "sql": text})

    def wait_for_mirror(self, rows: list[list[int]]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = self.read(ROOT, "SELECT k FROM secret ORDER BY k")
            if answer.status_code == 200 and answer.json()["rows"] == rows:
                return
            assert time.monotonic() < deadline, answer.text

    def feed(self, job: int) -> dict[str, Any]:
        [found] = [row for row in self.sql(ROOT, "SHOW CHANGEFEED JOBS") if row["job_id"] == job]
        return found


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    cert, key = certificate(tmp_path)
    monkeypatch.setenv("TAILRACE_ROOT_PASSWORD", ROOT[1])
    tls = ("--cert", str(cert), "--key", str(key))
    trusted = ssl.create_default_context(cafile=str(cert))
    with (
        ServerProcess(tmp_path / "data", *tls, insecure=False) as process,
        httpx2.Client(verify=trusted, timeout=PATIENCE_SECONDS) as client,
    ):
        assert process.url.startswith("https://")
        yield Server(process, client)


def state_of(answer: httpx2.Response) -> str:
    assert answer.status_code >= 400, answer.text
    return str(answer.json()["sqlstate"])


def test_a_feed_of_ones_own_does_not_open_anothers_mirror(server: Server) -> None:
    server.sql(ADA, f"CREATE CHANGEFEED FOR TABLE secret INTO '{MIRROR}'")
    server.wait_for_mirror([[7]])
    feed = {"sql": f"CREATE CHANGEFEED FOR TABLE own INTO '{MIRROR}'"}
    assert state_of(server.post(BO, "/v1/sql", feed)) == "42501"
    assert state_of(server.read(BO, "SELECT * FROM secret")) == "42501"
    login = f"user=bo password=b host=127.0.0.1 port={server.process.pg_port} dbname=defaultdb"
    with (
        psycopg.connect(login, sslmode="require", autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(f"CREATE CHANGEFEED FOR TABLE own INTO '{MIRROR}'")


def test_a_mirrors_query_neither_ends_its_feed_nor_reads_its_file(server: Server) -> None:
    server.sql(ADA, f"CREATE CHANGEFEED FOR TABLE secret INTO '{MIRROR}'")
    server.wait_for_mirror([[7]])
    file = server.process.folder / "mirrors" / "m.duckdb"
    for text, state in (
        (f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}' (FORMAT csv, USE_TMP_FILE false)", "25006"),
        (f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}.wal' (USE_TMP_FILE false)", "25006"),
        (f"SELECT * FROM read_blob('{file}.wal')", "42501"),
        (f"FROM '{file}'", "42P01"),
        ("CHECKPOINT", "25006"),
    ):
        assert state_of(server.read(ADA, text)) == state, text
    server.sql(ADA, "INSERT INTO secret VALUES (8)")
    server.wait_for_mirror([[7], [8]])


def test_a_lake_gives_nobody_more_than_its_own_table(server: Server) -> None:
    """Over TLS: the application has a token of its own, which stands nowhere where others look."""
    lake = "CREATE CHANGEFEED FOR TABLE own INTO 'spark+parquet:///own?master={}'"
    strange = {"sql": lake.format("spark://attacker:7077")}
    assert state_of(server.post(BO, "/v1/sql", strange)) == "42501"
    fast = " WITH min_checkpoint_frequency = '100ms'"
    [made] = server.sql(BO, lake.format("local[1]") + fast)
    path = server.process.folder / "mirrors" / "own"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while server.feed(made["job_id"])["high_water_timestamp"] is None:
        assert time.monotonic() < deadline, server.feed(made["job_id"])
    assert [row["k"] for row in read_lake(path).to_pylist()] == [1]
    seen = [told for process in _started_by(os.getpid()) for told in _told_of(process)]
    assert any(b"tailrace.changefeed.spark.lake" in told for told in seen)
    for told in seen:
        assert b"TAILRACE_TOKEN" not in told
        assert b"authorization" not in told.lower()
    applications = [told for told in seen if b"--trigger-seconds" in told]
    assert applications
    for process in _started_by(os.getpid()):
        command, environment = _told_of(process)
        if b"tailrace.changefeed.spark.lake" in command:
            assert b"TAILRACE_ROOT_PASSWORD" not in environment
    shown = server.sql(ROOT, "SHOW CHANGEFEED JOBS")
    assert "@" not in str(shown)
    assert "token" not in str(shown).lower()


def test_wide_statements_hold_nobody_up(server: Server) -> None:
    """Each is sent again with other constants: what is loaded and compiled once is no attack, nor
    is what a busy machine takes of one round's processor time."""
    chains, nests = "SELECT {}" + " + 1" * 10_000, "SELECT " + "ARRAY[" * 100_000 + "{}"
    document = '[{},"' + "x" * 4_000_000 + '"]'
    longer = []
    for number in range(1, 5):
        before = longer_steps(server)
        for sql, parameters, state in (
            (chains.format(number), [], "54001"),
            (nests.format(number) + "]" * 100_000, [], "54001"),
            ("SELECT length($1::JSONB::STRING) > 0", [document.format(number)], None),
            (f"SELECT repeat('x', {300_000_000 + number})", [], "54000"),
        ):
            answer = server.post(BO, "/v1/sql", {"sql": sql, "params": parameters})
            if state is None:
                assert answer.json()["results"][0]["rows"] == [[True]], answer.text[:500]
            else:
                assert state_of(answer) == state, answer.text[:500]
        longer.append(longer_steps(server) - before)
    assert min(longer) == 0, longer


def longer_steps(server: Server) -> int:
    """How many steps of the loop took more than 10 ms of CPU time."""
    text = server.client.get(f"{server.process.url}/metrics", auth=ROOT).text
    [found] = re.findall(r"^tailrace_event_loop_long_steps_total (\S+)$", text, flags=re.M)
    return int(float(found))


def test_tokens_end_with_the_password_and_with_the_user(server: Server) -> None:
    def token(password: str) -> httpx2.Response:
        asked = {"user": "bo", "password": password}
        found = server.client.post(f"{server.process.url}/v1/login", json=asked)
        bearer = {"Authorization": f"Bearer {found.json()['token']}"}
        held.append(bearer)
        return said(bearer)

    def said(bearer: dict[str, str]) -> httpx2.Response:
        asked = {"sql": "SELECT current_user"}
        return server.client.post(f"{server.process.url}/v1/sql", json=asked, headers=bearer)

    held: list[dict[str, str]] = []
    assert token("b").json()["results"][0]["rows"] == [["bo"]]
    server.sql(ROOT, "ALTER USER bo PASSWORD 'other'")
    assert said(held[0]).status_code == 401
    assert token("other").status_code == 200
    server.sql(ROOT, "DROP TABLE own; DROP USER bo; CREATE USER bo PASSWORD 'third'")
    assert [said(bearer).status_code for bearer in held] == [401, 401]


def test_a_revoked_right_ends_its_feed(server: Server) -> None:
    server.sql(ADA, "GRANT SELECT, CHANGEFEED ON secret TO bo")
    [made] = server.sql(BO, "CREATE CHANGEFEED FOR TABLE secret INTO 'duckdb:///bo.duckdb'")
    read = {"mirror": "duckdb:///bo.duckdb", "sql": "SELECT k FROM secret"}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while server.post(BO, "/v1/mirrors/sql", read).json().get("rows") != [[7]]:
        assert time.monotonic() < deadline, server.feed(made["job_id"])
    server.sql(ADA, "REVOKE ALL ON secret FROM bo")
    while server.feed(made["job_id"])["status"] != "failed":
        assert time.monotonic() < deadline, server.feed(made["job_id"])
    server.sql(ADA, "INSERT INTO secret VALUES (8)")
    assert state_of(server.post(BO, "/v1/mirrors/sql", read)) == "42501"


def test_a_small_body_does_not_unpack_to_gigabytes(server: Server) -> None:
    rows = pa.record_batch({"k": pa.array([bytes(480_000_000)])})
    buffer = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(buffer, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    assert len(buffer.getvalue()) < 100_000
    server.process.forget_peak()
    before = server.process.resident_bytes_peak
    answer = server.client.post(
        f"{server.process.url}/v1/tables/own/rows",
        content=buffer.getvalue(),
        headers={"content-type": "application/vnd.apache.arrow.stream"},
        auth=BO,
    )
    assert (answer.status_code, state_of(answer)) == (413, "54000")
    assert server.process.resident_bytes_peak - before < 100 * 1024 * 1024


def _started_by(ancestor: int) -> list[int]:
    """The processes that this one has started, at whatever remove."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it has ended
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    found, before = {ancestor}, 0
    while len(found) > before:
        before = len(found)
        found |= {process for process, parent in parents.items() if parent in found}
    return sorted(found - {ancestor})


def _told_of(process: int) -> tuple[bytes, bytes]:
    """Its command line and its environment."""
    folder = Path(f"/proc/{process}")
    try:
        return (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
    except OSError:
        return b"", b""
