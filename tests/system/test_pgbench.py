"""pgbench's own scripts, by the real program, in each of its modes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

SUMS = """
SELECT sum(abalance), (SELECT sum(tbalance) FROM pgbench_tellers),
    (SELECT sum(bbalance) FROM pgbench_branches),
    (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
FROM pgbench_accounts
"""


PGBENCH = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    if not Path(PGBENCH).exists():
        pytest.skip("pgbench is not installed")
    with ServerProcess(tmp_path_factory.mktemp("pgbench") / "data", "--insecure") as process:
        _pgbench(process, "-i", "-s", "1")
        yield process


def _pgbench(server: ServerProcess, *options: str) -> subprocess.CompletedProcess[str]:
    where = ("-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "root", "defaultdb")
    done = subprocess.run([PGBENCH, *options, *where], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def _connect(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", autocommit=True
    )


def test_tables_are_made_with_keys_and_again(server: ServerProcess) -> None:
    """By each way of making rows, and over the tables of the run before."""
    for steps in ("dtGvpf", "dtgvp"):
        _pgbench(server, "-i", "-I", steps, "-s", "1")
        with _connect(server) as connection:
            counted = connection.execute(
                "SELECT (SELECT count(*) FROM pgbench_accounts), "
                "(SELECT count(*) FROM pgbench_tellers), (SELECT count(*) FROM pgbench_history), "
                "(SELECT count(*) FROM information_schema.table_constraints "
                "WHERE constraint_type = 'PRIMARY KEY')"
            ).fetchone()
        assert counted == (100_000, 10, 0, 3)


@pytest.mark.parametrize("clients", ["1", "8"])
@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_pgbench_keeps_the_books(
    server: ServerProcess, script: str, mode: str, clients: str
) -> None:
    """Of each transaction all of its updates are there, or none."""
    done = _pgbench(
        server, "-n", "-b", script, "-M", mode, "-c", clients, "-T", "1", "--max-tries", "50"
    )
    assert "number of failed transactions: 0 " in done.stdout
    with _connect(server) as connection:
        sums = connection.execute(SUMS).fetchone()
    assert sums is not None
    accounts, tellers, branches, history = sums
    assert accounts == history
    assert tellers == branches


def test_pgbench_vacuums_and_truncates_first(server: ServerProcess) -> None:
    done = _pgbench(server, "-t", "5")
    assert "number of transactions actually processed: 5/5" in done.stdout
    with _connect(server) as connection:
        assert connection.execute("SELECT count(*) FROM pgbench_history").fetchone() == (5,)
