"""Each place where a URI or an option takes a secret holds one of its own, feeds with them are
made, fail, are altered and explained, and then no output of the server has any of them.

The places are those that sinks declare: a new one is here as soon as it is declared.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tailrace.catalog.descriptors.system_tables import SYSTEM_TABLES
from tailrace.changefeed.contract.options import SECRET_OPTIONS
from tailrace.changefeed.sinks.certificates import CERTIFICATE_PARAMETERS
from tailrace.changefeed.sinks.kafka import target as kafka
from tailrace.changefeed.sinks.objects.location import SECRETS as BUCKET_SECRETS
from tests.harness.certificates import certificate
from tests.harness.s3_server import BUCKET, S3Server
from tests.harness.server_process import ServerProcess
from tests.harness.webhook_receiver import WebhookReceiver

pytestmark = [
    pytest.mark.system,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of moto's own libraries
]

WORD = "kanari"
FORMS = re.compile(
    b"|".join(
        [
            # A place has a number, which a failure so tells.
            WORD.encode() + rb"\d\d",
            WORD.encode().hex().encode(),
            # base64, wherever in its three bytes the word begins
            *(b64encode(b" " * at + WORD.encode())[at + 1 : 8].rstrip(b"=") for at in range(3)),
        ]
    ),
    re.IGNORECASE,
)

KAFKA_SECRETS = frozenset[str]().union(*kafka.PARAMETERS.values()) - kafka.SHOWN
PLACES = [
    "postgres password",
    "tailrace password",
    "webhook password",
    "webhook parameter",
    *sorted(KAFKA_SECRETS - kafka.CERTIFICATES.keys()),
    "client_key",
    "client_cert",
    "ca_cert",
    *sorted(BUCKET_SECRETS),
    *sorted(SECRET_OPTIONS),
    "password of a scheme without one",
    "text that is no URI",
]

SLOW = ("gs://b", "kafka://127", "confluent-cloud://127", "azure-event-hub://127")
"""What would be asked again and again before it is given up."""


def secret(place: str, tail: str = "'@ /+x") -> str:
    return f"{WORD}{PLACES.index(place):02}{tail}"


def encoded(place: str, tail: str = "'@ /+x") -> str:
    return quote(secret(place, tail), safe="")


def plain(place: str) -> str:
    """One that object stores take."""
    return encoded(place, "/+x=")


class Repeating(ThreadingHTTPServer):
    """A store that refuses everything, and repeats in its words what it was sent."""

    def __init__(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def refuse(self) -> None:
                said = " ".join(f"{name}={value}" for name, value in self.headers.items())
                body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>".encode()
                self.send_response(403)
                self.send_header("Content-Type", "application/xml")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_HEAD = do_PUT = refuse  # noqa: N815 (names of the standard library)

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        super().__init__(("127.0.0.1", 0), Handler)
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Outputs:
    """All that a server has said."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.said: list[tuple[str, bytes]] = []

    def ask(self, sql: str) -> str:
        answer = self.server.client.post(f"{self.server.url}/v1/sql", json={"sql": sql})
        self.said.append((sql, answer.content))
        return answer.text

    def done(self, sql: str) -> str:
        text = self.ask(sql)
        assert '"results"' in text, text
        return text

    def get(self, path: str) -> None:
        answer = self.server.client.get(f"{self.server.url}{path}")
        assert answer.status_code == 200, (path, answer.text)
        self.said.append((path, answer.content))

    def wait_for(self, what: str) -> None:
        deadline = time.monotonic() + 60
        while what not in (shown := self.ask("SHOW CHANGEFEED JOBS")):
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)

    def files(self, where: str, files: Iterable[Path]) -> None:
        self.said += [(f"{where} {file.name}", file.read_bytes()) for file in files]

    def check(self) -> None:
        found = set()
        for source, said in self.said:
            for match in FORMS.finditer(said):
                found.add(f"{source}: …{said[max(0, match.start() - 99) : match.end() + 99]!r}…")
        assert not found, "\n".join(sorted(found))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def certificates(folder: Path) -> str:
    """Parameters of a webhook, of Kafka or of a registry, whose files begin with a secret, as PEM
    may."""
    cert, key = certificate(folder)
    files = {name: key if name == "client_key" else cert for name in CERTIFICATE_PARAMETERS}
    pem = {name: f"{secret(name)}\n{file.read_text()}" for name, file in files.items()}
    return "&".join(
        f"{name}={quote(b64encode(text.encode()).decode(), safe='')}" for name, text in pem.items()
    )


def uris(webhook: str, s3: str, azure: str, pem: str) -> dict[str, str]:
    """A URI for each place that is in one. All can be read, but none need be reached."""
    keys = {name: plain(name) for name in BUCKET_SECRETS}
    amazon = "&".join(
        ["AWS_ACCESS_KEY_ID=app", f"AWS_ENDPOINT={quote(s3, safe='')}"]
        + [f"{name}={keys[name]}" for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")]
    )
    login = {name: encoded(name) for name in KAFKA_SECRETS - kafka.CERTIFICATES.keys()}
    account = f"AZURE_ACCOUNT_NAME=app&AZURE_ENDPOINT={quote(azure, safe='')}"
    return {
        "postgres": f"postgres://app:{encoded('postgres password')}@127.0.0.1:1/db",
        "webhook": f"webhook-http://u:{encoded('webhook password')}@{webhook}/x?"
        f"token={encoded('webhook parameter')}",
        "tls": f"webhook-https://u:{encoded('webhook password')}@127.0.0.1:1/x?{pem}",
        "s3": f"s3://{BUCKET}/a?{amazon}",
        "gs": f"gs://bucket/a?BEARER_TOKEN={keys['BEARER_TOKEN']}",
        "azure": f"azure://c/a?{account}&AZURE_ACCOUNT_KEY={keys['AZURE_ACCOUNT_KEY']}",
        "kafka": "kafka://127.0.0.1:1?sasl_enabled=true&sasl_user=u&sasl_mechanism=PLAIN"
        f"&sasl_password={login['sasl_password']}&tls_enabled=true&{pem}",
        "oauth": "kafka://127.0.0.1:1?sasl_enabled=true&sasl_mechanism=OAUTHBEARER&sasl_client_id=a"
        f"&sasl_token_url=http://127.0.0.1:1/&sasl_client_secret={login['sasl_client_secret']}",
        "confluent": f"confluent-cloud://127.0.0.1:1?api_key=a&api_secret={login['api_secret']}",
        "hub": "azure-event-hub://127.0.0.1:1?shared_access_key_name=a"
        f"&shared_access_key={login['shared_access_key']}",
        "tailrace": f"tailrace://app:{encoded('tailrace password')}@127.0.0.1:1/ks",
    }


def headers() -> str:
    values = {
        "extra_headers": json.dumps({"X-Key": secret("extra_headers")}),
        "webhook_auth_header": f"Bearer {secret('webhook_auth_header')}",
    }
    assert values.keys() | {"confluent_schema_registry"} == SECRET_OPTIONS
    return ", ".join(f"{name} = {quoted(value)}" for name, value in values.items())


def avro(address: str, pem: str = "") -> str:
    registry = f"http://app:{encoded('confluent_schema_registry')}@{address}"
    if pem:
        registry = f"https{registry.removeprefix('http')}?{pem}"
    return f"format = avro, confluent_schema_registry = {quoted(registry)}"


def wrong(uris: dict[str, str], pem: str) -> Iterator[str]:
    """Statements that are refused, at every stage."""
    elsewhere = encoded("password of a scheme without one")
    strange = secret("text that is no URI")
    schemes = (
        "null", "file", "nodelocal", "duckdb", "delta", "spark+parquet", "external", "nosuch",
        "s3", "gs", "azure", "kafka", "https", "iceberg",
    )  # fmt: skip
    for uri in [
        *uris.values(),
        *(f"{scheme}://u:{elsewhere}@host/x" for scheme in schemes),
        *(f"{scheme}://u:{elsewhere}@host:x/x y" for scheme in schemes[::4]),
        *(f"{scheme}:{host}/x?password={elsewhere}&{name}={plain(name)}"
          for scheme in ("postgres", "gs", "azure", "s3", "webhook-https", "tailrace")
          for name in ("CREDENTIALS", "AZURE_CLIENT_SECRET") for host in ("//", "//h")),
        strange,
        f"nothing {strange}",
        f"webhook-https://{strange}@h/?x={strange}",
    ]:  # fmt: skip
        if not uri.startswith(SLOW):
            yield f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(uri)}"
        yield f"ALTER EXTERNAL CONNECTION nothere AS {quoted(uri)}"
        if strange not in uri:  # of which nobody knows where it would be a secret
            yield f"CREATE EXTERNAL CONNECTION twice {quoted(uri)}"
    for given in (
        ("127.0.0.1:1",),
        ("h:x",),
        ("",),
        ("127.0.0.1:1", pem),
        ("127.0.0.1:1", pem[:-40]),
    ):
        yield f"CREATE CHANGEFEED FOR TABLE a INTO 'kafka://127.0.0.1:1' WITH {avro(*given)}"
    for uri in uris.values():
        yield f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(uri)} WITH nonsense"
        yield f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(uri)} WITH"
        yield f"CREATE CHANGEFEED FOR TABLE a, nothere INTO {quoted(uri)}"
        yield f"CREATE REPLICATION r FOR KEYSPACE nothere INTO {quoted(uri)}"
        yield f"ALTER CHANGEFEED 1 SET sink = {quoted(uri)}"
        yield f"CREATE CHANGEFEED FOR TABLE nothere INTO $${uri}$$"
        if not uri.startswith(SLOW):
            yield f"EXPLAIN CHANGEFEED FOR TABLE a INTO {quoted(uri)}"


def ask_on_the_wire(outputs: Outputs, statements: Iterable[str]) -> None:
    """What a client of PostgreSQL's wire is told, and what another one sees of its session."""
    server = outputs.server
    address = f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb sslmode=disable"
    with (
        psycopg.connect(address, autocommit=True) as client,
        psycopg.connect(address, autocommit=True) as other,
    ):
        for statement in statements:
            try:
                client.execute(statement.encode())
            except psycopg.Error as error:
                told = error.diag
                parts = (told.message_primary, told.message_detail, told.message_hint, told.context)
                outputs.said.append((statement, " ".join(filter(None, parts)).encode()))
            if secret("text that is no URI", "") in statement:
                continue  # nobody knows that it is none, but who is told to open it
            seen = other.execute("SELECT * FROM pg_stat_activity").fetchall()
            outputs.said.append((f"pg_stat_activity after {statement}", str(seen).encode()))


def look_everywhere(outputs: Outputs) -> None:
    """Every table of the server's own, every page without an argument, every report."""
    server = outputs.server
    own = server.rows(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_schema NOT IN ('public')"
    )
    own += [["system", table.name] for table in SYSTEM_TABLES]
    for schema, name in own:
        outputs.ask(f'SELECT * FROM {schema}."{name}"')
    for shown in (
        "JOBS", "CHANGEFEED JOBS", "EXTERNAL CONNECTIONS", "REPLICATIONS",
    ):  # fmt: skip
        outputs.done(f"SHOW {shown}")
    for (job,) in server.rows("SELECT id FROM system.jobs"):
        for report in ("SHOW CHANGEFEED LATENCY FOR", "SHOW CHANGEFEED LAG FOR", "SHOW JOB"):
            outputs.ask(f"{report} {job}")
        outputs.ask(f"ALTER CHANGEFEED {job} SET nonsense = 'x'")
        outputs.get(f"/v1/jobs/{job}")
    pages = server.client.get(f"{server.url}/openapi.json").json()["paths"]
    endless = ("/v1/debug/rangefeed", "/v1/changes")
    for path, page in pages.items():
        if "get" not in page or "{" in path or path in endless:
            continue
        if not path.endswith("/events"):
            outputs.get(path)
            continue
        with server.client.stream("GET", f"{server.url}{path}", timeout=2) as events:
            outputs.said.append((path, next(events.iter_bytes())))
    outputs.get("/v1/debug/keys?limit=100000")
    outputs.get("/v1/debug/log?limit=100000")


def test_no_declared_secret_is_in_any_output(tmp_path: Path) -> None:
    log, backup = tmp_path / "server.log", tmp_path / "backup"
    options = ("--log-file", str(log), "--log-level", "debug")
    with (
        WebhookReceiver() as receiver,
        S3Server() as s3,
        Repeating() as repeating,
        ServerProcess(tmp_path / "data", *options) as server,
    ):
        outputs = Outputs(server)
        server.sql("CREATE TABLE a (k INT8 PRIMARY KEY); INSERT INTO a VALUES (1)")
        server.sql("CREATE KEYSPACE ks")
        for name, value in {
            "jobs.retry.max_backoff": "'0.3s'",
            "changefeed.webhook.private_addresses.enabled": "true",
            "changefeed.webhook.insecure_http.enabled": "true",
        }.items():
            server.sql(f"SET CLUSTER SETTING {name} = {value}")
        pem = certificates(tmp_path)
        found = uris(receiver.address, s3.endpoint, repeating.endpoint, pem)
        for name, uri in found.items():
            outputs.done(f"CREATE EXTERNAL CONNECTION {name} AS {quoted(uri)}")
        impatient = """webhook_sink_config = '{"Retry": {"Max": 1, "Backoff": "1ms"}}'"""
        outputs.done(
            f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(found['webhook'])} "
            f"WITH {headers()}, {impatient}"
        )
        outputs.done("CREATE CHANGEFEED FOR TABLE a INTO 'external://webhook'")
        registry = repeating.endpoint.removeprefix("http://")
        outputs.done(f"CREATE CHANGEFEED FOR TABLE a INTO 'null://' WITH {avro(registry)}")
        outputs.done(f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(found['s3'])}")
        outputs.done(f"CREATE REPLICATION r FOR KEYSPACE ks INTO {quoted(found['tailrace'])}")
        server.client.put(f"{server.url}/v1/keyspaces/ks/keys/a", content=b"1")
        again = uris(receiver.address, repeating.endpoint, repeating.endpoint, "x=y")
        statements = [
            *wrong(found, pem),
            f"CREATE CHANGEFEED FOR TABLE a INTO {quoted(again['s3'])}",
        ]
        ask_on_the_wire(outputs, statements)
        for statement in statements[::7]:  # the same errors by the other door
            outputs.ask(statement)
        # The receiver and the bucket fail, and the receiver says all that it was told.
        receiver.words = " ".join(map(str, receiver.headers[-1].items())) + receiver.paths[-1]
        receiver.status, s3.refuse = 503, 1.0
        server.sql("INSERT INTO a VALUES (2)")
        outputs.wait_for("503")
        look_everywhere(outputs)
        command = (sys.executable, "-m", "tailrace.api.cli", "backup", str(backup))
        told = subprocess.run(
            [*command, "--url", server.url], capture_output=True, check=True, timeout=60
        )
        outputs.said.append(("tailrace backup", told.stdout + told.stderr))
        assert server.terminate() == 0
        outputs.said.append(("output", "\n".join(server.output).encode()))
        outputs.files("log", [log, server.folder.with_suffix(".log")])
    for where, folder in (("data", tmp_path / "data"), ("backup", backup)):
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert len(files) > 3, files
        outputs.files(where, files)
    # What is looked for was there: the receiver has had every secret that is sent to it.
    sent = str(receiver.headers) + str(receiver.paths)
    for place in ("extra_headers", "webhook_auth_header", "webhook parameter"):
        assert f"{WORD}{PLACES.index(place):02}" in sent, place
    outputs.check()
