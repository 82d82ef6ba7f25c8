"""DuckDB's own postgres extension on a server: what docs/pgwire.md says of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess
from tests.system.programs import POSTGRES_EXTENSION, python_with

pytestmark = pytest.mark.system

PROGRAM = """
import duckdb, json, pathlib, sys
import duckdb_extension_postgres_scanner as wheel
(extension,) = pathlib.Path(wheel.__path__[0]).rglob("*.duckdb_extension")
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{extension}'")
connection.execute(f"ATTACH '{sys.argv[1]}' AS pg (TYPE postgres)")
answers = [connection.execute(text).fetchall() for text in json.loads(sys.argv[2])]
print(json.dumps(answers, default=str))
"""
STATEMENTS = {
    "SELECT * FROM pg.t ORDER BY id LIMIT 1": [[1, "x1", "b'\\x01'", "0.50", "2020-01-02"]],
    "SELECT count(*), sum(id) FROM pg.t": [[3000, 4501500]],
    "SELECT id FROM pg.t WHERE s = 'x30'": [[30]],
    "SELECT count(*) FROM pg.t WHERE s > 'x2999' AND id < 9": [[6]],
    "SELECT count(*) FROM pg.t WHERE id < 0": [[0]],
    "INSERT INTO pg.t VALUES (9000, NULL, NULL, 7, NULL)": [[1]],
    "SELECT * FROM pg.t WHERE id = 9000": [[9000, None, None, "7.00", None]],
    "CREATE TABLE pg.made AS SELECT id, s FROM pg.t WHERE id <= 2": [[2]],
    "BEGIN": [],
    "INSERT INTO pg.made VALUES (3, 'c')": [[1]],
    "ROLLBACK": [],
    "SELECT * FROM pg.made ORDER BY id": [[1, "x1"], [2, "x2"]],
    "CALL postgres_execute('pg', 'UPDATE made SET s = NULL WHERE id = 2')": None,
    "SELECT s FROM pg.made WHERE id = 2": [[None]],
}


def test_a_store_is_attached_by_duckdb(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "t", "--insecure") as server:
        where = f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE t (id INT8 PRIMARY KEY, s TEXT, b BYTEA, d DECIMAL(10, 2), day DATE)"
            )
            connection.execute(
                "INSERT INTO t SELECT g, 'x' || g, '\\x01', g / 2.0, DATE '2020-01-01' + g "
                "FROM generate_series(1, 3000) g"
            )
        python = python_with("duckdb-postgres", *POSTGRES_EXTENSION)
        told = subprocess.run(
            [python, "-c", PROGRAM, where, json.dumps(list(STATEMENTS))],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        for answer, (text, wanted) in zip(json.loads(told.stdout), STATEMENTS.items(), strict=True):
            assert wanted is None or answer == wanted, text
