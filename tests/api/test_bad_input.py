"""Bad input to feeds and tables, through a door: a clear error, and nothing half done."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import tailrace
from tailrace import NodeOptions
from tests.harness.http_door import HttpDoor

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING NOT NULL)"


@pytest.mark.parametrize(
    ("text", "sqlstate", "says"),
    [
        ("CREATE CHANGEFEED FOR t INTO 'nats://x' ", "22023", "nats"),
        ("CREATE CHANGEFEED FOR t INTO 'null://' WITH nonsense", "22023", "nonsense"),
        ("CREATE CHANGEFEED FOR t INTO 'null://' WITH cursor = '1'", "22023", "cursor"),
        ("CREATE CHANGEFEED FOR u INTO 'null://'", "42P01", "u"),
        ("CREATE CHANGEFEED FOR t INTO 'duckdb:///../m.duckdb'", "42501", ".."),
        ("CREATE CHANGEFEED FOR t INTO 'duckdb:////etc/m.duckdb'", "42501", "/etc/m.duckdb"),
        ("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb?apply=x'", "22023", "apply"),
        ("INSERT INTO t VALUES (1, NULL)", "23502", "v"),
        ("INSERT INTO t VALUES (9223372036854775808, 'a')", "22003", "9223372036854775808"),
        ("INSERT INTO t VALUES ('x', 'a')", "22P02", "x"),
        (
            "BEGIN; CREATE TABLE w (k INT8 PRIMARY KEY); "
            "ALTER TABLE t SET (changefeed_optimized = true); COMMIT",
            "25001",
            "changefeed_optimized",
        ),
        ("CANCEL JOB 12345", "42704", "12345"),
        ("SET CLUSTER SETTING nonsense = 1", "42704", "nonsense"),
    ],
)
def test_bad_statements_are_told_apart(door: HttpDoor, text: str, sqlstate: str, says: str) -> None:
    door.sql(TABLE)
    problem = door.refused(text)
    assert (problem["sqlstate"], says in str(problem)) == (sqlstate, True), problem
    assert door.rows("SHOW CHANGEFEED JOBS") == []
    assert door.rows("SHOW TABLES") == [["public", "t", "table", False]]
    assert door.rows("SELECT * FROM t") == []


def test_unknown_options_list_the_known(door: HttpDoor) -> None:
    door.sql(TABLE)
    problem = door.refused("CREATE CHANGEFEED FOR t INTO 'null://' WITH nonsense")
    for option in ("updated", "mvcc_timestamp", "resolved", "cursor", "initial_scan"):
        assert option in problem["hint"], problem


def test_second_feed_into_a_mirror_table_is_refused(door: HttpDoor) -> None:
    door.sql(TABLE)
    feed = "CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'"
    door.sql(feed)
    door.wait_for_mirror("m.duckdb")
    problem = door.refused(feed)
    assert problem["sqlstate"] == "55000"
    assert len(door.rows("SHOW CHANGEFEED JOBS")) == 1


def test_mirrors_of_others_are_refused(tmp_path: Path) -> None:
    """A file of another store, and one that somebody else made."""
    options = NodeOptions(mirror_roots=(tmp_path,))
    feed = "CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'"
    with tailrace.open(":memory:", options) as db:
        db.sql(TABLE)
        db.sql(feed)
        db.mirror("m.duckdb").wait()
    with duckdb.connect(tmp_path / "own.duckdb") as own:
        own.execute("CREATE TABLE t (k BIGINT)")
    with tailrace.open(":memory:", options) as db:
        db.sql(TABLE)
        with pytest.raises(tailrace.SQLError, match="belongs to store"):
            db.sql(feed)
        with pytest.raises(tailrace.SQLError, match="no changefeed made it"):
            db.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///own.duckdb'")
        assert db.sql("SHOW CHANGEFEED JOBS").fetchall() == []


def test_the_sinks_of_the_documents_are_there(door: HttpDoor) -> None:
    text = (Path(tailrace.__path__[0]) / "docs" / "sinks.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \| [^|]+\|$", text.split("\n## ")[0], re.MULTILINE)
    told = {scheme for row in rows for scheme in re.findall(r"`([^`]+)`", row)}
    door.sql(TABLE)
    hint = door.refused("CREATE CHANGEFEED FOR t INTO 'nats://x'")["hint"]
    assert told - {"external"} <= set(re.findall(r"[\w+-]+", hint.partition(":")[2]))
    assert len(told) > 15
