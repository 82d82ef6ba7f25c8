"""No secret of a sink comes out of the server anywhere: a canary is looked for in all that it
shows, tells and stores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.postgres_process import PostgresProcess
from tests.harness.server_process import ServerProcess
from tests.harness.webhook_receiver import WebhookReceiver

pytestmark = pytest.mark.system

CANARY = "kanari7"
PASSWORD = f"{CANARY}'@ x"
ENCODED = "kanari7%27%40%20x"
ROTATED = f"rotated{CANARY}"


@pytest.fixture
def postgres() -> Iterator[PostgresProcess]:
    with PostgresProcess() as process:
        process.rows("CREATE ROLE app LOGIN PASSWORD 'kanari7''@ x'")
        process.rows("GRANT CREATE ON DATABASE postgres TO app")
        process.rows("GRANT CREATE ON SCHEMA public TO app")
        yield process


class Answers:
    """All that a server has said to its clients."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.texts: list[str] = []

    def ask(self, sql: str) -> str:
        """Over HTTP, and then over PostgreSQL's wire where it changes nothing."""
        answer = self.server.client.post(f"{self.server.url}/v1/sql", json={"sql": sql})
        self.texts.append(answer.text)
        return answer.text

    def get(self, path: str) -> None:
        answer = self.server.client.get(f"{self.server.url}{path}")
        assert answer.status_code == 200, (path, answer.text)
        self.texts.append(answer.text)

    def wait_for(self, what: str) -> None:
        deadline = time.monotonic() + 60
        while what not in (shown := self.ask("SHOW CHANGEFEED JOBS")):
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)

    def check(self) -> None:
        for text in self.texts:
            assert CANARY not in text, text[:1000]
            assert CANARY.encode().hex() not in text, text[:1000]


def wire_errors(server: ServerProcess, statements: list[str]) -> list[str]:
    """What a client of PostgreSQL's wire is told, and what others see of its session."""
    found: list[str] = []
    address = f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb sslmode=disable"
    with (
        psycopg.connect(address, autocommit=True) as client,
        psycopg.connect(address, autocommit=True) as other,
    ):
        for statement in statements:
            try:
                client.execute(statement)
            except psycopg.Error as error:
                told = error.diag
                found.append(f"{told.message_primary} {told.message_detail} {told.message_hint}")
            seen = other.execute("SELECT * FROM pg_stat_activity").fetchall()
            found.append(str(seen))
    return found


def test_no_secret_is_shown_told_or_stored(tmp_path: Path, postgres: PostgresProcess) -> None:
    log = tmp_path / "server.log"
    options = ("--log-file", str(log), "--log-level", "info")
    uri = f"postgres://app:{ENCODED}@127.0.0.1:{postgres.port}/postgres"
    away = f"postgres://app:{ENCODED}@127.0.0.1:1/postgres"
    with ServerProcess(tmp_path / "data", *options) as server:
        answers = Answers(server)
        server.sql("CREATE TABLE a (k INT8 PRIMARY KEY); CREATE TABLE b (k INT8 PRIMARY KEY)")
        server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.5s'")
        assert '"results"' in answers.ask(f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}'")
        assert '"results"' in answers.ask(f"CREATE EXTERNAL CONNECTION c AS '{uri}'")
        assert '"results"' in answers.ask("CREATE CHANGEFEED FOR TABLE b INTO 'external://c'")
        server.sql("INSERT INTO a VALUES (1); INSERT INTO b VALUES (1)")
        server.wait_for_feeds(str(server.rows("SELECT cluster_logical_timestamp()")[0][0]))
        told = wire_errors(
            server,
            [
                f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}'",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{away}'",
                f"CREATE CHANGEFEED FOR TABLE a, nothere INTO '{away}'",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{away}' WITH nonsense",
                f"CREATE CHANGEFEED FOR TABLE a INTO 'postgres://app:{CANARY}@@h:x/p' WITH x",
                f"CREATE CHANGEFEED FOR TABLE a INTO 'nowhere://app:{CANARY}@h'",
                f"CREATE CHANGEFEED FOR TABLE a '{away}'",
                f"CREATE EXTERNAL CONNECTION d AS '{away}' WITH",
                f"CREATE EXTERNAL CONNECTION d '{away}'",
                f"CREATE EXTERNAL CONNECTION c AS '{away}'",
                f"ALTER EXTERNAL CONNECTION e AS '{away}'",
            ],
        )
        answers.texts += told
        # Its password changes: the feeds fail and say so, until their sink is told the new one.
        postgres.rows(f"ALTER ROLE app PASSWORD '{ROTATED}'")
        postgres.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
        )
        server.sql("INSERT INTO a VALUES (2); INSERT INTO b VALUES (2)")
        answers.wait_for("password authentication failed")
        rotated = uri.replace(ENCODED, ROTATED)
        assert '"results"' in answers.ask(f"ALTER EXTERNAL CONNECTION c AS '{rotated}'")
        deadline = time.monotonic() + 60
        while postgres.rows("SELECT k FROM b ORDER BY k") != [(1,), (2,)]:
            assert time.monotonic() < deadline, answers.ask("SHOW CHANGEFEED JOBS")
            time.sleep(0.05)
        for shown in (
            "SHOW JOBS", "SHOW CHANGEFEED JOBS", "SHOW EXTERNAL CONNECTIONS",
            "SELECT * FROM system.jobs", "SELECT encode(payload, 'hex') FROM system.jobs",
            "SELECT * FROM system.external_connections", "SELECT * FROM pg_stat_activity",
        ):  # fmt: skip
            assert '"results"' in answers.ask(shown), answers.texts[-1]
        for path in ("/metrics", "/v1/jobs", "/v1/changefeeds", "/v1/sessions", "/v1/queries"):
            answers.get(path)
        answers.check()
        assert server.terminate() == 0
        assert CANARY not in server.errors() + "\n".join(server.output)
    assert CANARY not in log.read_text()
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file


def test_no_secret_of_a_webhook_is_shown_told_or_stored(tmp_path: Path) -> None:
    """Its password, parameters, headers; also where the receiver repeats them."""
    log = tmp_path / "server.log"
    options = ("--log-file", str(log), "--log-level", "debug")
    headers = (
        f"webhook_auth_header = 'Bearer {CANARY}a', extra_headers = '{{\"X-Key\": \"{CANARY}b\"}}'"
    )
    with (
        WebhookReceiver() as receiver,
        ServerProcess(tmp_path / "data", *options) as server,
    ):
        receiver.status, receiver.words = 503, f"{CANARY}a, {CANARY}b, {CANARY}c, Bearer {CANARY}a"
        uri = f"webhook-http://u:{CANARY}@{receiver.address}/x?token={CANARY}c"
        answers = Answers(server)
        server.sql("CREATE TABLE a (k INT8 PRIMARY KEY); INSERT INTO a VALUES (1)")
        server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.3s'")
        for name in ("private_addresses", "insecure_http"):
            server.sql(f"SET CLUSTER SETTING changefeed.webhook.{name}.enabled = true")
        assert '"results"' in answers.ask(
            f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}' WITH {headers}, "
            """webhook_sink_config = '{"Retry": {"Max": 1, "Backoff": "1ms"}}'"""
        )
        answers.wait_for("503")
        away = uri.replace(receiver.address, "127.0.0.1:1")
        answers.texts += wire_errors(
            server,
            [
                f"CREATE CHANGEFEED FOR TABLE a INTO '{away}' WITH {headers}",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}&token={CANARY}' WITH {headers}",
                f"CREATE CHANGEFEED FOR a INTO '{uri}' WITH webhook_auth_header = 'é{CANARY}'",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}' WITH extra_headers = '{CANARY}'",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}&client_key={CANARY}'",
                f"CREATE CHANGEFEED FOR TABLE a INTO '{uri}' WITH {headers}, nonsense",
            ],
        )
        for shown in (
            "SHOW JOBS", "SHOW CHANGEFEED JOBS", "SELECT * FROM system.jobs",
            "SELECT encode(payload, 'hex') FROM system.jobs", "SELECT * FROM pg_stat_activity",
        ):  # fmt: skip
            assert '"results"' in answers.ask(shown), answers.texts[-1]
        for path in ("/metrics", "/v1/jobs", "/v1/changefeeds"):
            answers.get(path)
        answers.check()
        receiver.status = 200
        answers.wait_for("running")
        assert receiver.headers[-1]["Authorization"] == f"Bearer {CANARY}a"
        assert server.terminate() == 0
        assert CANARY not in server.errors() + "\n".join(server.output)
    assert CANARY not in log.read_text()
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file
