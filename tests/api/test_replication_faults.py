"""Targets that refuse a replication, or cannot take it now: each is said in its words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import msgspec
import pytest

from tailrace.changefeed.contract.resending import TRIES_MAX
from tailrace.changefeed.sinks import SinkError
from tailrace.changefeed.sinks.tailrace import ReplicaRequests, Reply, parse_target
from tailrace.changefeed.sinks.tailrace.transport import TransportBroken
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.replication.replica import Ingest
from tailrace.kvlayer.store import Store
from tests.api.test_replication import caught_up, content, state, until, uri
from tests.harness.http_door import HttpDoor
from tests.harness.simulation import Simulation


@pytest.fixture
def main() -> Iterator[HttpDoor]:
    with HttpDoor() as door:
        door.sql("CREATE KEYSPACE ks; SELECT raw_put('ks', 'a', '1')")
        yield door


@pytest.fixture
def recovery() -> Iterator[HttpDoor]:
    with HttpDoor() as door:
        yield door


def replicate(main: HttpDoor, recovery: HttpDoor, options: str = "workers = 1") -> None:
    main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{uri(recovery)}' WITH ({options})")


def failure(main: HttpDoor) -> str:
    until(main, lambda: state(main)["status"] == "failed")
    return str(state(main)["error"])


def test_a_wrong_password_fails_the_job_and_is_not_shown(main: HttpDoor) -> None:
    with HttpDoor(trust=False) as secure:
        address = f"tailrace://ada:guessed@127.0.0.1:{secure.port}/ks"
        main.sql(f"CREATE REPLICATION r FOR KEYSPACE ks INTO '{address}'")
        words = failure(main)
    assert "password" in words or "authentication" in words, words
    assert "guessed" not in str(state(main))


def test_another_stores_replica_is_refused(main: HttpDoor, recovery: HttpDoor) -> None:
    replicate(main, recovery)
    caught_up(main, recovery)
    with HttpDoor() as other:
        other.sql("CREATE KEYSPACE ks; SELECT raw_put('ks', 'a', 'other')")
        replicate(other, recovery)
        assert "cannot be a second" in failure(other)
    assert content(recovery) == {b"a": b"1"}
    assert state(main)["status"] == "running"


def test_a_target_that_was_dropped_fails_the_job(main: HttpDoor, recovery: HttpDoor) -> None:
    replicate(main, recovery)
    caught_up(main, recovery)
    recovery.sql("DROP KEYSPACE ks")
    main.sql("SELECT raw_put('ks', 'b', '2')")
    assert "does not exist" in failure(main)


def test_a_keyspace_that_is_dropped_ends_its_replication(
    main: HttpDoor, recovery: HttpDoor
) -> None:
    replicate(main, recovery)
    caught_up(main, recovery)
    main.sql("DROP KEYSPACE ks")
    assert "dropped" in failure(main)
    assert content(recovery) == {b"a": b"1"}


def test_a_source_whose_clock_is_far_ahead_is_refused(main: HttpDoor, recovery: HttpDoor) -> None:
    replicate(main, recovery)
    caught_up(main, recovery)
    store = main.node.store
    assert isinstance(store, Store)
    main.call(store.clock.forward, Timestamp(store.clock.last + duration(seconds=600)))
    main.sql("SELECT raw_put('ks', 'a', '2')")
    assert "one of the two clocks is wrong" in failure(main)


class Answers:
    """A target that answers as it is told, and then takes what it is sent."""

    def __init__(self, *said: Reply | TransportBroken) -> None:
        self._said = list(said)
        self.asked = 0

    async def post(
        self, path: str, body: bytes, *, media_type: str = "", seconds: float = 0.0
    ) -> Reply:
        self.asked += 1
        answer = self._said.pop(0) if self._said else TAKEN
        if isinstance(answer, TransportBroken):
            raise answer
        return answer

    async def get(self, path: str, parameters: Mapping[str, str]) -> Reply:
        raise AssertionError("nobody reads")

    async def close(self) -> None: ...


STAND = {"epoch": 1, "resolved": 5, "note": b"", "taken": 1, "known": 0}
TAKEN = Reply(200, msgspec.json.encode(STAND))
FULL = Reply(507, msgspec.json.encode({"title": "the log is full", "sqlstate": "53100"}))
PAGE = Reply(200, b"<html>A proxy is being restarted.</html>")
SLOW = TransportBroken("no answer within 30 s")


def test_a_full_slow_or_hidden_target_is_asked_again_and_named() -> None:
    told: list[str | None] = []
    answers = Answers(FULL, SLOW, PAGE, FULL)

    async def send() -> None:
        requests = ReplicaRequests(
            parse_target("tailrace://127.0.0.1/ks"), answers, Random(1), Metrics(), told.append
        )
        assert (await requests.send(Ingest(source="main", epoch=1, origin=7))).taken == 1

    Simulation(1).run(send())
    assert answers.asked == 5
    full = "keyspace ks of 127.0.0.1:8081: the log is full"
    page = "keyspace ks of 127.0.0.1:8081: no store answers so: JSON is malformed"
    assert [words and words.partition(": invalid")[0] for words in told] == [
        full,
        "no answer within 30 s",
        page,
        full,
        None,
    ]


def test_a_target_that_stays_full_ends_the_attempt_alone() -> None:
    answers = Answers(*[FULL] * TRIES_MAX)

    async def send() -> None:
        requests = ReplicaRequests(
            parse_target("tailrace://127.0.0.1/ks"), answers, Random(1), Metrics()
        )
        with pytest.raises(SinkError, match="the log is full"):
            await requests.send(Ingest(source="main", epoch=1, origin=7))

    Simulation(2).run(send())
    assert answers.asked == TRIES_MAX
