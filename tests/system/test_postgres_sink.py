"""A mirror in a real PostgreSQL, fed by a real server: either is killed, and each change counts
once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import psycopg
import pytest

from benchmarks.servers import free_port
from tests.harness.postgres_process import PASSWORD, PostgresProcess
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

KEYS = 40

NOTES = """
CREATE TABLE applied (op text, id int8, ts int8);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO public.applied VALUES (TG_OP, OLD.id, OLD._commit_timestamp);
    ELSE
        INSERT INTO public.applied VALUES (TG_OP, NEW.id, NEW._commit_timestamp);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON items
FOR EACH ROW EXECUTE FUNCTION note();
"""
"""Every change that is applied to the mirror is noted, in its own transaction, by PostgreSQL."""


@pytest.fixture
def postgres() -> Iterator[PostgresProcess]:
    with PostgresProcess() as process:
        yield process


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data") as process:
        yield process


def source_rows(server: ServerProcess, text: str) -> list[tuple[Any, ...]]:
    """Through the wire of PostgreSQL, so that values are what a mirror's reader gets."""
    with psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", sslmode="disable"
    ) as client:
        return client.execute(text).fetchall()


def now(server: ServerProcess) -> str:
    return str(server.rows("SELECT cluster_logical_timestamp()")[0][0])


def write(url: str, seed: int, stop: threading.Event) -> None:
    random = Random(seed)
    with httpx2.Client(base_url=url, timeout=30.0) as client:
        while not stop.is_set():
            id = random.randrange(KEYS)
            texts = [
                f"UPSERT INTO items (id, name, price) VALUES ({id}, 'n{random.random()}', 1)",
                f"DELETE FROM items WHERE id = {id}",
                f"UPDATE items SET price = price + 1 WHERE id < {id}",
            ]
            try:
                client.post("/v1/sql", json={"sql": random.choice(texts)})
            except httpx2.TransportError:
                return


@contextmanager
def writing(server: ServerProcess, seed: int) -> Iterator[None]:
    stop = threading.Event()
    clients = [threading.Thread(target=write, args=(server.url, seed + n, stop)) for n in range(2)]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        stop.set()
        for client in clients:
            client.join()


def applied(postgres: PostgresProcess) -> int:
    """How many changes the mirror has had."""
    [(count,)] = postgres.rows("SELECT count(*) FROM applied")
    return int(count)


def test_each_change_counts_once_whoever_is_killed(
    server: ServerProcess, postgres: PostgresProcess
) -> None:
    random = Random(20)
    server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.5s'")
    server.sql("CREATE TABLE items (id INT8 PRIMARY KEY, name STRING, price DECIMAL(10, 2))")
    server.sql("INSERT INTO items SELECT i, 'first', i FROM generate_series(1, 40) AS g (i)")
    server.sql(f"CREATE CHANGEFEED FOR TABLE items INTO '{postgres.uri()}'")
    server.wait_for_feeds(now(server))
    postgres.rows(NOTES)
    for life in range(4):
        with writing(server, seed=life * 10):
            wanted = applied(postgres) + random.randrange(10, 60)
            while applied(postgres) < wanted:
                time.sleep(0.01)
            if life % 2:
                server.kill()
            else:
                postgres.kill()
        if life % 2:
            server.start()
        else:
            postgres.start()
    server.wait_for_feeds(now(server))
    rows = source_rows(server, "SELECT id, name, price FROM items ORDER BY id")
    assert postgres.rows("SELECT id, name, price FROM items ORDER BY id") == rows
    written = postgres.rows(
        "SELECT id, ts, count(*) FROM applied WHERE op <> 'DELETE' "
        "GROUP BY id, ts HAVING count(*) > 1"
    )
    assert written == [], "applied twice"


CHANGES = [
    "ALTER TABLE items ADD COLUMN stock INT8 DEFAULT 7",
    "ALTER TABLE items RENAME COLUMN name TO title",
    "INSERT INTO items (id, title, price, mood) VALUES (901, 'new', 1, 'ok')",
    "ALTER TABLE items ALTER COLUMN price TYPE STRING",
    "ALTER TABLE items DROP COLUMN stock",
    "ALTER TABLE items ALTER COLUMN title SET NOT NULL",
    "ALTER TABLE items ALTER PRIMARY KEY USING COLUMNS (title, id)",
    "UPDATE items SET mood = 'sad' WHERE id < 5",
    "DELETE FROM items WHERE id = 7",
]


def test_schema_changes_are_followed(server: ServerProcess, postgres: PostgresProcess) -> None:
    server.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    server.sql(
        "CREATE TABLE items (id INT8 PRIMARY KEY, name STRING, price DECIMAL(10, 2), mood mood)"
    )
    server.sql("INSERT INTO items SELECT i, 'n' || i, i, 'ok' FROM generate_series(1, 300) AS g(i)")
    postgres.rows("CREATE SCHEMA eu")
    server.sql(f"CREATE CHANGEFEED FOR TABLE items INTO '{postgres.uri(query='?schema=eu')}'")
    for change in CHANGES:
        server.sql(change)
        server.wait_for_feeds(now(server))
        names = source_rows(
            server, "SELECT column_name FROM information_schema.columns WHERE table_name = 'items'"
        )
        listed = ", ".join(name for (name,) in names)
        text = f"SELECT {listed} FROM {{}} ORDER BY id"
        assert postgres.rows(text.format("eu.items")) == source_rows(server, text.format("items"))
    server.sql("TRUNCATE items")
    server.wait_for_feeds(now(server))
    assert postgres.rows("SELECT * FROM eu.items") == []


def refused(server: ServerProcess, uri: str) -> str:
    text = "CREATE CHANGEFEED FOR TABLE items INTO '" + uri.replace("'", "''") + "'"
    answer = server.client.post(f"{server.url}/v1/sql", json={"sql": text})
    assert answer.status_code >= 400, answer.text
    return answer.text


def test_unreachable_fails_at_once_in_its_own_words(
    server: ServerProcess, postgres: PostgresProcess
) -> None:
    server.sql("CREATE TABLE items (id INT8 PRIMARY KEY)")
    secret = "kana'ri\n%@:"
    for uri, words in (
        (postgres.uri(password=secret), "password authentication failed for user"),
        (postgres.uri(password=secret, port=free_port()), "Connection refused"),
        (postgres.uri(database="nowhere"), 'database \\"nowhere\\" does not exist'),
        (postgres.uri(password="kanari", host="nowhere.invalid"), "nowhere.invalid"),
        (postgres.uri(query="?schema=nowhere"), 'schema \\"nowhere\\" does not exist'),
        (f"postgres://root:kanari @127.0.0.1:{postgres.port}/postgres", "bad sink URI"),
    ):
        answer = refused(server, uri)
        assert words in answer, answer
        assert "kana" not in answer
        assert PASSWORD not in answer
    assert server.rows("SHOW CHANGEFEED JOBS") == []


def test_odd_passwords_and_addresses_are_understood(
    server: ServerProcess, postgres: PostgresProcess
) -> None:
    secret = "kana'ri\n%@:\"\\ é"
    with postgres.connect() as admin:
        admin.execute("SET password_encryption = 'scram-sha-256'")
        literal = psycopg.sql.Literal(secret).as_string(admin)
        admin.execute(f'CREATE ROLE "od d" LOGIN PASSWORD {literal}')
        admin.execute('GRANT CREATE ON DATABASE postgres TO "od d"')
        admin.execute('CREATE SCHEMA odd AUTHORIZATION "od d"')
    server.sql("CREATE TABLE items (id INT8 PRIMARY KEY)")
    server.sql("INSERT INTO items VALUES (1), (2)")
    uri = postgres.uri(user="od%20d", password=secret, host="[::1]", query="?schema=odd&table=it")
    server.sql(f"CREATE CHANGEFEED FOR TABLE items INTO '{uri}'")
    server.wait_for_feeds(now(server))
    assert postgres.rows("SELECT id FROM odd.it ORDER BY id") == [(1,), (2,)]
    assert "kana" not in str(server.sql("SHOW CHANGEFEED JOBS")) + str(server.sql("SHOW JOBS"))


def test_documented_statements_do_what_they_say(
    server: ServerProcess, postgres: PostgresProcess
) -> None:
    """Those of docs/sinks.md, word for word but for the port."""
    text = Path("docs/sinks.md").read_text().replace(":5432", f":{postgres.port}")
    blocks = [block.partition("```")[0] for block in text.split("```sql\n")[1:]]
    [connections, mirror] = [block for block in blocks if "'postgres://" in block]
    postgres.rows("CREATE DATABASE mirror")
    postgres.rows("CREATE ROLE app SUPERUSER LOGIN PASSWORD 'secret'")
    server.sql("CREATE TABLE orders (id INT8 PRIMARY KEY); INSERT INTO orders VALUES (1)")
    made, feed, moved, shown, dropped = [each for each in connections.split(";\n") if each]
    [result] = server.sql(mirror)
    server.wait_for_feeds(now(server))
    with postgres.connect("mirror") as client:
        assert client.execute("SELECT id FROM orders").fetchall() == [(1,)]
    server.sql(f"CANCEL JOB {result['rows'][0][0]}")
    while "canceled" not in str(server.sql("SHOW CHANGEFEED JOBS")):
        time.sleep(0.05)
    server.sql(made)
    [result] = server.sql(feed)
    postgres.rows("ALTER ROLE app PASSWORD 'rotated'")
    server.sql(moved)
    assert "app:redacted@127.0.0.1" in str(server.rows(shown))
    server.sql(f"CANCEL JOB {result['rows'][0][0]}")
    while server.client.post(f"{server.url}/v1/sql", json={"sql": dropped}).status_code != 200:
        time.sleep(0.05)


def test_later_failures_are_retried_and_shown(
    server: ServerProcess, postgres: PostgresProcess
) -> None:
    server.sql("CREATE TABLE items (id INT8 PRIMARY KEY, v STRING)")
    server.sql("SET CLUSTER SETTING jobs.retry.max_backoff = '0.5s'")
    server.sql(f"CREATE CHANGEFEED FOR TABLE items INTO '{postgres.uri()}'")
    server.wait_for_feeds(now(server))
    postgres.stop()
    server.sql("INSERT INTO items VALUES (1, 'meanwhile')")
    deadline = time.monotonic() + 30
    while "PostgreSQL database postgres at" not in (
        shown := str(server.sql("SHOW CHANGEFEED JOBS"))
    ):
        assert time.monotonic() < deadline, shown
    assert PASSWORD not in shown
    postgres.start()
    server.wait_for_feeds(now(server))
    assert postgres.rows("SELECT v FROM items") == [("meanwhile",)]
