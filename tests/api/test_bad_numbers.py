"""Numbers and names that are too long are errors of the statement, and never of the server."""

from __future__ import annotations

import pytest

from tests.harness.http_door import HttpDoor

DIGITS = "9" * 100_000
NAME = "n" * 300


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {DIGITS}",
        f"SELECT 1e{DIGITS}",
        f"SELECT 1 LIMIT {DIGITS}",
        f"SELECT ${DIGITS}",
        f"SELECT ARRAY[1][{DIGITS}]",
        f"CREATE TABLE t (k DECIMAL({DIGITS}))",
        f"CREATE TABLE t (k INT8 DEFAULT {DIGITS})",
        f"CREATE SEQUENCE s START {DIGITS}",
        f"CANCEL JOB {DIGITS}",
        f"BEGIN; FETCH {DIGITS} FROM c; COMMIT",
    ],
)
def test_long_numbers_are_out_of_range(door: HttpDoor, text: str) -> None:
    problem = door.refused(text)
    assert (problem["status"], problem["sqlstate"]) == (400, "22003")


def test_long_names_of_mirrors_are_refused(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    sink = f"duckdb:///{NAME}.duckdb"
    assert door.refused(f"CREATE CHANGEFEED FOR t INTO '{sink}'")["sqlstate"] == "22023"
    answer = door.post("/v1/mirrors/sql", {"mirror": sink, "sql": "SELECT 1"})
    assert answer.status_code == 400


@pytest.mark.parametrize("name", ["m.duckdb.wal", "m.WAL", "m.duckdb.wal.checkpoint", "m.tmp"])
def test_a_mirror_is_not_named_like_anothers_files(door: HttpDoor, name: str) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    problem = door.refused(f"CREATE CHANGEFEED FOR t INTO 'duckdb:///{name}'")
    assert problem["sqlstate"] == "22023"
    assert "mirror's own files" in problem["title"]
