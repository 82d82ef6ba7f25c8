"""Tables, jobs, feeds, sessions and settings over HTTP; transactions by token; forms of rows."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest

from tailrace.api.http import transactions
from tests.harness.http_door import ARROW, JSON_LINES, HttpDoor, problem_of

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)"


def items(door: HttpDoor, path: str) -> list[dict[str, Any]]:
    answer = door.client.get(path)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def begin(door: HttpDoor, **options: Any) -> str:
    answer = door.post("/v1/transactions", options)
    assert answer.status_code == 200, answer.text
    transaction: str = answer.json()["transaction"]
    return transaction


def test_transactions_span_requests(door: HttpDoor) -> None:
    door.sql(TABLE)
    transaction = begin(door)
    body = {"sql": "INSERT INTO t VALUES (1, 'a')", "transaction": transaction}
    assert door.post("/v1/sql", body).status_code == 200
    ended = door.client.post(f"/v1/transactions/{transaction}/commit").json()
    assert ended["tag"] == "COMMIT"
    assert door.rows("SELECT * FROM t") == [[1, "a"]]
    assert problem_of(door.post("/v1/sql", body))["sqlstate"] == "25P01"


def test_rollback_leaves_nothing(door: HttpDoor) -> None:
    door.sql(TABLE)
    transaction = begin(door, isolation="read committed")
    door.post("/v1/sql", {"sql": "INSERT INTO t VALUES (1, 'a')", "transaction": transaction})
    assert door.client.post(f"/v1/transactions/{transaction}/rollback").status_code == 200
    assert door.rows("SELECT * FROM t") == []


def test_idle_transactions_expire(door: HttpDoor) -> None:
    door.sql(TABLE)
    transaction = begin(door, idle_seconds=0.05)
    deadline = time.monotonic() + 10
    body = {"sql": "SELECT 1", "transaction": transaction}
    door.call(lambda: None)
    while (answer := door.post("/v1/sql", {**body, "sql": ""})).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert answer.status_code == 410
    assert problem_of(answer)["sqlstate"] == "25P03"


def test_open_and_expired_transactions_are_bounded(
    door: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "OPEN_MAX", 2)
    monkeypatch.setattr(transactions, "EXPIRED_MAX", 1)
    held = [begin(door), begin(door)]
    assert problem_of(door.post("/v1/transactions", {}))["sqlstate"] == "53300"
    for transaction in held:
        assert door.client.post(f"/v1/transactions/{transaction}/rollback").status_code == 200
    second, third = begin(door, idle_seconds=0.05), begin(door, idle_seconds=0.05)
    deadline = time.monotonic() + 10
    said: list[str] = []
    while sorted(said) != ["25P01", "25P03"]:
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
        found = (door.post("/v1/sql", {"sql": "", "transaction": id}) for id in (second, third))
        said = [problem_of(answer)["sqlstate"] for answer in found if answer.status_code != 200]


def test_one_user_leaves_room_for_others_transactions(
    door: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "OPEN_OF_USER_MAX", 2)
    held = [begin(door), begin(door)]
    problem = problem_of(door.post("/v1/transactions", {}))
    assert (problem["status"], problem["sqlstate"]) == (429, "53300")
    assert 'of user "root"' in problem["title"]
    assert door.client.post(f"/v1/transactions/{held[0]}/rollback").status_code == 200
    begin(door)


def test_rows_come_in_the_form_that_is_asked_for(door: HttpDoor) -> None:
    body = {"sql": "SELECT g AS k, 'x' AS v FROM generate_series(1, 1000) AS s (g)"}
    lines = door.client.post("/v1/sql", json=body, headers={"accept": JSON_LINES})
    assert lines.headers["content-type"].startswith(JSON_LINES)
    assert len(lines.text.splitlines()) == 1000
    assert lines.text.splitlines()[0] == '{"k":1,"v":"x"}'
    arrow = door.client.post("/v1/sql", json=body, headers={"accept": ARROW})
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("k").to_pylist() == list(range(1, 1001))
    refused = door.client.post("/v1/sql", json=body, headers={"accept": "text/html"})
    assert problem_of(refused)["status"] == 406


def test_tables_and_columns_are_listed(door: HttpDoor) -> None:
    door.sql(TABLE)
    assert [item["table_name"] for item in items(door, "/v1/tables")] == ["t"]
    assert [item["column_name"] for item in items(door, "/v1/tables/t/columns")] == ["k", "v"]
    assert problem_of(door.client.get("/v1/tables/nosuch/columns"))["status"] == 404


def test_changefeeds_are_made_and_controlled(door: HttpDoor) -> None:
    door.sql(TABLE)
    made = door.post("/v1/changefeeds", {"tables": ["t"], "into": "null://"})
    assert made.status_code == 200, made.text
    job = made.json()["job_id"]
    assert [item["job_id"] for item in items(door, "/v1/changefeeds")] == [job]
    for control in ("pause", "resume", "cancel"):
        answer = door.client.post(f"/v1/jobs/{job}/{control}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["item"]["job_id"] == job
        deadline = time.monotonic() + 10
        while door.client.get(f"/v1/jobs/{job}").json()["item"]["status"].endswith("requested"):
            assert time.monotonic() < deadline
    assert problem_of(door.client.get("/v1/jobs/1"))["status"] == 404


def test_settings_are_read_and_set(door: HttpDoor) -> None:
    path = "/v1/settings/kv.lock_timeout"
    before = door.client.get(path).json()["item"]
    changed = door.client.put(path, json={"value": "7s"}).json()["item"]
    assert changed != before
    assert door.client.delete(path).json()["item"] == before
    assert problem_of(door.client.get("/v1/settings/nosuch"))["status"] == 404
    assert len(items(door, "/v1/settings")) > 10


def test_sessions_are_listed_and_ended(door: HttpDoor) -> None:
    transaction = begin(door)
    found = [i for i in items(door, "/v1/sessions") if i["status"] == "idle in transaction"]
    [session] = [item["session_id"] for item in found]
    assert door.client.delete(f"/v1/sessions/{session}").status_code == 204
    answer = door.post("/v1/sql", {"sql": "SELECT 1", "transaction": transaction})
    assert problem_of(answer)["sqlstate"] == "57P01"
    assert problem_of(door.client.delete("/v1/queries/0"))["status"] == 404
