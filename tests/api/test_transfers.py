"""ALTER KEYSPACE … TRANSFER where it cannot be done: it says why, and the leader goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tailrace.catalog.rights.privileges import Privilege
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


def test_nobody_takes_the_placement_of_anothers_keyspace(doors: tuple[HttpDoor, HttpDoor]) -> None:
    """Who knows the ids of the store and of the keyspace knows its place, and has a replica that
    names that as its source."""
    leader, other = doors
    leader.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(other)}'")
    caught_up(leader, other)
    refused(leader, other)
    leader.sql("CREATE KEYSPACE mine WITH (role = 'replica'); CREATE USER eve WITH PASSWORD 'eve'")
    leader.sql("GRANT ALL ON mine TO eve")
    leadership = leader.node.services.leadership
    assert leadership is not None

    async def place_of_ks() -> str:
        async with leader.node.keyspaces.opened("ks", needs=Privilege(0)) as raw:
            return leadership.place(raw.id)

    place = leader.run(place_of_ks())
    ingest = "/v1/keyspaces/mine/ingest"
    eve = ("eve", "eve")
    opened = leader.client.post(f"{ingest}/open", json={"source": place}, auth=eve)
    assert opened.status_code == 200, opened.text
    store_id = leader.node.store.id
    claim = {"source": place, "group": place, "barrier": 1, "oracle": store_id, "secret": "QUJD"}
    for term in range(1, 6):
        asked = {**claim, "term": term}
        problem = problem_of(leader.client.post(f"{ingest}/lead", json=asked, auth=eve))
        assert problem["sqlstate"] == "55000", problem
        assert "does not hand" in problem["title"], problem
    assert leader.client.get(ingest, auth=eve).json()["epoch"] == 1
    assert "serve both with the same --oracle" in refused(leader, other), "the placement is lost"
