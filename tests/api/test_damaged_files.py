"""A store whose files were damaged: what it says, and what can still be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import tailrace
from tailrace import SQLError


def _with_damaged_rows(folder: Path) -> int:
    """Makes a store of one table with a damaged block in it. Returns the number of its rows."""
    count = 20_000
    with tailrace.open(folder) as db:
        db.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        db.sql("CREATE TABLE sound (k INT8 PRIMARY KEY); INSERT INTO sound VALUES (1)")
        db.sql("INSERT INTO t SELECT g, md5(g::STRING) FROM generate_series(1, $1) g", (count,))
    file = max((folder / "engine").glob("*.sst"), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    return count


def test_rows_of_a_damaged_block_are_refused_as_such(tmp_path: Path) -> None:
    count = _with_damaged_rows(tmp_path / "data")
    with tailrace.open(tmp_path / "data") as db:
        for text in ("SELECT count(*) FROM t", "SELECT max(v) FROM t", "CREATE INDEX ON t (v)"):
            with pytest.raises(
                SQLError, match=r"files are damaged.*restore the data folder"
            ) as told:
                db.sql(text)
            assert told.value.sqlstate == "XX001"
        ends = db.sql("SELECT k FROM t WHERE k IN (1, $1) ORDER BY k", (count,)).fetchall()
        assert ends == [(1,), (count,)]
        assert db.sql("INSERT INTO sound VALUES (2)").row_count == 1
        assert db.sql("SELECT count(*) FROM sound").fetchall() == [(2,)]
