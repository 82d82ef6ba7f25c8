"""Going beyond each bound of the table: what the client is told.

A function has the name of its row's key. It is given the row's bound already made small, and
returns the answer as the table writes it.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from struct import pack

import httpx2
import pyarrow as pa

from tailrace.api.admission import Bounds
from tailrace.api.http.server import HttpOptions
from tailrace.api.node import Node
from tailrace.api.passwords import Guesses, Passwords
from tailrace.api.pgwire import PostgresOptions
from tailrace.api.pgwire.authentication import Method
from tailrace.api.rpc import JoinToken
from tailrace.api.tls import server_context
from tailrace.catalog.rights.users import make_verifier
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.process.offload import ThreadOffload
from tests.harness.certificates import certificate
from tests.harness.http_door import ARROW, JSON_LINES, HttpDoor, problem_of
from tests.harness.pg_door import PATIENCE_SECONDS, PgDoor, WireClient, WireError, pg_door
from tests.limits.table import Limit

SMALL = 3
"""What a count is made, and what is gone beyond by one."""

SMALL_BYTES = 400
SMALL_SECONDS = 0.2
SMALL_VALUE_BYTES = 100_000
"""The store's own descriptors are values, too."""

SMALL_BOUNDS = Bounds(known=8, unknown=6, unknown_per_address=3, kept_for_admins=2)

BY_BOUNDS = {
    f"{door}_{what}"
    for door in ("postgres", "http")
    for what in ("server", "user", "unknown", "unknown_address")
}
"""Those that begin their doors with small bounds."""


# The Postgres door


def at_postgres(
    work: Callable[[PgDoor], Awaitable[str]], options: PostgresOptions | None = None
) -> str:
    async def run() -> str:
        async with pg_door(options) as door:
            session = door.node.session()
            await session.execute("CREATE USER ada; CREATE USER eve; CREATE USER bob")
            await session.close()
            return await work(door)

    return asyncio.run(run())


def bounded(**changes: int) -> PostgresOptions:
    return PostgresOptions(method=Method.TRUST, bounds=replace(SMALL_BOUNDS, **changes))


async def told(client: WireClient) -> str:
    """The SQLSTATE of the first error among the frames that come."""
    while True:
        kind, body = await client.frame()
        if kind == b"E":
            return WireError(body).sqlstate


async def greeted(door: PgDoor, *users: str) -> str:
    """What the last of so many is told."""
    for user in users[:-1]:
        await door.client(user)
    last = await door.connect()
    last.startup(user=users[-1])
    return await told(last)


def postgres_server(limit: Limit, folder: Path) -> str:
    users = ("ada", "ada", "ada", "eve", "eve", "eve", "root", "root", "root")
    return at_postgres(lambda door: greeted(door, *users), bounded())


def postgres_user(limit: Limit, folder: Path) -> str:
    users = ["ada"] * (SMALL_BOUNDS.per_user + 1)
    return at_postgres(lambda door: greeted(door, *users), bounded(kept_for_admins=0))


async def _crowd(door: PgDoor) -> str:
    first = await door.connect()
    for _ in range(SMALL):
        await door.connect()
    return f"{await told(first)} to the oldest"


def postgres_unknown(limit: Limit, folder: Path) -> str:
    return at_postgres(_crowd, bounded(unknown=SMALL, unknown_per_address=50))


def postgres_unknown_address(limit: Limit, folder: Path) -> str:
    return at_postgres(_crowd, bounded(unknown=50, unknown_per_address=SMALL))


def postgres_time(limit: Limit, folder: Path) -> str:
    async def work(door: PgDoor) -> str:
        silent = await door.connect()
        return "closed" if await silent.ended() == b"" else "told"

    return at_postgres(work)


def postgres_handshake(limit: Limit, folder: Path) -> str:
    cert, key = certificate(folder)

    async def work(door: PgDoor) -> str:
        client = await door.connect()
        client.raw(bytes.fromhex("0000000804d2162f"))
        return "closed" if await client.ended() == b"S" else "told"

    return at_postgres(work, PostgresOptions(tls=server_context(cert, key)))


def postgres_first_message(limit: Limit, folder: Path) -> str:
    async def work(door: PgDoor) -> str:
        client = await door.connect()
        client.startup(user="root", application_name="x" * SMALL_BYTES)
        return await told(client)

    return at_postgres(work)


def postgres_message(limit: Limit, folder: Path) -> str:
    async def work(door: PgDoor) -> str:
        client = await door.client()
        client.raw(b"Q" + pack("!I", SMALL_BYTES + 5))
        return await told(client)

    return at_postgres(work)


def postgres_portals(limit: Limit, folder: Path) -> str:
    async def work(door: PgDoor) -> str:
        client = await door.client()
        client.send(b"P", b"\0SELECT 1\0\0\0")
        for number in range(SMALL + 1):
            client.send(b"B", f"p{number}\0\0".encode() + bytes(6))
        client.send(b"S")
        return await told(client)

    return at_postgres(work)


# The HTTP door


@contextmanager
def at_http(**changes: int) -> Iterator[HttpDoor]:
    options = HttpOptions(trust=False, bounds=replace(SMALL_BOUNDS, **changes))
    with HttpDoor(options) as door:
        session = door.node.session()
        door.run(
            session.execute(
                "CREATE USER ada PASSWORD 'a'; CREATE USER eve PASSWORD 'e';"
                "CREATE USER boss PASSWORD 'b'; GRANT admin TO boss;"
                "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING); GRANT ALL ON t TO ada"
            )
        )
        door.run(session.close())
        door.client.auth = ("ada", "a")
        yield door


def answer_of(reply: httpx2.Response) -> str:
    return f"{reply.status_code} {problem_of(reply)['sqlstate']}"


def rest(client: socket.socket) -> bytes:
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    client.close()
    return b"".join(parts)


def said(door: HttpDoor, request: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", door.port))
    client.settimeout(30)
    client.sendall(request)
    return client


def _connections(door: HttpDoor, *users: str) -> str:
    clients = []
    for user in users:
        client = httpx2.Client(base_url=f"http://127.0.0.1:{door.port}", timeout=30)
        clients.append(client)
        reply = client.get("/v1/tables", auth=(user, user[0]))
    answer = answer_of(reply)
    for client in clients:
        client.close()
    return answer


def http_server(limit: Limit, folder: Path) -> str:
    users = (*["ada"] * 3, *["eve"] * 3, *["boss"] * 3)
    with at_http() as door:
        return _connections(door, *users)


def http_user(limit: Limit, folder: Path) -> str:
    with at_http(kept_for_admins=0) as door:
        return _connections(door, *["ada"] * (SMALL_BOUNDS.per_user + 1))


def _http_crowd(**changes: int) -> str:
    with at_http(**changes) as door:
        clients = [said(door, b"") for _ in range(SMALL + 1)]
        answer = "the oldest is closed" if rest(clients[0]) == b"" else "told"
        for client in clients[1:]:
            client.close()
        return answer


def http_unknown(limit: Limit, folder: Path) -> str:
    return _http_crowd(unknown=SMALL, unknown_per_address=50)


def http_unknown_address(limit: Limit, folder: Path) -> str:
    return _http_crowd(unknown=50, unknown_per_address=SMALL)


def http_handshake(limit: Limit, folder: Path) -> str:
    cert, key = certificate(folder)
    with HttpDoor(HttpOptions(cert=cert, key=key)) as door:
        return "closed" if rest(said(door, b"")) == b"" else "told"


def http_head(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        return rest(said(door, b"GET / HTTP/1.1\r\nX: ")).split()[1].decode()


def http_body_piece(limit: Limit, folder: Path) -> str:
    head = (
        b"POST /v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic YWRhOmE=\r\n"
        b"Content-Type: application/json\r\nContent-Length: 10\r\n\r\n"
    )
    with at_http() as door:
        assert door.client.get("/v1/tables").status_code == 200
        client = said(door, head.replace(b"10", b"19") + b'{"sql": "SELECT 1"}')
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.sendall(head + b"{")
        return "told" if b"HTTP/1.1" in rest(client) else "closed"


def http_login_body(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        body = {"user": "ada", "password": "x" * SMALL_BYTES}
        return answer_of(door.post("/v1/login", body))


def http_json_body(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        return answer_of(door.post("/v1/mirrors/sql", {"mirror": "x" * SMALL_BYTES, "sql": ""}))


def http_line(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        line = json.dumps({"k": 1, "v": "x" * SMALL_BYTES}).encode()
        return answer_of(door.load("t", JSON_LINES, line))


def http_record_batch(limit: Limit, folder: Path) -> str:
    """As it comes, and unpacked."""
    answers = set()
    with at_http() as door:
        for compression in (None, "zstd"):
            buffer = io.BytesIO()
            rows = pa.record_batch({"k": range(2000)})
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with pa.ipc.new_stream(buffer, rows.schema, options=options) as writer:
                writer.write_batch(rows)
            answers.add(answer_of(door.load("t", ARROW, buffer.getvalue())))
    (answer,) = answers
    return answer


def _transactions(door: HttpDoor, *users: str) -> str:
    for user in users:
        reply = door.client.post("/v1/transactions", json={}, auth=(user, user[0]))
    return answer_of(reply)


def http_transactions(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        return _transactions(door, "ada", "eve", "boss", "ada")


def http_transactions_user(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        return _transactions(door, *["ada"] * (SMALL + 1))


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def http_tokens(limit: Limit, folder: Path) -> str:
    with at_http() as door:
        login = {"user": "ada", "password": "a"}
        tokens = [door.post("/v1/login", login).json()["token"] for _ in range(SMALL + 1)]
        statuses = [
            door.client.get("/v1/tables", auth=None, headers=bearer(token)).status_code
            for token in tokens
        ]
    return "the oldest ends" if statuses == [401, *[200] * SMALL] else f"{statuses}"


# Passwords


def password(limit: Limit, folder: Path) -> str:
    return sqlstate(lambda: make_verifier("x" * (SMALL_BYTES + 1), Random(1)))


def sqlstate(call: Callable[[], object]) -> str:
    try:
        call()
    except SQLError as error:
        return error.sqlstate
    return "nothing"


def _waits(users: Callable[[int], str]) -> str:
    """How long each failure beyond the free ones is followed by a refusal."""
    now = [0.0]
    guesses = Guesses(Metrics(), lambda: now[0])
    waits = []
    for number in range(SMALL + 12):
        guesses.failed(users(number), "1.2.3.4")
        try:
            guesses.check(users(number), "1.2.3.4")
        except SQLError as error:
            assert error.sqlstate == "53300", error
            assert error.hint is not None, error
            waits.append(int(re.findall(r"\d+", error.hint)[0]))
            now[0] += waits[-1]
    assert waits[:3] == [1, 2, 4], waits
    return f"53300 for 1 s, 2 s, 4 s … {max(waits)} s"


def failures_user(limit: Limit, folder: Path) -> str:
    return _waits(lambda number: "ada")


def failures_address(limit: Limit, folder: Path) -> str:
    return _waits(lambda number: f"u{number}")


def passwords_waiting(limit: Limit, folder: Path) -> str:
    async def work() -> str:
        offload = ThreadOffload()
        passwords = Passwords(offload, Guesses(Metrics(), lambda: 0.0))
        verifier = make_verifier("x", Random(1))
        matches = (
            passwords.match("x", verifier, user="ada", address="a") for _ in range(SMALL + 1)
        )
        results = await asyncio.gather(*matches, return_exceptions=True)
        offload.close()
        assert results[:SMALL] == [True] * SMALL, results
        last = results[-1]
        return last.sqlstate if isinstance(last, SQLError) else "compared"

    return asyncio.run(work())


# Nodes


async def _at_nodes(connections: int) -> str:
    """What becomes of the last of so many connections that say nothing."""
    node = await Node.open(":memory:")
    port = await node.serve_nodes("127.0.0.1", 0, JoinToken("right"))
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(connections)]
    try:
        reader = opened[-1][0]
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read()
    finally:
        for _, writer in opened:
            writer.close()
        await node.close()
    return "closed"


def nodes(limit: Limit, folder: Path) -> str:
    return asyncio.run(_at_nodes(SMALL + 1))


def handshake_of_node(limit: Limit, folder: Path) -> str:
    return asyncio.run(_at_nodes(1))


# SQL


def statements(*texts: str, user: str = "root") -> str:
    """What the last of these statements of one session is told; the others succeed."""

    async def work(door: PgDoor) -> str:
        client = await door.client(user=user)
        for text in texts[:-1]:
            await client.query(text)
        client.send(b"Q", texts[-1].encode() + b"\0")
        return await told(client)

    return at_postgres(work)


def prepared(limit: Limit, folder: Path) -> str:
    return statements(*(f"PREPARE p{n} AS SELECT 1" for n in range(SMALL + 1)))


def prepared_text(limit: Limit, folder: Path) -> str:
    return statements(f"PREPARE p AS SELECT '{'x' * SMALL_BYTES}'")


def cursors(limit: Limit, folder: Path) -> str:
    made = (f"DECLARE c{n} CURSOR FOR SELECT 1" for n in range(SMALL + 1))
    return statements("BEGIN", *made)


def savepoints(limit: Limit, folder: Path) -> str:
    return statements("BEGIN", *(f"SAVEPOINT s{n}" for n in range(SMALL + 1)))


def results(limit: Limit, folder: Path) -> str:
    query = "DECLARE c{} CURSOR WITH HOLD FOR SELECT * FROM generate_series(1, 1000000) g"
    opened = [text for n in range(SMALL) for text in (query.format(n), f"FETCH 1 FROM c{n}")]
    return statements("BEGIN", *opened, query.format(SMALL))


def number(limit: Limit, folder: Path) -> str:
    return statements(f"SELECT {'9' * (SMALL_BYTES + 1)}")


def key(limit: Limit, folder: Path) -> str:
    return statements(
        "CREATE TABLE s (k STRING PRIMARY KEY)", f"INSERT INTO s VALUES ('{'x' * 20_000}')"
    )


def value(limit: Limit, folder: Path) -> str:
    return statements(
        "CREATE TABLE s (k INT8 PRIMARY KEY, v STRING)",
        f"INSERT INTO s VALUES (1, '{'x' * SMALL_VALUE_BYTES}')",
    )


def mirror_name(limit: Limit, folder: Path) -> str:
    return statements(
        "CREATE TABLE s (k INT8 PRIMARY KEY)",
        f"CREATE CHANGEFEED FOR s INTO 'duckdb:///{'x' * SMALL_BYTES}'",
    )


# What has an owner


def owned(limit: Limit, create: str, drop: str, ended: str = "") -> str:
    """What is told to who makes one more, of a user or of all: when the first is dropped, one more
    is made, and admins go on. `drop` is given the row that `create` returned, if it did."""
    texts = [create.format(n=n) for n in range(SMALL + 2)]

    async def work(door: PgDoor) -> str:
        root = await door.client()
        for text in (
            "CREATE TABLE s (k INT8 PRIMARY KEY); GRANT ALL ON s TO ada, eve",
            "GRANT SYSTEM EXTERNALCONNECTION TO ada, eve",
            "GRANT CREATE ON SCHEMA public TO ada, eve",
            f"SET CLUSTER SETTING {limit.name} = {SMALL}",
        ):
            await root.query(text)
        ada = await door.client(user="ada")
        last = ada if limit.of.startswith("a user") else await door.client(user="eve")
        rows = [row for text in texts[:SMALL] for row in await ada.query(text)]
        first = rows[0][0] if rows else "n0"
        last.send(b"Q", texts[SMALL].encode() + b"\0")
        answer = await told(last)
        await _ready(last)
        await ada.query(f"{drop} {first}")
        if ended:
            with suppress(WireError):  # it says that the job was canceled
                await ada.query(f"{ended} {first}")
        await last.query(texts[SMALL])
        await root.query(texts[SMALL + 1])
        return answer

    return at_postgres(work)


async def _ready(client: WireClient) -> None:
    while (await client.frame())[0] != b"Z":
        pass


def feeds(limit: Limit, folder: Path) -> str:
    create = "CREATE CHANGEFEED FOR s INTO 'duckdb:///m{n}.duckdb'"
    return owned(limit, create, "CANCEL JOB", "SHOW JOB WHEN COMPLETE")


def schedules(limit: Limit, folder: Path) -> str:
    create = "CREATE SCHEDULE n{n} FOR CHANGEFEED s INTO 'nodelocal://self/f{n}' RECURRING '@daily'"
    return owned(limit, create, "DROP SCHEDULE", "SHOW JOB WHEN COMPLETE")


def subscriptions(limit: Limit, folder: Path) -> str:
    return owned(limit, "CREATE SUBSCRIPTION n{n} FOR TABLE s", "DROP SUBSCRIPTION")


def external_connections(limit: Limit, folder: Path) -> str:
    return owned(
        limit,
        "CREATE EXTERNAL CONNECTION n{n} AS 'duckdb:///m{n}.duckdb'",
        "DROP EXTERNAL CONNECTION",
    )


def keyspaces(limit: Limit, folder: Path) -> str:
    return owned(limit, "CREATE KEYSPACE n{n}", "DROP KEYSPACE")


def keyspace_backups(limit: Limit, folder: Path) -> str:
    """None is under way where none may be."""

    async def work(door: PgDoor) -> str:
        root = await door.client()
        await root.query("CREATE KEYSPACE k; GRANT ALL ON k TO ada")
        ada = await door.client(user="ada")
        await ada.query("BACKUP KEYSPACE k INTO 'nodelocal://self/b1'")
        await root.query(f"SET CLUSTER SETTING {limit.name} = 0")
        ada.send(b"Q", b"BACKUP KEYSPACE k INTO 'nodelocal://self/b2'\0")
        answer = await told(ada)
        await root.query("BACKUP KEYSPACE k INTO 'nodelocal://self/b3'")
        return answer

    return at_postgres(work)
