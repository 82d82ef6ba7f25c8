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

# What `pgbench -i` makes, but for the history's key: it adds keys to tables that have none.
TABLES = """
CREATE TABLE pgbench_branches (bid INT4 PRIMARY KEY, bbalance INT4, filler CHAR(88));
CREATE TABLE pgbench_tellers (tid INT4 PRIMARY KEY, bid INT4, tbalance INT4, filler CHAR(84));
CREATE TABLE pgbench_accounts (aid INT4 PRIMARY KEY, bid INT4, abalance INT4, filler CHAR(84));
CREATE TABLE pgbench_history (
    id SERIAL PRIMARY KEY, tid INT4, bid INT4, aid INT4, delta INT4, mtime TIMESTAMP,
    filler CHAR(22)
);
INSERT INTO pgbench_branches VALUES (1, 0, NULL);
INSERT INTO pgbench_tellers SELECT g, 1, 0, '' FROM generate_series(1, 10) AS s(g);
INSERT INTO pgbench_accounts SELECT g, 1, 0, '' FROM generate_series(1, 100000) AS s(g);
"""
SUMS = """
SELECT sum(abalance), (SELECT sum(tbalance) FROM pgbench_tellers),
    (SELECT sum(bbalance) FROM pgbench_branches),
    (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
FROM pgbench_accounts
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("pgbench") / "data", "--insecure") as process:
        with _connect(process) as connection:
            connection.execute(TABLES)
        yield process


def _connect(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", autocommit=True
    )


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["tpcb-like", "simple-update", "select-only"])
def test_pgbench_keeps_the_books(server: ServerProcess, script: str, mode: str) -> None:
    """Of each transaction all of its updates are there, or none."""
    pgbench = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"
    if not Path(pgbench).exists():
        pytest.skip("pgbench is not installed")
    done = subprocess.run(
        [pgbench, "-n", "-b", script, "-M", mode, "-c", "2", "-t", "20", "--max-tries", "20",
         "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "root", "defaultdb"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 40/40" in done.stdout
    with _connect(server) as connection:
        sums = connection.execute(SUMS).fetchone()
    assert sums is not None
    accounts, tellers, branches, history = sums
    assert accounts == history
    assert tellers == branches
