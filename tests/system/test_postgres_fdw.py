"""postgres_fdw: a PostgreSQL reads and writes tables of a store as its own."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from benchmarks.servers import postgres_server
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system


def test_foreign_tables_are_read_and_written(tmp_path: Path) -> None:
    with (
        postgres_server(tmp_path) as port,
        ServerProcess(tmp_path / "t", "--insecure") as server,
        psycopg.connect(
            f"host=127.0.0.1 port={port} user=root dbname=postgres", autocommit=True
        ) as local,
        psycopg.connect(
            f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb", autocommit=True
        ) as store,
    ):
        store.execute("CREATE TABLE orders (id INT8 PRIMARY KEY, customer TEXT, tags TEXT[])")
        local.execute("CREATE EXTENSION postgres_fdw")
        local.execute(
            "CREATE SERVER store FOREIGN DATA WRAPPER postgres_fdw OPTIONS "
            f"(host '127.0.0.1', port '{server.pg_port}', dbname 'defaultdb', fetch_size '10')"
        )
        local.execute("CREATE USER MAPPING FOR root SERVER store OPTIONS (user 'root')")
        local.execute("CREATE SCHEMA s")
        local.execute("IMPORT FOREIGN SCHEMA public FROM SERVER store INTO s")
        local.execute(
            "INSERT INTO s.orders SELECT g, 'c' || g % 3, '{a}' FROM generate_series(1, 50) g"
        )
        local.execute("UPDATE s.orders SET customer = 'ada' WHERE id <= 20")
        local.execute("DELETE FROM s.orders WHERE id = 1")
        with pytest.raises(psycopg.errors.UniqueViolation):
            local.execute("INSERT INTO s.orders VALUES (2)")
        read = "SELECT count(*), min(id), min(tags[1]) FROM s.orders WHERE customer = 'ada'"
        assert local.execute(read).fetchone() == (19, 2, "a")
        assert store.execute("SELECT count(*) FROM orders").fetchone() == (49,)
