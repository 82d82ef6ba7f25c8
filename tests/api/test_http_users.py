"""Users at the HTTP door: passwords, tokens, and the rights behind each route."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from tailrace.api.http import access
from tailrace.api.http.server import http_options
from tailrace.api.refusal import NodeRefused
from tailrace.catalog.rights import web_sessions
from tailrace.changefeed.sinks.worker_tokens import Worker
from tests.harness.http_door import HttpDoor, problem_of

ADA = ("ada", "pässword")
ADMIN = ("root2", "x")


@pytest.fixture
def secure() -> Iterator[HttpDoor]:
    """A door that asks who one is, with a table that ada may read."""
    with HttpDoor(trust=False) as door:
        session = door.node.session()
        door.run(
            session.execute(
                "CREATE USER ada PASSWORD 'pässword'; CREATE USER root2 PASSWORD 'x';"
                "GRANT admin TO root2; CREATE ROLE nobody;"
                "CREATE TABLE orders (k INT8 PRIMARY KEY);"
                "CREATE TABLE secret (k INT8 PRIMARY KEY);"
                "INSERT INTO orders VALUES (1); GRANT SELECT ON orders TO ada"
            )
        )
        door.run(session.close())
        yield door


def login(door: HttpDoor, name: str = "ada", password: str = "pässword", **more: Any) -> str:
    answer = door.post("/v1/login", {"user": name, "password": password, **more})
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["token"]
    return token


def test_nobody_is_refused_at_every_door(secure: HttpDoor) -> None:
    for path in ("/", "/metrics", "/v1/jobs", "/v1/debug/ranges", "/openapi.json", "/nosuch"):
        answer = secure.client.get(path)
        assert problem_of(answer)["sqlstate"] == "28000", path
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert secure.client.get("/healthz").status_code == 200


def test_a_password_lets_its_user_in(secure: HttpDoor) -> None:
    for _ in range(2):  # the second time from what is remembered
        answer = secure.client.post(
            "/v1/sql", json={"sql": "SELECT current_user, k FROM orders"}, auth=ADA
        )
        assert answer.json()["results"][0]["rows"] == [["ada", 1]]
    wrong = secure.client.post("/v1/sql", json={"sql": "SELECT 1"}, auth=("ada", "wrong"))
    assert wrong.status_code == 401
    assert secure.client.get("/v1/jobs", auth=("nobody", "")).status_code == 401


def test_a_password_that_was_changed_is_forgotten(secure: HttpDoor) -> None:
    assert secure.client.get("/v1/jobs", auth=ADA).status_code == 200
    change = {"sql": "ALTER USER ada PASSWORD 'new'"}
    assert secure.client.post("/v1/sql", json=change, auth=ADA).status_code == 200
    assert secure.client.get("/v1/jobs", auth=ADA).status_code == 401


def test_tokens_live_until_logout(secure: HttpDoor) -> None:
    bearer = {"authorization": f"Bearer {login(secure)}"}
    assert secure.client.get("/v1/tables", headers=bearer).status_code == 200
    assert secure.client.post("/v1/logout", headers=bearer).status_code == 204
    assert secure.client.get("/v1/tables", headers=bearer).status_code == 401


def test_a_user_has_a_bounded_number_of_tokens(
    secure: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_sessions, "SESSIONS_MAX", 2)
    other = login(secure, *ADMIN)
    tokens = [login(secure) for _ in range(3)]
    answers = [
        secure.client.get("/v1/tables", headers={"authorization": f"Bearer {token}"}).status_code
        for token in [other, *tokens]
    ]
    assert answers == [200, 401, 200, 200], "the oldest of the same user goes"


def test_remembered_passwords_are_bounded(
    secure: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "REMEMBERED_MAX", 1)
    for user in (ADA, ADMIN, ADA):
        assert secure.client.get("/v1/tables", auth=user).status_code == 200
    doorkeepers = [found for found in gc.get_objects() if type(found) is access.Doorkeeper]
    assert [len(d._right) for d in doorkeepers if d._node is secure.node and d._right] == [1]


def test_tokens_are_kept_as_hashes(secure: HttpDoor) -> None:
    token = login(secure)
    answer = secure.client.post(
        "/v1/sql", json={"sql": "SELECT * FROM system.web_sessions"}, auth=("root2", "x")
    )
    assert answer.json()["results"][0]["row_count"] == 1
    assert token not in answer.text


def test_rights_hold_behind_every_route(secure: HttpDoor) -> None:
    client = secure.client
    assert client.get("/v1/tables/orders", auth=ADA).status_code == 200
    for path in (
        "/v1/tables/secret", "/v1/tables/secret/export", "/v1/tables/secret/spans",
        "/v1/tables/secret/columns", "/v1/settings", "/v1/debug/ranges", "/v1/overview/events",
    ):  # fmt: skip
        assert problem_of(client.get(path, auth=ADA))["sqlstate"] == "42501", path
    load = client.post(
        "/v1/tables/orders/rows", content=b'{"k": 2}',
        headers={"content-type": "application/x-ndjson"}, auth=ADA,
    )  # fmt: skip
    assert problem_of(load)["sqlstate"] == "42501"
    mirror = {"mirror": "duckdb:///m.duckdb", "sql": "SELECT 1"}
    assert problem_of(client.post("/v1/mirrors/sql", json=mirror, auth=ADA))["sqlstate"] == "42501"


def test_a_workers_token_is_worth_one_tables_export(secure: HttpDoor) -> None:
    """By the right of the feed's owner to that table, which need not be SELECT."""
    client, tokens = secure.client, secure.node.worker_tokens
    admin = secure.node.session()
    secure.run(admin.execute("GRANT CHANGEFEED ON secret TO ada"))
    table = client.get("/v1/tables/secret", auth=ADMIN).json()["table_id"]
    with tokens.lent(Worker("ada", table)) as token:
        bearer = {"authorization": f"Bearer {token}"}
        for path in ("", "/spans", "/export"):
            assert client.get(f"/v1/tables/{table}{path}", headers=bearer).status_code == 200
        made = client.post(f"/v1/tables/{table}/positions", json={}, headers=bearer)
        position = made.json()["id"]
        assert client.get(f"/v1/positions/{position}", headers=bearer).status_code == 200
        others = client.post("/v1/tables/orders/positions", json={}, auth=ADMIN).json()["id"]
        assert client.get(f"/v1/positions/{others}", headers=bearer).status_code == 404
        assert client.delete(f"/v1/positions/{others}", headers=bearer).status_code == 204
        assert client.get(f"/v1/positions/{others}", auth=ADMIN).status_code == 200
        for method, path in (
            ("GET", "/v1/tables/orders/export"), ("GET", "/v1/tables/secret/export"),
            ("GET", "/v1/jobs"), ("POST", "/v1/sql"), ("POST", f"/v1/tables/{table}/rows"),
            ("GET", "/v1/debug/ranges"), ("GET", "/metrics"), ("POST", "/v1/mirrors/sql"),
        ):  # fmt: skip
            answer = client.request(method, path, headers=bearer)
            assert problem_of(answer)["sqlstate"] == "42501", path
        secure.run(admin.execute("REVOKE CHANGEFEED ON secret FROM ada"))
        answer = client.get(f"/v1/tables/{table}/export", headers=bearer)
        assert problem_of(answer)["sqlstate"] == "42501"
    assert client.get(f"/v1/tables/{table}", headers=bearer).status_code == 401
    secure.run(admin.close())


def test_insecure_is_for_loopback_alone() -> None:
    with pytest.raises(NodeRefused, match="--insecure"):
        http_options("0.0.0.0", insecure=True, cert=None, key=None)
    with pytest.raises(NodeRefused, match="--cert"):
        http_options("0.0.0.0", insecure=False, cert=None, key=None)
    open_door = http_options("0.0.0.0", insecure=False, cert=Path("c"), key=Path("k"))
    assert not open_door.trust
    assert http_options("127.0.0.1", insecure=True, cert=None, key=None).trust


def test_feeds_are_resumed_only_while_their_owner_may_make_them(secure: HttpDoor) -> None:
    def control(what: str, user: tuple[str, str]) -> Response:
        answer = secure.client.post(f"/v1/jobs/{job}/{what}", auth=user)
        deadline = time.monotonic() + 10
        while (
            secure.client.get(f"/v1/jobs/{job}", auth=ADA)
            .json()["item"]["status"]
            .endswith("requested")
        ):
            assert time.monotonic() < deadline
        return answer

    def as_root(sql: str) -> None:
        answer = secure.client.post("/v1/sql", json={"sql": sql}, auth=ADMIN)
        assert answer.status_code == 200, answer.text

    as_root("GRANT CHANGEFEED ON orders TO ada")
    feed = "CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///m.duckdb'"
    made = secure.client.post("/v1/sql", json={"sql": feed}, auth=ADA)
    job = made.json()["results"][0]["rows"][0][0]
    assert control("pause", ADA).status_code == 200
    as_root("REVOKE CHANGEFEED ON orders FROM ada")
    for user in (ADA, ADMIN):  # whose right it is does not hang on who resumes
        problem = problem_of(control("resume", user))
        assert problem["sqlstate"] == "42501"
        assert "owner ada does not have CHANGEFEED privilege on relation orders" in problem["title"]
    as_root("GRANT CHANGEFEED ON orders TO ada")
    assert control("resume", ADA).status_code == 200
