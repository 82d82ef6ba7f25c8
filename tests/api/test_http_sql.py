"""POST /v1/sql."""

from __future__ import annotations

import time
from typing import Any

import httpx2
import pytest

from tests.harness.http_door import HttpDoor, problem_of

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING NOT NULL)"


def test_statements_give_one_result_each(door: HttpDoor) -> None:
    results = door.sql(f"{TABLE}; INSERT INTO t VALUES ($1, $2); SELECT * FROM t", 1, "one")
    assert [result["tag"] for result in results] == ["CREATE TABLE", "INSERT 0 1", "SELECT 1"]
    assert results[2]["columns"] == [
        {"name": "k", "type": "INT8"},
        {"name": "v", "type": "STRING"},
    ]
    assert results[2]["rows"] == [[1, "one"]]
    assert "rows" not in results[1]


def test_every_type_has_its_json(door: HttpDoor) -> None:
    door.sql(
        "CREATE TABLE a (k UUID PRIMARY KEY, b BOOL, i INT8, f FLOAT8, d DECIMAL(20,3), s STRING,"
        " y BYTES, da DATE, ts TIMESTAMP, tz TIMESTAMPTZ, t TIME, iv INTERVAL, j JSONB, ar UUID[])"
    )
    given = [
        "6f5a1c6e-7a0b-4c6e-8d8b-2f1f6f1f6f1f", True, -(2**63), "inf", "12345678901234567.125",
        "é\n", "\\x00ff", "2020-02-29", "2020-02-29T01:02:03.000004", "2020-02-29T01:02:03Z",
        "10:30:00.000005", "1 mon -1 days", {"a": [1, "x"]},
        ["6f5a1c6e-7a0b-4c6e-8d8b-2f1f6f1f6f1f"],
    ]  # fmt: skip
    places = ", ".join(f"${place}" for place in range(1, 15))
    door.sql(f"INSERT INTO a VALUES ({places})", *given)
    by_key = door.rows("SELECT * FROM a WHERE k = $1", given[0])
    by_duckdb = door.rows("SELECT *, count(*) OVER () FROM a")
    assert by_key == [given]
    assert by_duckdb == [[*given, 1]]


def test_long_results_arrive_whole(door: HttpDoor) -> None:
    result = door.sql("SELECT i, i * 0.5 FROM generate_series(1, 10000) AS s(i)")[0]
    assert result["row_count"] == len(result["rows"]) == 10_000
    assert [row[0] for row in result["rows"]] == list(range(1, 10_001))


def test_error_names_the_statement(door: HttpDoor) -> None:
    text = f"{TABLE}; INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'b'); DELETE FROM t"
    problem = door.refused(text)
    assert (problem["status"], problem["sqlstate"], problem["statement"]) == (409, "23505", 2)
    assert door.rows("SELECT * FROM t") == [[1, "a"]]


def test_syntax_error_shows_its_position_and_runs_nothing(door: HttpDoor) -> None:
    problem = door.refused(f"{TABLE}; SELEC 1")
    assert (problem["status"], problem["sqlstate"]) == (400, "42601")
    assert problem["position"] == len(TABLE) + 3
    assert door.rows("SHOW TABLES") == []


def test_open_transaction_is_rolled_back(door: HttpDoor) -> None:
    door.sql(TABLE)
    problem = door.refused("BEGIN; INSERT INTO t VALUES (1, 'a')")
    assert problem["sqlstate"] == "25000"
    assert "COMMIT" in problem["hint"]
    assert door.rows("SELECT * FROM t") == []
    door.sql("INSERT INTO t VALUES (1, 'b')")  # no lock is left


def test_failed_transaction_leaves_nothing(door: HttpDoor) -> None:
    door.sql(TABLE)
    problem = door.refused("BEGIN; INSERT INTO t VALUES (1, 'a'); SELECT nope FROM t; COMMIT")
    assert (problem["sqlstate"], problem["statement"]) == ("42703", 2)
    assert door.rows("SELECT * FROM t") == []


def test_stream_is_refused_before_anything_runs(door: HttpDoor) -> None:
    door.sql(TABLE)
    problem = door.refused("INSERT INTO t VALUES (1, 'a'); CREATE CHANGEFEED FOR t")
    assert (problem["sqlstate"], problem["statement"]) == ("0A000", 1)
    assert "INTO" in problem["hint"]
    assert door.rows("SELECT * FROM t") == []


def test_requests_have_sessions_of_their_own(door: HttpDoor) -> None:
    door.sql("CREATE DATABASE other")
    body = {"sql": TABLE, "database": "other"}
    assert door.post("/v1/sql", body).status_code == 200
    assert door.rows("SHOW TABLES") == []
    assert door.refused("SELECT * FROM t")["sqlstate"] == "42P01"
    assert door.refused("SELECT * FROM t", database="nowhere")["sqlstate"] == "3D000"


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not JSON"),
        (b'{"sql": ', 400, "not JSON"),
        (b'{"sql": "SELECT \xff"}', 400, "not JSON"),
        (b'{"sql": "SELECT \'\\ud800\'"}', 400, "not JSON"),
        (b"[" * 100_000, 422, "object"),
        (b"[]", 422, "object"),
        (b"{}", 422, "`sql`"),
        (b'{"sql": 5}', 422, "$.sql"),
        (b'{"sql": "SELECT 1", "parms": []}', 422, "parms"),
        (b'{"sql": "SELECT $1", "params": "x"}', 422, "$.params"),
        (b'{"sql": "SELECT $1", "params": {"a": 1}}', 422, "$.params"),
    ],
)
def test_bad_bodies_say_what_is_wrong(door: HttpDoor, body: bytes, status: int, says: str) -> None:
    answer = door.client.post("/v1/sql", content=body, headers={"content-type": "application/json"})
    problem = problem_of(answer)
    assert problem["status"] == status
    assert says in problem["detail"]


def test_other_content_types_are_refused(door: HttpDoor) -> None:
    body = b'{"sql": "CREATE TABLE u (k INT8 PRIMARY KEY)"}'
    for headers in ({}, {"content-type": "text/plain"}, {"content-type": "application/x-ndjson"}):
        answer = door.client.post("/v1/sql", content=body, headers=headers)
        assert problem_of(answer)["status"] == 415
    assert door.rows("SHOW TABLES") == []


def test_huge_bodies_are_refused(door: HttpDoor) -> None:
    problem = door.refused("SELECT '" + "x" * (17 << 20) + "'")
    assert (problem["status"], problem["sqlstate"]) == (413, "54000")


def test_unknown_paths_and_methods_are_problems(door: HttpDoor) -> None:
    assert problem_of(door.client.get("/v1/nothing"))["status"] == 404
    answer = door.client.get("/v1/sql")
    assert problem_of(answer)["status"] == 405
    assert answer.headers["allow"] == "POST"


def test_faults_show_no_internals(door: HttpDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("the secret")

    monkeypatch.setattr(door.node, "session", broken)
    problem = door.refused("SELECT 1")
    assert (problem["status"], problem["sqlstate"]) == (500, "XX000")
    assert "secret" not in str(problem)


def test_openapi_describes_the_bodies(door: HttpDoor) -> None:
    document = door.client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    request = document["paths"]["/v1/sql"]["post"]["requestBody"]["content"]["application/json"]
    assert request["schema"] == {"$ref": "#/components/schemas/SqlRequest"}
    assert set(schemas["SqlRequest"]["properties"]) == {
        "sql",
        "params",
        "database",
        "transaction",
    }
    loads = document["paths"]["/v1/tables/{table}/rows"]["post"]["requestBody"]["content"]
    assert set(loads) == {"application/vnd.apache.arrow.stream", "application/x-ndjson"}
    assert {"SqlReply", "LoadReply", "Health", "Problem", "MirrorReply"} <= set(schemas)


def test_openapi_describes_every_refusal_as_a_problem(door: HttpDoor) -> None:
    document = door.client.get("/openapi.json").json()
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["responses"]["default"]["content"] == problem, path
            assert "422" not in operation["responses"], path


def test_a_client_that_hangs_up_ends_its_statement_and_is_no_fault(
    door: HttpDoor, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = "SELECT pg_sleep(60)"
    with pytest.raises(httpx2.ReadTimeout):
        door.client.post("/v1/sql", json={"sql": waiting}, timeout=0.5)
    deadline = time.monotonic() + 10
    while any(query["query"] == waiting for query in running(door)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert [record.getMessage() for record in caplog.records] == []


def running(door: HttpDoor) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = door.client.get("/v1/queries").json()["items"]
    return queries
