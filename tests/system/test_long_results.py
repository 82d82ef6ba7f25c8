"""A result that is much longer than the server's memory may grow, read slowly, by real clients."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROWS = 400_000
NOTE_BYTES = 500
GROWTH_MAX = 100 * 1024 * 1024
"""Half of the table, and far more than a few batches."""

SELECT = "SELECT id, note FROM big"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("long") / "data") as server:
        with connect(server) as client:
            # Nothing is held in columns, which would be memory that is meant to be used.
            client.execute("SET CLUSTER SETTING sql.columnar_cache.size = 0")
            client.execute("CREATE TABLE big (id INT8 PRIMARY KEY, note TEXT)")
            with client.cursor() as cursor, cursor.copy("COPY big FROM STDIN") as copy:
                for start in range(0, ROWS, 1000):
                    lines = [f"{n}\t{n:0{NOTE_BYTES}}\n" for n in range(start, start + 1000)]
                    copy.write("".join(lines))
            # The engine's own cache of blocks is full from the first reading on.
            for start in range(0, ROWS, 5000):
                text = f"SELECT sum(length(note)) FROM big WHERE id >= {start} AND id < %s"
                client.execute(text, (start + 5000,))
        yield server


def connect(server: ServerProcess) -> psycopg.Connection:
    return psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user=root", autocommit=True)


class Growth:
    """How much the server has grown at most, as far as it was looked at."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._before = server.resident_bytes
        self.most = 0

    def look(self) -> None:
        self.most = max(self.most, self._server.resident_bytes - self._before)


def test_a_table_is_sent_and_not_held(server: ServerProcess) -> None:
    growth = Growth(server)
    with connect(server) as client, client.cursor() as cursor:
        for count, _ in enumerate(cursor.stream(SELECT), start=1):
            if count % 10_000 == 0:
                growth.look()
    assert count == ROWS
    assert growth.most < GROWTH_MAX


def test_a_servers_cursor_holds_no_more(server: ServerProcess) -> None:
    growth = Growth(server)
    with connect(server) as client, client.transaction(), client.cursor(name="c") as cursor:
        cursor.execute(f"{SELECT} ORDER BY id")
        for start in range(0, ROWS, 20_000):
            rows = cursor.fetchmany(20_000)
            assert [row[0] for row in rows] == list(range(start, start + 20_000))
            growth.look()
    assert growth.most < GROWTH_MAX


def test_copy_and_json_lines_hold_no_more(server: ServerProcess) -> None:
    growth = Growth(server)
    size = 0
    with connect(server) as client, client.cursor().copy(f"COPY ({SELECT}) TO STDOUT") as copy:
        for count, data in enumerate(copy, start=1):
            size += len(data)
            if count % 10_000 == 0:
                growth.look()
    assert size > ROWS * NOTE_BYTES
    lines = 0
    with httpx2.stream(
        "POST", f"{server.url}/v1/sql", json={"sql": SELECT},
        headers={"accept": "application/x-ndjson"}, timeout=60,
    ) as answer:  # fmt: skip
        for chunk in answer.iter_bytes():
            lines += chunk.count(b"\n")
            growth.look()
    assert lines == ROWS
    assert growth.most < GROWTH_MAX


def test_clients_that_do_not_read_hold_no_more(server: ServerProcess) -> None:
    growth = Growth(server)
    clients = [connect(server) for _ in range(10)]
    for client in clients:
        client.pgconn.send_query(SELECT.encode())
    with connect(server) as other:
        for n in range(50):
            other.execute("UPDATE big SET note = 'changed' WHERE id = %s", (n,))
            assert other.execute("SELECT count(*) FROM generate_series(1, 9)").fetchall() == [(9,)]
            growth.look()
    for client in clients:
        client.close()
    assert growth.most < GROWTH_MAX
