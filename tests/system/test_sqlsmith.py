"""sqlsmith's random statements beside a feed: no internal error, no lost connection, and the mirror
equals its tables."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

QUERIES = 150
"""About half a minute's."""
SCHEMA = """
    CREATE TABLE a (
        k INT8 PRIMARY KEY, s TEXT, d NUMERIC(10, 2), t TIMESTAMPTZ, b BOOL, j JSONB, u UUID,
        f FLOAT8, i INT4
    );
    CREATE TABLE b (
        k INT8 PRIMARY KEY, a INT8 REFERENCES a, s VARCHAR(20), dd DATE, arr INT8[], y BYTEA
    );
    INSERT INTO a
    SELECT n, 'x' || n::text, n * 1.5, now(), n % 2 = 0, '{"a": 1}', gen_random_uuid(), n / 3.0, n
    FROM generate_series(1, 50) AS g(n);
    INSERT INTO b
    SELECT n, n, 'y', '2026-01-01', ARRAY[n, 1], '\\x00ff' FROM generate_series(1, 50) AS g(n)
"""


def test_random_statements_meet_no_fault_of_ours(tmp_path: Path) -> None:
    found = shutil.which("sqlsmith")
    assert found is not None, "python -m tests.system.programs installs it"
    with ServerProcess(tmp_path / "server") as server:
        where = f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb"
        with psycopg.connect(where, autocommit=True) as client:
            client.execute(SCHEMA)
            made = client.execute("CREATE CHANGEFEED FOR TABLE a, b INTO 'duckdb:///smith.duckdb'")
            (job,) = made.fetchone() or (None,)
            options = [f"--target={where}", "--seed=1", f"--max-queries={QUERIES}", "--verbose"]
            done = subprocess.run([found, *options], capture_output=True, text=True)
            said = done.stderr
            assert "error rate" in said, said[-2000:]  # its report, which comes at its end
            assert "internal error" not in said, said[-4000:]
            marks = "".join(re.findall(r"^[.eStC]+", said, re.MULTILINE))
            assert len(marks) >= QUERIES, said[-2000:]
            assert "C" not in marks, "a connection was lost"
            assert client.execute(f"VERIFY CHANGEFEED {job}").fetchall() == []
