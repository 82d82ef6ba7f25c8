"""Debugging doors: what a served store, and a folder that nobody serves, show of themselves."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tailrace.api.cli.debug import DebugRefused, debug_app
from tailrace.api.embedded import aopen
from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.key_names import KeyNames
from tailrace.kvlayer.clock import format_timestamp
from tests.harness.http_door import HttpDoor, problem_of
from tests.harness.slices import run_in_least_slices

Line = dict[str, Any]


@pytest.fixture(scope="module")
def door() -> Iterator[HttpDoor]:
    with HttpDoor() as door:
        door.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")
        door.sql("CREATE DATABASE shop; CREATE TABLE shop.public.items (name STRING PRIMARY KEY)")
        yield door


def lines_of(door: HttpDoor, what: str, **query: str | int) -> list[Line]:
    answer = door.client.get(f"/v1/debug/{what}", params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def run(*arguments: str) -> list[Line]:
    """Runs `tailrace debug`, and reads its lines. Raises what it refuses."""
    result = CliRunner().invoke(debug_app, [*arguments, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def url(door: HttpDoor) -> str:
    return str(door.client.base_url).rstrip("/")


def test_rangefeed_shows_values_then_checkpoints(door: HttpDoor) -> None:
    start = format_timestamp(door.node.store.clock.last)
    door.sql("INSERT INTO orders VALUES (7, 'first'), (8, NULL); DELETE FROM orders WHERE id = 8")
    lines = run(
        "rangefeed", "orders", "--from", start, "--limit", "6", "--every", "0", "--url", url(door)
    )
    assert [(line["event"], line.get("key"), line.get("value")) for line in lines[:3]] == [
        ("value", "/orders/orders_pkey/7", {"id": 7, "note": "first"}),
        ("value", "/orders/orders_pkey/8", {"id": 8, "note": None}),
        ("value", "/orders/orders_pkey/8", None),
    ]
    rest = [line for line in lines[3:] if line["event"] == "checkpoint"]
    assert rest
    assert rest[-1]["spans"] == ["/orders"]
    assert rest[-1]["resolved"] > lines[2]["timestamp"]


def test_checkpoints_in_a_row_are_thinned(door: HttpDoor) -> None:
    start = format_timestamp(door.node.store.clock.last)
    door.sql("INSERT INTO orders VALUES (15, 'x')")
    lines = run(
        "rangefeed", "orders", "--from", start, "--limit", "5", "--every", "0.2", "--url", url(door)
    )
    shown = [int(line["resolved"].split(".")[0]) for line in lines if line["event"] == "checkpoint"]
    assert len(shown) >= 2
    assert all(later - earlier >= 200_000_000 for earlier, later in pairwise(shown[1:]))


def test_rangefeed_shows_previous_values(door: HttpDoor) -> None:
    door.sql("INSERT INTO orders VALUES (20, 'old')")
    start = format_timestamp(door.node.store.clock.last)
    door.sql("UPDATE orders SET note = 'new' WHERE id = 20")
    query = {"target": "orders", "from": start, "previous": "true"}
    with door.client.stream("GET", "/v1/debug/rangefeed", params=query) as answer:
        lines = [json.loads(line) for line in islice(answer.iter_lines(), 1)]
    assert lines[0]["value"] == {"id": 20, "note": "new"}
    assert lines[0]["previous"] == {"id": 20, "note": "old"}


def test_rangefeed_of_live_commits(door: HttpDoor) -> None:
    with door.client.stream("GET", "/v1/debug/rangefeed", params={"target": "orders"}) as answer:
        found = answer.iter_lines()
        assert json.loads(next(found))["event"] in ("steady", "checkpoint")
        door.sql("INSERT INTO orders VALUES (30, 'live')")
        values = (line for line in map(json.loads, found) if line["event"] == "value")
        assert next(values)["value"] == {"id": 30, "note": "live"}


def test_rangefeed_follows_a_split_under_load(door: HttpDoor) -> None:
    """Values, then checkpoints over them, and no row is lost where the range is split."""
    door.sql("CREATE TABLE busy (id INT8 PRIMARY KEY)")
    served = door.node.served
    assert served is not None
    busy = KeyNames.load(served.engine).find(
        TableName.resolve(["busy"], current_database="defaultdb")
    )
    assert busy is not None
    middle = codec_for(busy).encode_key((30,))
    ranges = len(lines_of(door, "ranges"))

    def write() -> None:
        for number in range(60):
            door.sql("INSERT INTO busy VALUES ($1)", number)
            if number == 20:
                door.call(lambda: asyncio.ensure_future(served.split(middle)))

    with door.client.stream("GET", "/v1/debug/rangefeed", params={"target": "busy"}) as answer:
        found = map(json.loads, answer.iter_lines())
        assert next(found)["event"] in ("steady", "checkpoint")
        writer = threading.Thread(target=write)
        writer.start()
        seen: dict[int, str] = {}
        newest = ""
        while len(seen) < 60 or newest < max(seen.values()):
            line = next(found)
            if line["event"] == "value":
                seen.setdefault(line["value"]["id"], line["timestamp"])
            elif line["event"] == "checkpoint":
                newest = line["resolved"]
        writer.join()
    assert sorted(seen) == list(range(60))
    assert len(lines_of(door, "ranges")) == ranges + 1


def test_unknown_table_is_refused(door: HttpDoor) -> None:
    answer = door.client.get("/v1/debug/rangefeed", params={"target": "absent"})
    assert "no table is named defaultdb.public.absent" in problem_of(answer)["detail"]
    with pytest.raises(DebugRefused, match="no table is named"):
        run("keys", "absent", "--url", url(door))


@pytest.mark.parametrize("target", ["0xzz", "0x74-0x73", "0x74-75", "a.b.c.d"])
def test_bad_span_is_refused(door: HttpDoor, target: str) -> None:
    answer = door.client.get("/v1/debug/keys", params={"target": target})
    assert problem_of(answer)["status"] == 400


def test_bad_start_is_refused(door: HttpDoor) -> None:
    query = {"target": "orders", "from": "yesterday"}
    assert problem_of(door.client.get("/v1/debug/rangefeed", params=query))["status"] == 400


def test_bad_log_index_is_refused(door: HttpDoor) -> None:
    answer = door.client.get("/v1/debug/log", params={"from": 0})
    assert problem_of(answer)["status"] in (400, 422)


def test_keys_show_versions_newest_first(door: HttpDoor) -> None:
    door.sql("INSERT INTO orders VALUES (40, 'a'); UPDATE orders SET note = 'b' WHERE id = 40")
    lines = [
        line for line in lines_of(door, "keys", target="orders") if line["key"].endswith("/40")
    ]
    assert [line["value"]["note"] for line in lines] == ["b", "a"]
    assert {line["kind"] for line in lines} == {"version"}


def test_keys_of_other_databases_are_named_in_full(door: HttpDoor) -> None:
    door.sql("INSERT INTO shop.public.items VALUES ('it''s')")
    [line] = run("keys", "shop.public.items", "--url", url(door))
    assert line["key"] == "/shop.public.items/items_pkey/'it''s'"


def test_keys_are_bounded(door: HttpDoor) -> None:
    assert len(lines_of(door, "keys", limit=3)) == 3


def test_log_shows_operations(door: HttpDoor) -> None:
    served = door.node.served
    assert served is not None
    before = served.log.durable_index
    door.sql("INSERT INTO orders VALUES (50, 'x')")
    lines = lines_of(door, "log", **{"from": before + 1})
    written = [line for line in lines if "/orders/orders_pkey/50" in line.get("keys", ())]
    assert [line["op"] for line in written] == ["WriteValue"]


def test_ranges_cover_the_key_space(door: HttpDoor) -> None:
    lines = run("ranges", "--url", url(door))
    assert lines[0]["span"].startswith("[0x00, ")
    assert lines[-1]["span"].endswith("0xff)")


def test_names_of_all_tables_are_read_in_slices(door: HttpDoor) -> None:
    """In one step they would hold up the loop: a store has thousands of tables."""
    served = door.node.served
    assert served is not None

    async def read() -> tuple[int, KeyNames]:
        return run_in_least_slices(lambda: KeyNames.load(served.engine))

    slices, names = door.run(read())
    assert slices > len(names.tables)


def test_missing_server_is_said() -> None:
    with pytest.raises(DebugRefused, match="no server answers at http"):
        run("ranges", "--url", "http://127.0.0.1:1")
    with pytest.raises(DebugRefused, match="is no address of a server"):
        run("ranges", "--url", "localhost")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("debug") / "data"

    async def fill() -> None:
        async with await aopen(path) as database:
            await database.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING)")
            await database.sql("INSERT INTO orders VALUES (1, 'kept')")

    asyncio.run(fill())
    return path


def test_folder_is_read_and_not_changed(folder: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "log").iterdir()}
    [line] = run("keys", "orders", "--folder", str(folder))
    assert line["value"] == {"id": 1, "note": "kept"}
    ops = run("log", "--folder", str(folder), "--limit", "100000")
    assert any("/orders/orders_pkey/1" in line.get("keys", ()) for line in ops)
    assert run("ranges", "--folder", str(folder))[0]["kind"] == "range"
    assert {path: path.read_bytes() for path in (folder / "log").iterdir()} == before


def test_folder_of_a_dead_process_shows_what_only_the_log_has(tmp_path: Path) -> None:
    """A copy of the files at one moment is what a crash at that moment leaves."""

    async def crash() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (id INT8 PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1), (2)")
            await database.sql("DELETE FROM orders WHERE id = 1")
            shutil.copytree(tmp_path / "data", tmp_path / "left")

    asyncio.run(crash())
    lines = run("keys", "orders", "--folder", str(tmp_path / "left"))
    assert [line["value"] for line in lines] == [None, {"id": 1}, {"id": 2}]


def test_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DebugRefused, match="is not a data folder"):
        run("keys", "--folder", str(tmp_path))


def test_served_folder_is_refused(folder: Path) -> None:
    async def look() -> None:
        async with await aopen(folder):
            with pytest.raises(DebugRefused, match="--url instead of --folder"):
                await asyncio.to_thread(run, "ranges", "--folder", str(folder))

    asyncio.run(look())


def test_rangefeed_of_a_folder_says_what_to_do(folder: Path) -> None:
    with pytest.raises(DebugRefused, match="tailrace debug keys orders --folder"):
        run("rangefeed", "orders", "--folder", str(folder))
