"""Users have the node connect to nothing that only the node can reach."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.harness.http_door import HttpDoor, problem_of

ADA, ROOT = ("ada", "a"), ("root", "r")
ANSWER = b'{"title": "kanari7", "access_token": "kanari7"}'
PATIENCE_SECONDS = 20.0
PRIVATE = "changefeed.webhook.private_addresses.enabled"
SINKS = {
    "replica": "tailrace://ada:a@{}/ks",
    "objects": "s3://v1/kv?AWS_ACCESS_KEY_ID=a&AWS_SECRET_ACCESS_KEY=b&AWS_ENDPOINT=http://{}",
    "broker": "kafka://{}",
    "decimal address": "tailrace://ada:a@2130706433:{port}/ks?tls=on",
    "tokens of brokers": "kafka://192.0.2.1:9?sasl_enabled=true&sasl_mechanism=OAUTHBEARER"
    "&sasl_client_id=x&sasl_client_secret=y&sasl_token_url=http%3A%2F%2F{}%2Flatest",
    "database": "postgres://postgres@{}/postgres",
}


class Internal(ThreadingHTTPServer):
    """A service that trusts whoever is on its machine."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Internal

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(403 if self.path == "/latest" else 503)
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    do_GET = do_HEAD = do_PUT = do_POST  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def internal() -> Iterator[Internal]:
    with Internal() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpDoor]:
    monkeypatch.setenv("TAILRACE_ROOT_PASSWORD", ROOT[1])
    with HttpDoor(trust=False) as door:
        session = door.node.session()
        door.run(session.execute("CREATE USER ada PASSWORD 'a'; CREATE USER boss PASSWORD 'r'"))
        door.run(session.execute("GRANT admin TO boss"))
        door.run(session.close())
        sql(door, ADA, "CREATE TABLE t (k INT8 PRIMARY KEY); CREATE KEYSPACE ks")
        yield door


def ask(door: HttpDoor, user: tuple[str, str], text: str) -> dict[str, object]:
    answer = door.client.post("/v1/sql", json={"sql": text}, auth=user)
    return answer.json() if answer.status_code == 200 else problem_of(answer)


def sql(door: HttpDoor, user: tuple[str, str], text: str) -> list[list[object]]:
    answer = door.client.post("/v1/sql", json={"sql": text}, auth=user)
    assert answer.status_code == 200, answer.text
    rows: list[list[object]] = answer.json()["results"][-1].get("rows", [])
    return rows


def state_becomes(door: HttpDoor, words: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while words not in str(sql(door, ADA, "SHOW REPLICATIONS")):
        assert time.monotonic() < deadline


def feed(sink: str, internal: Internal) -> str:
    uri = sink.format(internal.address, port=internal.server_port)
    if uri.startswith("tailrace:"):
        return f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri}'"
    return f"CREATE CHANGEFEED FOR TABLE t INTO '{uri}'"


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
@pytest.mark.parametrize("statement", ["{}", "EXPLAIN {}"])
def test_a_user_reaches_nothing_private(
    door: HttpDoor, internal: Internal, sink: str, statement: str
) -> None:
    text = statement.format(feed(sink, internal).removeprefix("CREATE " * (statement != "{}")))
    if statement != "{}" and "REPLICATION" in text:
        pytest.skip("replications are not explained")
    told = ask(door, ADA, text)
    assert told["sqlstate"] == "42501", told
    assert "is not public" in str(told["title"])
    assert internal.asked == []


def test_a_name_is_judged_at_each_attempt(door: HttpDoor, internal: Internal) -> None:
    boss = ("boss", "r")
    sql(door, boss, f"SET CLUSTER SETTING {PRIVATE} = true")
    sql(door, ADA, f"{feed(SINKS['replica'], internal)}")
    sql(door, ADA, "PAUSE REPLICATION r")
    state_becomes(door, "paused")
    sql(door, boss, f"SET CLUSTER SETTING {PRIVATE} = false")
    internal.asked.clear()
    sql(door, ADA, "RESUME REPLICATION r")
    state_becomes(door, "is not public")
    assert internal.asked == []


def test_a_connection_is_used_by_whoever_it_was_given(door: HttpDoor, internal: Internal) -> None:
    boss, uri = ("boss", "r"), SINKS["replica"].format(internal.address)
    sql(door, boss, f"CREATE EXTERNAL CONNECTION there AS '{uri}'")
    sql(door, boss, "ALTER EXTERNAL CONNECTION there OWNER TO ada")
    sql(door, ADA, "CREATE REPLICATION r FOR KEYSPACE ks INTO 'external://there'")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not internal.asked:
        assert time.monotonic() < deadline
    told = ask(door, ADA, f"ALTER EXTERNAL CONNECTION there AS '{uri}x'")
    assert told["sqlstate"] == "42501", told


def test_what_a_server_of_tokens_answers_is_not_told(door: HttpDoor, internal: Internal) -> None:
    text = feed(SINKS["tokens of brokers"].replace("192.0.2.1:9", internal.address), internal)
    told = ask(door, ("boss", "r"), text)
    assert set(internal.asked) == {"/latest"}
    assert "kanari7" not in str(told)


@pytest.mark.parametrize("file", ["/etc/hostname", "/nosuch/file", "/etc/shadow"])
def test_an_authority_tells_nothing_of_files(door: HttpDoor, internal: Internal, file: str) -> None:
    uri = SINKS["replica"].format(internal.address) + f"?tls=on&sslrootcert={file}"
    sql(door, ("boss", "r"), "GRANT SYSTEM EXTERNALCONNECTION TO ada")
    sql(door, ADA, f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri}'")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (error := sql(door, ADA, "SHOW REPLICATIONS")[0][-1]) is None:
        assert time.monotonic() < deadline
    assert str(error).endswith("sslrootcert names no certificates in PEM that the node reads")


@pytest.mark.parametrize("region", ["x@127.0.0.1:80/", "x.example", "a/../b", "x#"])
def test_a_region_is_no_address(door: HttpDoor, region: str) -> None:
    uri = f"s3://v1/kv?AWS_ACCESS_KEY_ID=a&AWS_SECRET_ACCESS_KEY=b&AWS_REGION={region}"
    uri = uri.replace("#", "%23")
    told = ask(door, ADA, f"CREATE CHANGEFEED FOR TABLE t INTO '{uri}'")
    assert told["sqlstate"] == "22023", told
