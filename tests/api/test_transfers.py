"""ALTER KEYSPACE … TRANSFER where it cannot be done: it says why, and the leader goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.test_keyspace_replicas import rows
from tests.api.test_replication import caught_up, uri
from tests.harness.http_door import HttpDoor, problem_of


@pytest.fixture
def doors() -> Iterator[tuple[HttpDoor, HttpDoor]]:
    """The leader of a keyspace, and another store. Each is its own oracle."""
    with HttpDoor() as leader, HttpDoor() as other:
        leader.sql("CREATE KEYSPACE ks; SELECT raw_put('ks', 'a', '1')")
        yield leader, other


def refused(leader: HttpDoor, other: HttpDoor) -> str:
    text = f"ALTER KEYSPACE ks TRANSFER TO '{uri(other)}'"
    problem = problem_of(leader.post("/v1/sql", {"sql": text}))
    assert problem["sqlstate"] == "55000", problem
    title: str = problem["title"]
    return title


def test_only_a_whole_replica_may_lead(doors: tuple[HttpDoor, HttpDoor]) -> None:
    leader, other = doors
    assert "no replication sends the whole of keyspace" in refused(leader, other)
    leader.sql(f"CREATE REPLICATION r FOR KEYSPACE ks FROM 'b' INTO '{uri(other)}'")
    assert "no replication sends the whole of keyspace" in refused(leader, other)


def test_stores_with_two_oracles_hand_nothing_over(doors: tuple[HttpDoor, HttpDoor]) -> None:
    leader, other = doors
    leader.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(other)}'")
    caught_up(leader, other)
    assert "serve both with the same --oracle" in refused(leader, other)
    assert rows(leader, "SHOW KEYSPACES")[0][4] == "main"
    assert rows(other, "SHOW KEYSPACES")[0][4] == "replica"
    leader.sql("SELECT raw_put('ks', 'a', '2')")
    caught_up(leader, other)
    assert other.client.get("/v1/keyspaces/ks/keys/a").content == b"2"
