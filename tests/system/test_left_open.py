"""A program that ends without closing its database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

PROGRAM = """
import sys, tailrace
db = tailrace.open(sys.argv[1])
db.sql("CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY DEFAULT unique_rowid())")
if sys.argv[2] == "0":
    db.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
db.sql("INSERT INTO t DEFAULT VALUES")
print(db.sql("SELECT count(*) FROM t").fetchone()[0])
"""


def test_the_interpreter_closes_what_a_program_left_open(tmp_path: Path) -> None:
    for run in range(6):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "data"), str(run)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{run + 1}\n", ""), run
