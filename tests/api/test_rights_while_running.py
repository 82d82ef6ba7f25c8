"""What runs on ends with the right that allowed it: feeds, streams, tokens, sessions, exports."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from httpx2 import RemoteProtocolError

from tailrace.catalog.values.errors import SQLError
from tests.harness.http_door import HttpDoor, problem_of

ADA = ("ada", "a")
PATIENCE_SECONDS = 20.0
STEPS = {
    "revoke": "REVOKE CHANGEFEED ON orders FROM ada",
    "role": "REVOKE feeder FROM ada",
    "nologin": "ALTER USER ada NOLOGIN",
    "drop": "REVOKE CHANGEFEED ON orders FROM ada; DROP USER ada",
}


@pytest.fixture
def door() -> Iterator[HttpDoor]:
    with HttpDoor(trust=False) as door:
        as_root(
            door,
            "CREATE USER ada PASSWORD 'a'; CREATE ROLE feeder;"
            "CREATE TABLE orders (k INT8 PRIMARY KEY); INSERT INTO orders VALUES (1);"
            "GRANT CHANGEFEED ON orders TO ada",
        )
        yield door


def as_root(door: HttpDoor, text: str) -> list[tuple[object, ...]]:
    session = door.node.session()
    try:
        return list(door.run(session.execute(text))[-1].fetch_rows())
    finally:
        door.run(session.close())


def login(door: HttpDoor) -> dict[str, str]:
    answer = door.post("/v1/login", {"user": "ada", "password": "a"})
    assert answer.status_code == 200, answer.text
    return {"authorization": f"Bearer {answer.json()['token']}"}


def allowed(door: HttpDoor, bearer: dict[str, str]) -> bool:
    status = door.client.get("/v1/tables", headers=bearer).status_code
    assert status in (200, 401)
    return status == 200


def feed_of(door: HttpDoor) -> int:
    session = door.node.session(user="ada")
    [[job]] = door.run(
        session.execute("CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///m.duckdb'")
    )[-1].fetch_rows()
    door.run(session.close())
    door.wait_for_mirror("duckdb:///m.duckdb")
    assert isinstance(job, int)
    return job


def wait_until_ended(door: HttpDoor, job: int) -> str:
    """How it ended: its error, or that it was canceled."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        [found] = door.run(door.node.services.jobs.list(changefeeds_only=True))
        if found.state in ("failed", "canceled"):
            return found.error or found.state
        assert found.id == job
        assert time.monotonic() < deadline, found


@pytest.mark.parametrize("step", STEPS)
def test_a_feed_ends_with_its_owners_right(door: HttpDoor, step: str) -> None:
    if step == "role":
        as_root(door, "REVOKE CHANGEFEED ON orders FROM ada; GRANT CHANGEFEED ON orders TO feeder")
        as_root(door, "GRANT feeder TO ada")
    job = feed_of(door)
    as_root(door, STEPS[step])
    told = wait_until_ended(door, job)
    if step == "nologin":
        assert "login" in told
    else:
        assert "ada" in told or (step, told) == ("drop", "canceled")
    as_root(door, "INSERT INTO orders VALUES (2)")
    read = door.node.read_mirror("duckdb:///m.duckdb", "FROM orders")
    assert door.run(read).to_pylist() == [{"k": 1}]


def test_a_feed_whose_owner_lost_a_right_is_altered_into_nothing_more(door: HttpDoor) -> None:
    """Its owner is refused, so is a table that the owner could not follow; and whatever somebody
    else alters, it is not resumed without its owner's right."""
    as_root(door, "CREATE TABLE refunds (k INT8 PRIMARY KEY)")
    job = feed_of(door)
    as_root(door, f"PAUSE JOB {job}")
    while door.run(door.node.services.jobs.list(changefeeds_only=True))[0].state != "paused":
        time.sleep(0.01)
    as_root(door, STEPS["revoke"])
    ada = door.node.session(user="ada")
    with pytest.raises(SQLError) as refused:
        door.run(ada.execute(f"ALTER CHANGEFEED {job} ADD refunds"))
    assert refused.value.sqlstate == "42501"
    door.run(ada.close())
    with pytest.raises(SQLError, match=r"owner ada .* does not have CHANGEFEED") as refused:
        as_root(door, f"ALTER CHANGEFEED {job} ADD refunds")
    assert refused.value.sqlstate == "42501"
    as_root(door, f"ALTER CHANGEFEED {job} SET metrics_label = 'eu'")
    with pytest.raises(SQLError, match="its owner ada does not have CHANGEFEED") as refused:
        as_root(door, f"RESUME JOB {job}")
    assert refused.value.sqlstate == "42501"


def test_a_feed_of_a_role_without_login_goes_on(door: HttpDoor) -> None:
    as_root(door, "GRANT CHANGEFEED ON orders TO feeder; GRANT feeder TO ada")
    session = door.node.session(user="ada")
    door.run(
        session.execute(
            "SET ROLE feeder; CREATE CHANGEFEED FOR TABLE orders INTO 'duckdb:///m.duckdb'"
        )
    )
    as_root(door, "INSERT INTO orders VALUES (2); ALTER USER ada NOLOGIN")
    as_root(door, "INSERT INTO orders VALUES (3)")
    door.wait_for_mirror("duckdb:///m.duckdb")
    door.run(session.close())


@pytest.mark.parametrize("step", STEPS)
def test_a_stream_ends_with_its_users_right(door: HttpDoor, step: str) -> None:
    if step == "role":
        as_root(door, "REVOKE CHANGEFEED ON orders FROM ada; GRANT SELECT ON orders TO feeder")
        as_root(door, "GRANT feeder TO ada")

    async def scenario() -> str:
        session = door.node.session(user="ada")
        try:
            result = (await session.execute("CREATE CHANGEFEED FOR TABLE orders"))[-1]
            assert result.stream is not None
            assert await anext(result.stream)
            other = door.node.session()
            await other.execute(STEPS[step])
            await other.close()
            with pytest.raises(SQLError) as caught:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await anext(result.stream)
            return caught.value.sqlstate
        finally:
            await session.close()

    assert door.run(scenario()) in ("42501", "57P01")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER USER ada PASSWORD 'new'",
        "ALTER USER ada NOLOGIN",
        "REVOKE CHANGEFEED ON orders FROM ada; DROP USER ada",
    ],
)
def test_tokens_end_with_the_password_and_the_user(door: HttpDoor, change: str) -> None:
    bearers = [login(door) for _ in range(2)]
    assert all(allowed(door, bearer) for bearer in bearers)
    as_root(door, change)
    assert not any(allowed(door, bearer) for bearer in bearers)


def test_a_token_does_not_serve_a_new_user_of_the_name(door: HttpDoor) -> None:
    bearer = login(door)
    as_root(door, "REVOKE CHANGEFEED ON orders FROM ada; DROP USER ada")
    as_root(door, "CREATE USER ada PASSWORD 'a'; GRANT admin TO ada")
    assert not allowed(door, bearer)
    assert allowed(door, login(door))


def test_tokens_of_others_stay(door: HttpDoor) -> None:
    bearer = login(door)
    as_root(door, "CREATE USER bo PASSWORD 'b'; ALTER USER bo PASSWORD 'c'; DROP USER bo")
    as_root(door, "ALTER USER ada CREATEDB")
    assert allowed(door, bearer)


@pytest.mark.parametrize("change", ["ALTER USER ada NOLOGIN", STEPS["drop"]])
def test_sessions_end_with_the_login(door: HttpDoor, change: str) -> None:
    session = door.node.session(user="ada")
    door.run(session.execute("SELECT 1"))
    as_root(door, f"{change}; CREATE USER IF NOT EXISTS ada")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while session.terminated is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    with pytest.raises(SQLError) as caught:
        door.run(session.execute("SELECT 1"))
    assert caught.value.sqlstate == "57P01"
    door.run(session.close())


def test_an_export_ends_with_the_right_to_it(door: HttpDoor) -> None:
    """In the middle of its body, which lacks its end."""
    as_root(door, "GRANT SELECT ON orders TO ada; ALTER TABLE orders ADD COLUMN v STRING")
    as_root(door, "INSERT INTO orders SELECT k, repeat('x', 1000) FROM generate_series(2, 60000) k")
    with door.client.stream("GET", "/v1/tables/orders/export", auth=ADA) as answer:
        parts = answer.iter_raw()
        next(parts)
        as_root(door, "REVOKE SELECT ON orders FROM ada")
        with pytest.raises(RemoteProtocolError):
            for _ in parts:
                pass
    refused = door.client.get("/v1/tables/orders/export", auth=ADA)
    assert problem_of(refused)["sqlstate"] == "42501"


def test_event_streams_end_with_the_right_to_them(door: HttpDoor) -> None:
    as_root(door, "GRANT SYSTEM VIEWJOB TO ada")
    with door.client.stream("GET", "/v1/overview/events", auth=ADA) as answer:
        parts = answer.iter_raw()
        next(parts)
        as_root(door, "REVOKE SYSTEM VIEWJOB FROM ada")
        assert sum(1 for _ in parts) < 10, "it has an end"


def test_nothing_of_a_dropped_user_runs_for_a_new_one_of_the_name(door: HttpDoor) -> None:
    """A paused feed and a schedule, also where the name is there again at the same moment."""
    feed = feed_of(door)
    session = door.node.session(user="ada")
    door.run(
        session.execute(
            f"PAUSE JOB {feed};"
            "CREATE SCHEDULE s FOR CHANGEFEED orders INTO 'file:///adas' RECURRING '@daily'"
        )
    )
    door.run(session.close())
    as_root(
        door,
        "REVOKE CHANGEFEED ON orders FROM ada; DROP USER ada; CREATE USER ada PASSWORD 'a';"
        "GRANT CHANGEFEED ON orders TO ada",
    )
    assert wait_until_ended(door, feed) == "canceled"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while door.run(door.node.services.jobs.schedules()):
        assert time.monotonic() < deadline
