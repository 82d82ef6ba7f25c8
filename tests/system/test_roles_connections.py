"""Roles and rights on sequences, through psycopg and psql."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("roles") / "data") as server:
        with connect(server) as root:
            root.execute("CREATE USER ada; CREATE ROLE reader; GRANT reader TO ada")
            root.execute("CREATE TABLE orders (k INT8 PRIMARY KEY); CREATE SEQUENCE numbers")
            root.execute("GRANT SELECT ON orders TO reader")
            root.execute("GRANT USAGE ON SEQUENCE numbers TO reader")
        yield server


def connect(server: ServerProcess, user: str = "root") -> psycopg.Connection:
    return psycopg.connect(f"host=127.0.0.1 port={server.pg_port} user={user}", autocommit=True)


def who(client: psycopg.Connection) -> tuple[str, str]:
    (row,) = client.execute("SELECT current_user, session_user").fetchall()
    return row[0], row[1]


def test_rights_follow_roles_over_the_wire(server: ServerProcess) -> None:
    with connect(server, "ada") as client:
        assert who(client) == ("ada", "ada")
        with pytest.raises(errors.InsufficientPrivilege):
            client.execute("SET ROLE root")
        with client.transaction():
            client.execute("SET LOCAL ROLE reader")
            assert client.execute("SELECT nextval('numbers')").fetchall() == [(1,)]
            prepared = "SELECT count(*) FROM orders WHERE k > %s"
            for _ in range(8):  # prepared by the driver on its way
                assert client.execute(prepared, (0,)).fetchall() == [(0,)]
            with pytest.raises(errors.InsufficientPrivilege), client.transaction():
                client.execute("SELECT setval('numbers', 5)")
        assert who(client) == ("ada", "ada")
        client.execute("SET ROLE reader")
        client.execute("DISCARD ALL")
        assert who(client) == ("ada", "ada")


def test_psql_shows_rights_on_sequences(server: ServerProcess) -> None:
    psql = shutil.which("psql")
    assert psql is not None, "psql is not installed"
    command = [psql, "-XAtq", "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "root"]
    shown = subprocess.run(
        [*command, "-d", "defaultdb", "-c", "SET ROLE reader", "-c", r"\dp"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "public|numbers|sequence|root=rwU/root\nreader=U/root|" in shown
    assert "reader=r/root" in shown
