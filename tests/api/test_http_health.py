"""GET /healthz, and mirrors over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.api.cli.serve import start_warnings
from tailrace.api.node import NodeOptions
from tests.harness.http_door import HttpDoor, problem_of


def test_health_tells_of_the_store(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    door.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    answer = door.client.get("/healthz")
    assert answer.status_code == 200
    health = answer.json()
    assert health["status"] == "ok"
    assert health["feeds"] == 1
    assert health["store_id"] == door.node.store.id
    assert health["durable_index"] > 0


def test_failed_store_is_unhealthy(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    assert door.node.served is not None
    door.call(door.node.served.fail, OSError("no space left on device"))
    answer = door.client.get("/healthz")
    assert answer.status_code == 503
    assert answer.json()["status"] == "failed"
    assert "no space left" in answer.json()["reason"]
    problem = door.refused("INSERT INTO t VALUES (1)")
    assert (problem["status"], problem["sqlstate"]) == (503, "58030")


def test_full_disk_is_told_by_a_server_that_lives(door: HttpDoor) -> None:
    """A server with a full disk serves reads, and would not start again: no probe is to end it."""
    assert door.node.served is not None
    log = door.node.served.log
    log.full = OSError(28, "No space left on device")
    answer = door.client.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (200, "full")
    assert "No space left on device" in answer.json()["reason"]
    assert "tailrace_log_full 1.0" in door.client.get("/metrics").text
    log.full = None
    assert door.client.get("/healthz").json()["status"] == "ok"


def test_a_store_that_is_salvaged_is_told_by_what_watches_it(tmp_path: Path) -> None:
    with HttpDoor(node=NodeOptions(salvage=True), path=tmp_path / "data") as door:
        answer = door.client.get("/healthz")
        assert (answer.status_code, answer.json()["status"]) == (200, "salvage")
        reason = answer.json()["reason"]
        assert "restore the data folder from a backup" in reason
        assert list(start_warnings(door.node, None)) == [reason]
    with HttpDoor(path=tmp_path / "data") as door:
        assert door.client.get("/healthz").json()["status"] == "ok"
        assert list(start_warnings(door.node, None)) == []


def test_mirror_is_read_while_it_is_fed(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v DECIMAL(4,1))")
    door.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    door.sql("INSERT INTO t VALUES (1, 1.5), (2, 2); DELETE FROM t WHERE k = 2")
    door.wait_for_mirror("m.duckdb")
    assert door.mirror_rows("m.duckdb", "SELECT * FROM t") == [[1, "1.5"]]
    assert door.mirror_rows("duckdb:///m.duckdb", "SELECT [k, NULL] FROM t") == [[[1, None]]]


@pytest.mark.parametrize("present", [True, False])
def test_a_read_of_a_mirror_waits_for_what_was_written(door: HttpDoor, present: bool) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    door.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    asked = {"mirror": "m.duckdb", "sql": "SELECT count(*) FROM t"}
    for count in range(1, 6):
        at = door.sql("INSERT INTO t VALUES ($1)", count)[-1]["commit_timestamp"]
        answer = door.post("/v1/mirrors/sql", {**asked, "wait_for": "now" if present else at})
        assert answer.json()["rows"] == [[count]]


def test_a_wait_for_a_mirror_that_will_not_come_is_refused(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    (job,) = door.rows("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")[0]
    door.wait_for_mirror("m.duckdb")
    asked = {"mirror": "m.duckdb", "sql": "SELECT 1"}
    problem = problem_of(door.post("/v1/mirrors/sql", {**asked, "wait_for": "yesterday"}))
    assert problem["title"].startswith("wait_for: 'yesterday' is not a timestamp")
    door.sql(f"PAUSE JOB {job}")
    problem = problem_of(door.post("/v1/mirrors/sql", {**asked, "wait_for": "now"}))
    assert (problem["sqlstate"], str(job) in problem["title"]) == ("55000", True)


def test_mirrors_are_only_read(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    door.sql("CREATE CHANGEFEED FOR t INTO 'duckdb:///m.duckdb'")
    door.wait_for_mirror("m.duckdb")

    def refused(mirror: str, text: str) -> tuple[int, str]:
        problem = problem_of(door.post("/v1/mirrors/sql", {"mirror": mirror, "sql": text}))
        return problem["status"], problem["sqlstate"]

    assert refused("m.duckdb", "DELETE FROM t") == (400, "25006")
    assert refused("m.duckdb", "SELEC") == (400, "42601")
    assert refused("none.duckdb", "SELECT 1") == (404, "58P01")
    assert refused("../m.duckdb", "SELECT 1") == (403, "42501")
    assert refused("m.duckdb", "SELECT * FROM read_text('/etc/passwd')") == (403, "42501")
