"""Whose a mirror is, who may read it, and what becomes of a read whose right or client has gone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from httpx2 import Response

from tests.harness.http_door import HttpDoor, problem_of

ADA, BO, ADMIN = ("ada", "a"), ("bo", "b"), ("dba", "d")
MIRROR = "duckdb:///m.duckdb"
ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
PATIENCE_SECONDS = 20.0


class Town:
    """Ada has a table with a feed into a mirror, bo a table of his own."""

    def __init__(self, door: HttpDoor) -> None:
        self.door = door
        session = door.node.session()
        door.run(
            session.execute(
                "CREATE USER ada PASSWORD 'a'; CREATE USER bo PASSWORD 'b';"
                "CREATE USER dba PASSWORD 'd'; GRANT admin TO dba"
            )
        )
        door.run(session.close())
        self.sql(ADA, "CREATE TABLE secret (k INT8 PRIMARY KEY); INSERT INTO secret VALUES (7)")
        self.sql(BO, "CREATE TABLE own (k INT8 PRIMARY KEY); INSERT INTO own VALUES (1)")
        self.sql(ADA, f"CREATE CHANGEFEED FOR TABLE secret INTO '{MIRROR}'")
        door.wait_for_mirror(MIRROR)

    def post(self, user: tuple[str, str], path: str, body: object) -> Response:
        return self.door.client.post(path, json=body, auth=user)

    def sql(self, user: tuple[str, str], text: str) -> list[list[Any]]:
        answer = self.post(user, "/v1/sql", {"sql": text})
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["results"][-1].get("rows", [])
        return rows

    def refused(self, user: tuple[str, str], text: str) -> str:
        problem = problem_of(self.post(user, "/v1/sql", {"sql": text}))
        assert problem["sqlstate"] == "42501", problem
        return str(problem["title"])

    def read(self, user: tuple[str, str], text: str) -> Response:
        return self.post(user, "/v1/mirrors/sql", {"mirror": MIRROR, "sql": text})

    def may_read(self, user: tuple[str, str]) -> bool:
        answer = self.read(user, "SELECT k FROM secret")
        if answer.status_code == 200:
            assert answer.json()["rows"] == [[7]]
            return True
        assert problem_of(answer)["sqlstate"] == "42501"
        return False

    def wait(self, until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not until():
            assert time.monotonic() < deadline

    def queries(self) -> list[str]:
        """Those that run, but for this one."""
        shown = "SELECT query FROM pg_stat_activity WHERE state = 'active'"
        return [row[0] for row in self.sql(ADMIN, shown) if row[0] != shown]


@pytest.fixture
def town() -> Iterator[Town]:
    with HttpDoor(trust=False) as door:
        yield Town(door)


def test_a_feed_of_ones_own_does_not_open_anothers_mirror(town: Town) -> None:
    told = town.refused(BO, f"CREATE CHANGEFEED FOR TABLE own INTO '{MIRROR}'")
    assert told.startswith("user bo may not feed into ") and told.endswith("belongs to ada")
    assert not town.may_read(BO)
    town.sql(BO, "CREATE CHANGEFEED FOR TABLE own INTO 'duckdb:///own.duckdb'")
    town.sql(ADMIN, "CREATE TABLE more (k INT8 PRIMARY KEY)")
    town.sql(ADMIN, f"CREATE CHANGEFEED FOR TABLE more INTO '{MIRROR}'")


def test_members_of_the_owner_may_feed_its_mirror(town: Town) -> None:
    town.sql(ADMIN, "GRANT ada TO bo")
    town.sql(BO, f"CREATE CHANGEFEED FOR TABLE own INTO '{MIRROR}'")


def test_a_file_that_no_feed_made_is_for_admins(town: Town) -> None:
    root = town.door.node._files.locations.roots[0]
    (root / "eu").mkdir()
    (root / "eu" / "found.duckdb").write_bytes(b"whatever it is")
    into = "CREATE CHANGEFEED FOR TABLE own INTO 'duckdb:///eu/found.duckdb'"
    assert town.refused(BO, into).endswith("belongs to root")


def test_every_table_in_the_file_must_be_readable_at_each_read(town: Town) -> None:
    town.sql(ADA, "GRANT SELECT ON secret TO bo")
    assert town.may_read(BO)
    town.sql(ADA, "CREATE TABLE other (k INT8 PRIMARY KEY)")
    town.sql(ADA, f"CREATE CHANGEFEED FOR TABLE other INTO '{MIRROR}'")
    town.door.wait_for_mirror(MIRROR)
    assert not town.may_read(BO)
    town.sql(ADA, "GRANT SELECT ON other TO bo")
    assert town.may_read(BO)
    town.sql(ADA, "REVOKE SELECT ON secret FROM bo")
    assert not town.may_read(BO)
    assert town.may_read(ADA)


def test_the_rows_of_a_dropped_table_are_for_admins(town: Town) -> None:
    town.sql(ADA, "GRANT SELECT ON secret TO bo")
    town.sql(ADA, "DROP TABLE secret")
    assert not town.may_read(BO)
    assert town.may_read(ADMIN)


def test_a_mirror_that_is_not_there_is_told_as_one_that_is_not_ones_own(town: Town) -> None:
    for mirror in (MIRROR, "duckdb:///nosuch.duckdb"):
        answer = town.post(BO, "/v1/mirrors/sql", {"mirror": mirror, "sql": "SELECT 1"})
        assert problem_of(answer)["title"] == f"user bo may not read mirror {mirror}"


def test_a_dropped_users_mirror_is_not_inherited_with_the_name(town: Town) -> None:
    town.sql(ADMIN, "ALTER TABLE own OWNER TO ada; CREATE ROLE heir")
    town.sql(ADMIN, "CREATE TABLE t (k INT8 PRIMARY KEY); GRANT bo TO heir")
    town.sql(ADMIN, "GRANT CHANGEFEED ON t TO public")
    town.sql(BO, "CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///bos.duckdb'")
    town.sql(
        ADMIN, "DROP USER bo; CREATE USER bo PASSWORD 'b'; CREATE TABLE u (k INT8 PRIMARY KEY)"
    )
    town.sql(ADMIN, "GRANT CHANGEFEED ON u TO public")
    told = town.refused(BO, "CREATE CHANGEFEED FOR TABLE u INTO 'duckdb:///bos.duckdb'")
    assert told.endswith("belongs to root")


def reading(town: Town, user: tuple[str, str]) -> tuple[threading.Thread, list[Response]]:
    """An endless read that has begun."""
    found: list[Response] = []
    thread = threading.Thread(target=lambda: found.append(town.read(user, ENDLESS)))
    thread.start()
    town.wait(lambda: ENDLESS in town.queries())
    return thread, found


def test_a_read_is_listed_and_cancelled_as_a_statement_is(town: Town) -> None:
    thread, found = reading(town, ADA)
    found_pids = town.sql(ADA, "SELECT pid, query FROM pg_stat_activity WHERE state = 'active'")
    [pid] = [row[0] for row in found_pids if row[1] == ENDLESS]
    town.sql(ADA, f"SELECT pg_cancel_backend({pid})")
    thread.join()
    assert problem_of(found[0])["sqlstate"] == "57014"
    assert town.queries() == []


def test_a_read_ends_with_the_right_to_it(town: Town) -> None:
    town.sql(ADA, "GRANT SELECT ON secret TO bo")
    thread, found = reading(town, BO)
    town.sql(ADA, "REVOKE SELECT ON secret FROM bo")
    thread.join()
    assert problem_of(found[0])["sqlstate"] == "42501"


@pytest.mark.parametrize(
    "change", ["ALTER USER cy NOLOGIN", "DROP USER cy", "DROP USER cy; CREATE USER cy"]
)
def test_a_read_ends_with_its_users_login(town: Town, change: str) -> None:
    town.sql(ADMIN, "CREATE USER cy PASSWORD 'c'; GRANT SELECT ON secret TO public")
    thread, found = reading(town, ("cy", "c"))
    town.sql(ADMIN, change)
    thread.join()
    assert problem_of(found[0])["sqlstate"] in ("57P01", "42501")


def test_a_read_has_an_analytical_querys_time(town: Town) -> None:
    town.sql(ADMIN, "SET CLUSTER SETTING sql.analytics.statement_timeout = '50ms'")
    assert problem_of(town.read(ADA, ENDLESS))["sqlstate"] == "57014"
    town.sql(ADMIN, "RESET CLUSTER SETTING sql.analytics.statement_timeout")
    assert town.may_read(ADA)


def test_one_users_reads_leave_lanes_to_others(town: Town) -> None:
    town.sql(ADA, "GRANT SELECT ON secret TO bo")
    reads = [reading(town, BO) for _ in range(5)]
    assert town.may_read(ADA) and town.may_read(ADMIN)
    town.sql(ADMIN, "ALTER USER bo NOLOGIN")
    for thread, _ in reads:
        thread.join()


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/v1/mirrors/sql", ENDLESS),
        (
            "/v1/sql",
            "SELECT count(*) FROM generate_series(1, 30000000) a, generate_series(1, 30) b",
        ),
    ],
)
def test_a_query_ends_with_its_client(town: Town, path: str, query: str) -> None:
    request = town.door.client.build_request(
        "POST", path, json={"sql": query, **({"mirror": MIRROR} if "mirrors" in path else {})}
    )
    head = f"POST {path} HTTP/1.1\r\nHost: {request.url.host}\r\n"
    head += "Authorization: Basic YWRhOmE=\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(request.content)}\r\n\r\n"
    assert request.url.port is not None
    with socket.create_connection((request.url.host, request.url.port)) as client:
        client.sendall(head.encode() + request.content)
        town.wait(lambda: query in town.queries())
    town.wait(lambda: query not in town.queries())
