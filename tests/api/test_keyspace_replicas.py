"""Replicas of keyspaces at the doors: ingest over REST, reads at what is resolved, promotion."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import httpx2
import msgspec
import pytest

from tailrace.kvlayer.clock import Timestamp, format_timestamp
from tailrace.kvlayer.keys import encode_bytes
from tailrace.kvlayer.raw import encode_deletion, encode_entry
from tailrace.kvlayer.replication.replica import Ingest
from tests.harness.http_door import HttpDoor, problem_of

KS = "/v1/keyspaces/ks"


@pytest.fixture
def replica(door: HttpDoor) -> HttpDoor:
    door.sql("CREATE KEYSPACE ks WITH (role = 'replica')")
    return door


def opened(door: HttpDoor, source: str = "main") -> int:
    answer = door.post(f"{KS}/ingest/open", {"source": source})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["epoch"])


def entry(key: bytes, value: bytes | None, at: int, ends: int | None = None) -> dict[str, Any]:
    encoded = None if value is None else b64encode(value).decode()
    key_text = b64encode(key).decode()
    return {"key": key_text, "value": encoded, "timestamp": at, "expires_at": ends}


def body(epoch: int, *entries: dict[str, Any], resolved: int | None = None) -> dict[str, Any]:
    sent = {"source": "main", "epoch": epoch, "origin": 9, "entries": list(entries)}
    return sent if resolved is None else {**sent, "resolved": resolved}


def refused(door: HttpDoor, sent: dict[str, Any]) -> str:
    return str(problem_of(door.post(f"{KS}/ingest", sent))["title"])


def test_a_replica_is_read_as_of_what_is_resolved(replica: HttpDoor) -> None:
    now = replica.run(replica.node.store.now())
    old = now - (3600 * 10**6 << 12)
    epoch = opened(replica)
    answer = replica.post(
        f"{KS}/ingest",
        body(epoch, entry(b"k", b"1", old), entry(b"k", b"2", old + 9), resolved=old + 5),
    )
    assert answer.status_code == 200, answer.text
    assert {**answer.json(), "note": ""} == {
        "epoch": epoch, "resolved": old + 5, "note": "", "taken": 2, "known": 0,
    }  # fmt: skip
    assert replica.client.get(f"{KS}/keys/k").content == b"1"
    late = problem_of(
        replica.client.get(f"{KS}/keys/k", params={"at": format_timestamp(Timestamp(old + 9))})
    )
    assert "cannot be read as of" in late["title"]
    replica.post(f"{KS}/ingest", body(epoch, resolved=old + 9))
    assert replica.client.get(f"{KS}/keys/k").content == b"2"
    first = {"at": format_timestamp(Timestamp(old))}
    assert replica.client.get(f"{KS}/keys/k", params=first).content == b"1"
    gone = entry(b"k", None, old + 12, now)
    replica.post(f"{KS}/ingest", body(epoch, gone, resolved=old + 20))
    assert replica.client.get(f"{KS}/keys/k").status_code == 404


def test_only_the_source_writes_until_the_replica_is_promoted(replica: HttpDoor) -> None:
    first, second = opened(replica), opened(replica)
    at = replica.run(replica.node.store.now())
    assert "is over" in refused(replica, body(first, entry(b"k", b"1", at)))
    assert (
        "no other writes" in problem_of(replica.client.put(f"{KS}/keys/k", content=b"x"))["title"]
    )
    assert "ends" in str(replica.post(f"{KS}/ingest", body(second, entry(b"k", None, at))).text)
    assert (
        "resolved nothing"
        in replica.refused("CREATE CHANGEFEED FOR KEYSPACE ks INTO 'null://'")["title"]
    )
    other = problem_of(replica.post(f"{KS}/ingest/open", {"source": "other"}))
    assert "cannot be a second" in other["title"]
    replica.post(f"{KS}/ingest", body(second, entry(b"k", b"1", at + 5), resolved=at))
    resolved = format_timestamp(at)
    (listed,) = rows(replica, "SHOW KEYSPACES")
    assert listed[-2:] == ["replica", resolved]
    for _ in range(2):
        assert rows(replica, "ALTER KEYSPACE ks PROMOTE") == [[resolved]]
    assert "was promoted" in refused(replica, body(second, entry(b"k", b"2", at + 9)))
    assert replica.client.get(f"{KS}/keys/k").content == b"1"
    assert replica.client.put(f"{KS}/keys/k", content=b"mine").status_code == 200
    assert replica.client.get(f"{KS}/keys/k").content == b"mine"
    (listed,) = rows(replica, "SHOW KEYSPACES")
    assert listed[-2:] == ["main", resolved]


def test_a_replica_can_be_dropped_and_a_main_keyspace_not_promoted(replica: HttpDoor) -> None:
    opened(replica)
    replica.sql("DROP KEYSPACE ks")
    replica.sql("CREATE KEYSPACE ks")
    assert "no replica" in replica.refused("ALTER KEYSPACE ks PROMOTE")["title"]
    problem = problem_of(replica.post(f"{KS}/ingest/open", {"source": "main"}))
    assert "no replica" in problem["title"]
    assert "role" in replica.refused("CREATE KEYSPACE b WITH (role = 'x')")["title"]


def rows(door: HttpDoor, sql: str) -> list[list[Any]]:
    found: list[list[Any]] = door.post("/v1/sql", {"sql": sql}).json()["results"][-1]["rows"]
    return found


def stored(replica: HttpDoor, epoch: int, **given: Any) -> httpx2.Response:
    """The answer to an ingest as stores send it."""
    order = Ingest(source="main", epoch=epoch, origin=9, **given)
    kind = {"content-type": "application/msgpack"}
    content = msgspec.msgpack.encode(order)
    return replica.client.post(f"{KS}/ingest", content=content, headers=kind)


def test_stores_send_entries_as_they_are_stored(replica: HttpDoor) -> None:
    epoch, at = opened(replica), replica.run(replica.node.store.now())
    name, gone = encode_bytes(b"k"), encode_bytes(b"gone for ever")
    sent = {
        "keys": [name, gone, name],
        "bodies": [encode_entry(b"1"), encode_deletion(Timestamp(at + 99)), encode_entry(b"2")],
        "timestamps": [at, at + 1, at + 2],
    }
    answer = stored(replica, epoch, **sent, resolved=at + 2, note=b"here").json()
    assert (answer["taken"], answer["known"], answer["resolved"]) == (3, 0, at + 2)
    assert stored(replica, epoch, **sent).json()["known"] == 3
    assert replica.client.get(f"{KS}/keys/k").content == b"2"
    assert replica.client.get(f"{KS}/keys/gone%20for%20ever").status_code == 404


NAME, ONE = encode_bytes(b"k"), encode_entry(b"1")


@pytest.mark.parametrize(
    ("keys", "bodies", "timestamps", "why"),
    [
        ([NAME, NAME], [ONE], [5, 6], "for each key"),
        ([NAME], [ONE], [], "for each key"),
        ([b"k"], [ONE], [5], "not encoded"),
        ([NAME + NAME], [ONE], [5], "not encoded"),
        ([NAME[:-1] + b"\xff"], [ONE], [5], "not encoded"),
        ([NAME], [b"1\x07"], [5], "flags 0x07"),
        ([NAME], [b""], [5], "flags none"),
        ([NAME], [b"1\x02"], [5], "damaged"),
        ([NAME], [b"\xff" * 8 + b"\x02"], [5], "no timestamp"),
        ([NAME], [ONE], [0], "no timestamp"),
        ([NAME], [ONE], [1 << 63], "no timestamp"),
    ],
)
def test_what_no_store_sends_is_refused(
    replica: HttpDoor, keys: list[bytes], bodies: list[bytes], timestamps: list[int], why: str
) -> None:
    epoch = opened(replica)
    answer = stored(replica, epoch, keys=keys, bodies=bodies, timestamps=timestamps)
    assert answer.status_code == 422, answer.text
    assert why in answer.text


def test_damaged_messagepack_is_refused(replica: HttpDoor) -> None:
    kind = {"content-type": "application/msgpack"}
    for content, status in ((b"\xc1", 400), (b"", 400), (b"\x93\x01\x02\x03", 422)):
        answer = replica.client.post(f"{KS}/ingest", content=content, headers=kind)
        assert answer.status_code == status, answer.text
