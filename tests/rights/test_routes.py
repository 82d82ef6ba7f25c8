"""Each route of `docs/rights.md` without a user, with one, as granted and as an admin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from httpx2 import Response

from tests.harness.http_door import HttpDoor

from .routes import ROUTES, Route

_numbers = count(1)


@pytest.fixture(scope="module")
def door() -> Iterator[HttpDoor]:
    with HttpDoor(trust=False) as door:
        session = door.node.session()
        door.run(
            session.execute(
                "CREATE TABLE t (k INT8 PRIMARY KEY); CREATE USER boss PASSWORD 'x';"
                "GRANT admin TO boss; CREATE TABLE crashes (k INT8 PRIMARY KEY, v INT8);"
                "CREATE RELAXED LOG crash_log FOR TABLES (crashes); CREATE KEYSPACE sessions;"
                "CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb'"
            )
        )
        door.run(session.close())
        door.wait_for_mirror("m.duckdb")
        yield door


def somebody(door: HttpDoor, *rights: str) -> str:
    """A new user with these rights."""
    name = f"u{next(_numbers)}"
    session = door.node.session()
    text = ";".join([f"CREATE USER {name} PASSWORD 'x'", *rights])
    door.run(session.execute(text.format(user=name)))
    door.run(session.close())
    return name


def ask(door: HttpDoor, route: Route, user: str | None) -> Response:
    """The answer, of a stream its head alone."""
    path = route.path.format(
        table="t",
        log="crash_log",
        keyspace="sessions",
        key="k",
        position=position(door),
        transaction="none",
        job=1,
        control="nosuch",
        session="0" * 16,
        query="0" * 32,
        name="kv.gc.ttl",
        action="nosuch",
        replication="nosuch",
    )
    auth = None if user is None else (user, "x")
    with door.client.stream(route.method, path, json=route.body, auth=auth) as answer:
        if not route.streams or answer.status_code >= 400:
            answer.read()
        return answer


def position(door: HttpDoor) -> str:
    made = door.client.post("/v1/tables/t/positions", json={}, auth=("boss", "x"))
    id: str = made.json()["id"]
    return id


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_is_for_who_may(route: Route, door: HttpDoor) -> None:
    assert (ask(door, route, None).status_code == 401) is not route.anonymous or (
        route.path == "/v1/login"  # whose password is wrong
    )
    if route.anonymous:
        return
    stranger = ask(door, route, somebody(door)).status_code
    if route.everybody:
        assert stranger != 401
    else:
        assert stranger == 403
        assert ask(door, route, "boss").status_code not in (401, 403)
    if route.granted:
        assert ask(door, route, somebody(door, *route.granted)).status_code not in (401, 403)


def test_every_route_has_a_row(door: HttpDoor) -> None:
    described = door.client.get("/openapi.json", auth=("boss", "x")).json()["paths"]
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods}
    assert routes == {(route.method, route.path.partition("?")[0]) for route in ROUTES}
