"""psql at this server and at PostgreSQL 15: the same script, the same output to the byte."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers import postgres_server
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SESSIONS = r"""
SELECT pg_advisory_lock(1), pg_try_advisory_lock(-1);
SELECT pg_advisory_unlock(1), pg_advisory_unlock(1);
BEGIN; SELECT pg_advisory_xact_lock(2); ROLLBACK; SELECT pg_advisory_unlock_all();
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT pg_cancel_backend(999999), pg_terminate_backend(NULL);
SELECT v, pg_size_pretty(v) FROM (VALUES (0::INT8), (10239), (10240), (-10240), (10485248),
    (123456789012), (9223372036854775807)) AS t(v) ORDER BY v;
CREATE USER ada; CREATE SCHEMA s; GRANT USAGE ON SCHEMA s TO ada;
\dn+ s
\df lower_
SELECT pg_terminate_backend(pg_backend_pid());
"""

SCRIPTS = {"sessions": SESSIONS}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Of this server and of PostgreSQL, each with a database `defaultdb`."""
    folder = Path(tmp_path_factory.mktemp("both"))
    with ServerProcess(folder / "data", "--insecure") as server, postgres_server(folder) as port:
        told_by_psql(port, "CREATE DATABASE defaultdb", database="postgres")
        yield server.pg_port, port


def told_by_psql(port: int, script: str, *, database: str = "defaultdb") -> str:
    program = shutil.which("psql")
    assert program is not None, "psql is not installed"
    command = [program, "-X", "-h", "127.0.0.1", "-U", "root", "-p", str(port), "-d", database]
    done = subprocess.run(
        command, input=script, text=True, timeout=60, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_psql_is_told_the_same(ports: tuple[int, int], name: str) -> None:
    ours, theirs = (told_by_psql(port, SCRIPTS[name]).splitlines() for port in ports)
    assert _without_details(ours) == _without_details(theirs)


def _without_details(lines: list[str]) -> list[str]:
    """Hints and details are each server's own."""
    return [line for line in lines if not line.startswith(("HINT:", "DETAIL:"))]
