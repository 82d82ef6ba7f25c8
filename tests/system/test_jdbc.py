"""PostgreSQL's JDBC driver, through Spark's `read.jdbc` and `write.jdbc`, and its metadata."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ROWS = 1_000
COLUMNS = """(
    id INT8 PRIMARY KEY, carrier STRING REFERENCES carriers, delay INT4, fare DECIMAL(10, 2),
    ratio FLOAT8, late BOOL, day DATE, at TIMESTAMPTZ
)"""
SCHEMA = f"""
CREATE TABLE carriers (code STRING PRIMARY KEY);
INSERT INTO carriers VALUES ('UA'), ('DL'), ('AA');
CREATE TABLE rides {COLUMNS};
CREATE INDEX rides_by_day ON rides (day);
CREATE TABLE rides_back {COLUMNS};
INSERT INTO rides SELECT
    g, CASE g % 3 WHEN 0 THEN 'UA' WHEN 1 THEN 'DL' ELSE 'AA' END, g % 10, g * 1.25, g / 8.0,
    g % 2 = 0,
    DATE '2013-01-01' + g % 365, TIMESTAMPTZ '2013-01-01 00:00:00+00' + g * INTERVAL '1 minute'
FROM generate_series(0, {ROWS - 1}) AS s(g);
INSERT INTO rides (id) VALUES ({ROWS});
"""


def test_spark_reads_and_writes_by_jdbc(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data", "--insecure") as server:
        connection = psycopg.connect(
            host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", autocommit=True
        )
        with connection:
            for statement in SCHEMA.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            told = subprocess.run(
                [sys.executable, "-m", "tests.system.jdbc_program", str(server.pg_port)],
                capture_output=True, text=True, timeout=240,
            )  # fmt: skip
            assert told.returncode == 0, told.stderr[-4000:]
            _check(json.loads(told.stdout.splitlines()[-1]))
            missing = "SELECT count(*) FROM (TABLE rides EXCEPT TABLE rides_back) AS m"
            assert connection.execute(missing).fetchone() == (0,)
            count = connection.execute("SELECT count(*) FROM rides_back").fetchone()
            assert count == (ROWS + 1,)


def _check(found: dict[str, object]) -> None:
    assert found["schema"] == {
        "id": "bigint", "carrier": "string", "delay": "int", "fare": "decimal(10,2)",
        "ratio": "double", "late": "boolean", "day": "date", "at": "timestamp",
    }  # fmt: skip
    assert (found["partitions"], found["count"]) == (4, ROWS + 1)
    assert found["pushed"] is True
    assert found["late"] == [n for n in range(ROWS) if n % 3 == 0 and n % 10 > 5]
    assert found["product"] == "PostgreSQL"
    assert "public" in found["schemas"]  # type: ignore[operator]
    assert {"rides", "rides_back"} <= set(found["tables"])  # type: ignore[call-overload]
    assert found["columns"] == ["id", "carrier", "delay", "fare", "ratio", "late", "day", "at"]
    assert found["imported"] == ["carriers"]
