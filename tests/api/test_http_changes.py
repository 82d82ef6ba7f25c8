"""Changefeeds without a sink over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice

import httpx2
import pytest

from tests.harness.http_door import HttpDoor, problem_of

EVENTS = {"accept": "text/event-stream"}
Event = dict[str, str]


@contextmanager
def streamed(
    door: HttpDoor, query: str, **headers: str
) -> Iterator[tuple[httpx2.Response, Iterator[str]]]:
    with door.client.stream("GET", f"/v1/changes?{query}", headers=headers) as response:
        yield response, response.iter_lines()


def events(lines: Iterator[str]) -> Iterator[Event]:
    """Server-sent events as a browser divides them: fields up to an empty line."""
    fields: Event = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields
            fields = {}


@pytest.fixture
def orders(door: HttpDoor) -> HttpDoor:
    door.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")
    door.sql("INSERT INTO orders VALUES (1, 'one'), (2, 'two')")
    return door


def test_rows_come_as_lines(orders: HttpDoor) -> None:
    query = "table=orders&envelope=row&resolved"
    with streamed(orders, query) as (response, lines):
        assert response.headers["content-type"].startswith("application/x-ndjson")
        found = [json.loads(line) for line in islice(lines, 3)]
        assert found[:2] == [
            {"table": "orders", "key": [1], "value": {"id": 1, "note": "one"}},
            {"table": "orders", "key": [2], "value": {"id": 2, "note": "two"}},
        ]
        assert list(found[2]) == ["resolved"]
        orders.sql("DELETE FROM orders WHERE id = 1")
        deleted = next(said for said in map(json.loads, lines) if "table" in said)
        assert deleted == {"table": "orders", "key": [1], "value": None}


def test_transactions_are_lines_and_events_around_their_rows(orders: HttpDoor) -> None:
    query = "table=orders&transactions&initial_scan=no&envelope=bare"
    with (
        streamed(orders, query) as (_, lines),
        streamed(orders, query, **EVENTS) as (_, event_lines),
    ):
        orders.sql("UPSERT INTO orders VALUES (1, 'uno'), (3, 'tre')")
        said = [json.loads(line) for line in islice(lines, 4)]
        begin, end = said[0]["transaction"], said[3]["transaction"]
        assert (begin["status"], end["status"], end["counts"]) == ("BEGIN", "END", {"orders": 2})
        assert {each["value"]["__crdb__"]["transaction"] for each in said[1:3]} == {begin["id"]}
        told = (each for each in events(event_lines) if each["event"] != "resolved")
        found = [(each["event"], json.loads(each["data"])) for each in islice(told, 4)]
        names = ["transaction", "change", "change", "transaction"]
        assert found == list(zip(names, said, strict=True))


def test_schema_changes_are_lines_without_a_key(orders: HttpDoor) -> None:
    with streamed(orders, "table=orders&schema_events&initial_scan=no") as (_, lines):
        orders.sql("ALTER TABLE orders ADD COLUMN more INT8")
        said = json.loads(next(lines))
        assert (said["table"], said["key"]) == ("orders", None)
        assert said["value"]["schema_change"]["kinds"] == ["ADD_COLUMN"]


def test_a_browser_goes_on_behind_the_last_event_that_it_saw(orders: HttpDoor) -> None:
    with streamed(orders, "table=orders&min_checkpoint_frequency=10ms", **EVENTS) as (_, lines):
        found = events(lines)
        assert [json.loads(next(found)["data"])["key"] for _ in range(2)] == [[1], [2]]
        at = orders.sql("INSERT INTO orders VALUES (3, 'three')")[-1]["commit_timestamp"]
        while json.loads((event := next(found))["data"]).get("key") != [3]:
            assert event["event"] == "resolved"
        while Decimal((event := next(found)).get("id", 0)) < Decimal(at):
            pass
    orders.sql("INSERT INTO orders VALUES (4, 'four')")
    last = {"last-event-id": event["id"], **EVENTS}
    with streamed(orders, "table=orders&initial_scan=yes", **last) as (_, lines):
        changes = (event for event in events(lines) if event["event"] == "change")
        assert json.loads(next(changes)["data"])["key"] == [4]


def test_the_end_of_a_feed_is_told(orders: HttpDoor) -> None:
    with streamed(orders, "table=orders&initial_scan=no&resolved", **EVENTS) as (_, lines):
        found = events(lines)
        assert next(found)["event"] == "resolved"
        orders.sql("DROP TABLE orders")
        (ended,) = (event for event in until_broken(found) if event["event"] == "error")
    assert json.loads(ended["data"])["error"]["sqlstate"] == "42P01"


def until_broken(found: Iterator[Event]) -> Iterator[Event]:
    """The events of a reply that is broken off."""
    try:
        yield from found
    except httpx2.RemoteProtocolError:
        return
    raise AssertionError("the reply came to its end")


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("table=nothing", 404, "does not exist"),
        ("table=orders&table=orders", 400, "more than once"),
        ("table=orders&speed=1", 400, "unknown changefeed option"),
        ("table=orders&cursor=soon", 400, "cursor"),
        ("table=orders&format=csv&initial_scan=only", 400, "no messages in format csv"),
        ("table=orders'; DROP TABLE orders; --", 404, "does not exist"),
        ("", 422, "table"),
    ],
)
def test_what_cannot_be_streamed_is_refused_at_once(
    orders: HttpDoor, query: str, status: int, said: str
) -> None:
    answer = orders.client.get(f"/v1/changes?{query}")
    assert answer.status_code == status, answer.text
    assert said in json.dumps(problem_of(answer))
