"""POST /v1/sql with results that are computed while they are sent."""

from __future__ import annotations

import asyncio
import io
import json
import time
from unittest.mock import patch

import httpx2
import pyarrow as pa
import pyarrow.ipc
import pytest
from starlette.types import Message, Receive, Scope, Send

from tailrace.api.http.ending import EndingReplies
from tests.harness.http_door import ARROW, JSON_LINES, HttpDoor, problem_of

SERIES = "SELECT i, i * 2 AS double FROM generate_series(1, 100000) AS s(i)"
FAILING = "SELECT 9 / (150000 - i), repeat('x', 200) FROM generate_series(1, 200000) AS s(i)"
ENDLESS = "SELECT i FROM generate_series(1, 100000000000) AS s(i)"


def test_every_form_says_all_of_it(door: HttpDoor) -> None:
    expected = [[i, i * 2] for i in range(1, 100_001)]
    first, last = door.sql(f"SELECT 1; {SERIES}")
    assert first["rows"] == [[1]]
    assert last["rows"] == expected
    assert (last["tag"], last["row_count"]) == ("SELECT 100000", 100_000)
    lines = ask(door, SERIES, JSON_LINES).text.splitlines()
    assert [list(json.loads(line).values()) for line in lines] == expected
    table = pa.ipc.open_stream(io.BytesIO(ask(door, SERIES, ARROW).content)).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == expected
    settled(door)


def ask(door: HttpDoor, text: str, form: str) -> httpx2.Response:
    answer = door.client.post("/v1/sql", json={"sql": text}, headers={"accept": form})
    assert answer.status_code == 200, answer.text
    return answer


def settled(door: HttpDoor) -> None:
    """Nothing waits for a client any more."""
    for _ in range(200):
        if not door.node.store.metrics.get("sql_results_waiting"):
            return
        time.sleep(0.02)
    raise AssertionError("results still wait")


@pytest.mark.parametrize("form", ["application/json", JSON_LINES, ARROW])
def test_a_reply_that_fails_says_so_and_is_broken_off(door: HttpDoor, form: str) -> None:
    body = b""
    with (
        pytest.raises(httpx2.RemoteProtocolError),
        door.client.stream(
            "POST", "/v1/sql", json={"sql": FAILING}, headers={"accept": form}
        ) as answer,
    ):
        assert answer.status_code == 200
        for chunk in answer.iter_bytes():
            body += chunk
    if form == ARROW:
        assert not body.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    else:
        told = json.loads(body if form != JSON_LINES else body.splitlines()[-1])
        problem = told["error"] if form != JSON_LINES else told[1]
        assert (problem["sqlstate"], problem["title"]) == ("22012", "division by zero")
    settled(door)


def test_an_error_in_the_first_rows_is_a_problem(door: HttpDoor) -> None:
    text = "SELECT 9 / (i - 5) FROM generate_series(1, 90000) AS s(i)"
    problem = problem_of(door.post("/v1/sql", {"sql": text}))
    assert problem["sqlstate"] == "22012"


def test_a_client_that_leaves_takes_its_query_along(door: HttpDoor) -> None:
    with door.client.stream(
        "POST", "/v1/sql", json={"sql": ENDLESS}, headers={"accept": JSON_LINES}
    ) as answer:
        assert next(answer.iter_lines()) == '{"i":1}'
        assert door.rows("SELECT 1") == [[1]]
    settled(door)


def test_a_transaction_by_token_streams(door: HttpDoor) -> None:
    door.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
    token = door.post("/v1/transactions", {}).json()["transaction"]
    text = f"INSERT INTO t SELECT i FROM ({SERIES}) AS x; SELECT k FROM t ORDER BY k"
    results = door.post("/v1/sql", {"sql": text, "transaction": token}).json()["results"]
    assert results[1]["rows"] == [[k] for k in range(1, 100_001)]
    with pytest.raises(httpx2.RemoteProtocolError):
        door.post("/v1/sql", {"sql": FAILING, "transaction": token})
    ended = door.post(f"/v1/transactions/{token}/commit", {}).json()
    assert ended["tag"] == "ROLLBACK"
    settled(door)


def test_a_query_is_cancelled_while_its_reply_is_sent(door: HttpDoor) -> None:
    with (
        pytest.raises(httpx2.RemoteProtocolError),
        door.client.stream(
            "POST", "/v1/sql", json={"sql": ENDLESS}, headers={"accept": JSON_LINES}
        ) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        queries = door.client.get("/v1/queries").json()["items"]
        (query,) = [query for query in queries if query["query"] == ENDLESS]
        door.client.delete(f"/v1/queries/{query['query_id']}")
        told: object = None
        for line in lines:
            told = json.loads(line)
    assert isinstance(told, list)
    assert told[0] == "error"
    assert told[1]["sqlstate"] == "57014"
    settled(door)


def test_fault_in_a_reply_is_the_statements_error(door: HttpDoor) -> None:
    body = b""
    fault = RuntimeError("a fault of ours")
    with (
        patch("tailrace.api.http.streamed_replies.encode_rows", side_effect=fault),
        pytest.raises(httpx2.RemoteProtocolError),
        door.client.stream("POST", "/v1/sql", json={"sql": SERIES}) as answer,
    ):
        for chunk in answer.iter_bytes():
            body += chunk
    assert json.loads(body)["error"]["sqlstate"] == "XX000"
    assert door.rows("SELECT 1") == [[1]]
    settled(door)


def test_fault_of_a_statement_is_its_error(door: HttpDoor) -> None:
    with patch(
        "tailrace.sql.session.session.run_planned", side_effect=RuntimeError("a fault of ours")
    ):
        answer = door.client.post("/v1/sql", json={"sql": "SELECT 1; SELECT 2"})
    assert (answer.status_code, answer.json()["sqlstate"]) == (500, "XX000")
    assert answer.json()["statement"] == 0
    assert door.rows("SELECT 1") == [[1]]


def test_request_that_outlasts_the_servers_patience_is_told() -> None:
    sent: list[Message] = []

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        replies = EndingReplies(never)
        asked = asyncio.create_task(replies({"type": "http"}, receive, send))
        await asyncio.sleep(0)
        replies.stop()
        asked.cancel()  # as uvicorn does
        await asked

    asyncio.run(ask())
    assert sent[0]["status"] == 503
    assert b"57P01" in sent[1]["body"]
