"""Options of CREATE and ALTER CHANGEFEED do what they say through SQL, or are refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError

Messages = list[tuple[str, Any, Any]]


@asynccontextmanager
async def orders(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING, doc JSONB)")
        await database.sql("INSERT INTO orders VALUES (1, 'a', 'null')")
        yield database
    finally:
        await database.close()


async def messages(database: AsyncDatabase, **options: str | bool) -> Messages:
    """The messages of a feed of `orders`: its row, and the row's deletion."""
    found: Messages = []
    async with asyncio.timeout(30):
        async for topic, key, value in database.changefeed("orders", **options):
            assert isinstance(key, bytes | str), key
            assert isinstance(value, bytes | str), value
            found.append((str(topic), json.loads(key), json.loads(value) if value else None))
            if len(found) == 1:
                await database.sql("DELETE FROM orders WHERE k = 1")
            else:
                break
    return found


def run(path: Path, scenario: Callable[[AsyncDatabase], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with orders(path) as database:
            await scenario(database)

    asyncio.run(whole())


ROW = {"doc": None, "k": 1, "name": "a"}
GONE = {"doc": None, "k": 1, "name": None}
SHAPES: list[tuple[dict[str, str | bool], object, object]] = [
    ({"envelope": "wrapped"}, {"after": ROW}, {"after": None}),
    (
        {"key_in_value": True, "topic_in_value": True},
        {"after": ROW, "key": [1], "topic": "orders"},
        {"after": None, "key": [1], "topic": "orders"},
    ),
    ({"envelope": "bare"}, ROW, GONE),
    (
        {"envelope": "bare", "key_in_value": True},
        {"__crdb__": {"key": [1]}, **ROW},
        {"__crdb__": {"key": [1]}, **GONE},
    ),
    ({"envelope": "row", "format": "json"}, ROW, None),
    ({"envelope": "key_only"}, None, None),
    (
        {"encode_json_value_null_as_object": True},
        {"after": {**ROW, "doc": {"__crdb_json_null__": True}}},
        {"after": None},
    ),
]


@pytest.mark.parametrize(("options", "inserted", "deleted"), SHAPES)
def test_messages_have_the_shape_that_was_asked_for(
    tmp_path: Path, options: dict[str, str | bool], inserted: object, deleted: object
) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        found = await messages(database, **options)
        assert found == [("orders", [1], inserted), ("orders", [1], deleted)]

    run(tmp_path, scenario)


def test_full_table_names_are_topics(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        found = await messages(database, full_table_name=True)
        assert [topic for topic, _, _ in found] == ["defaultdb.public.orders"] * 2

    run(tmp_path, scenario)


async def refusal(database: AsyncDatabase, text: str) -> SQLError:
    with pytest.raises(SQLError) as caught:
        await database.sql(text)
    return caught.value


def test_options_without_effect_are_refused(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        into = "CREATE CHANGEFEED FOR orders INTO 'duckdb:///m.duckdb'"
        for option in ("updated", "resolved", "envelope = 'bare'", "compression = 'gzip'"):
            error = await refusal(database, f"{into} WITH {option}")
            assert (error.sqlstate, "has no effect on a duckdb" in error.message) == ("22023", True)
        stream = "CREATE CHANGEFEED FOR orders WITH compression = 'gzip'"
        assert (await refusal(database, stream)).sqlstate == "22023"
        created = await database.sql(into)
        ((job_id,),) = created.fetchall()
        error = await refusal(database, f"ALTER CHANGEFEED {job_id!s} SET updated")
        assert error.message == "changefeed option updated has no effect on a duckdb changefeed"

    run(tmp_path, scenario)


def test_options_that_are_not_served_are_refused(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for option in ("execution_locality = 'a'", "format = 'protobuf'", "split_column_families"):
            error = await refusal(database, f"CREATE CHANGEFEED FOR orders WITH {option}")
            assert error.sqlstate == "0A000"
            assert error.detail

    run(tmp_path, scenario)


async def shown(database: AsyncDatabase, count: int, **options: str | bool) -> list[Any]:
    """The values of the first messages of a feed of `orders`."""
    found: list[Any] = []
    async with asyncio.timeout(30):
        async for _, _, value in database.changefeed("orders", **options):
            assert isinstance(value, bytes | str), value
            found.append(json.loads(value))
            if len(found) == count:
                break
    return found


def test_messages_tell_their_timestamps(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        (message,) = await shown(database, 1, updated=True, mvcc_timestamp=True)
        assert list(message) == ["after", "mvcc_timestamp", "updated"]
        assert Decimal(message["mvcc_timestamp"]) < Decimal(message["updated"])  # the scan's

    run(tmp_path, scenario)


def test_a_cursor_shows_what_came_after_it(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        rows = (await database.sql("SELECT cluster_logical_timestamp()")).fetchall()
        await database.sql("INSERT INTO orders VALUES (2, 'b', NULL)")
        (message,) = await shown(database, 1, cursor=str(rows[0][0]))
        assert message["after"]["k"] == 2

    run(tmp_path, scenario)


@pytest.mark.parametrize("options", [{"initial_scan": "no"}, {"no_initial_scan": True}])
def test_a_feed_without_a_scan_shows_changes_alone(
    tmp_path: Path, options: dict[str, str | bool]
) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        feed = database.changefeed("orders", resolved=True, **options)
        seen: list[Any] = []
        async with asyncio.timeout(30):
            async for _, _, value in feed:
                assert isinstance(value, bytes | str), value
                message = json.loads(value)
                if "resolved" in message and not seen:
                    await database.sql("UPSERT INTO orders VALUES (2, 'b', NULL)")
                elif "after" in message:
                    seen.append(message["after"]["k"])
                    break
        assert seen == [2]

    run(tmp_path, scenario)


def test_a_scan_alone_ends(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        assert await shown(database, 2, initial_scan_only=True) == [{"after": ROW}]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("events", "change"),
    [
        ("default", "ALTER TABLE orders DROP COLUMN name"),
        ("column_changes", "ALTER TABLE orders ADD COLUMN note STRING"),
    ],
)
def test_a_feed_stops_at_the_schema_changes_that_count(
    tmp_path: Path, events: str, change: str
) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        feed = database.changefeed(
            "orders", schema_change_events=events, schema_change_policy="stop"
        )
        with pytest.raises(SQLError, match="schema") as caught:
            async with asyncio.timeout(30):
                async for _ in feed:
                    await database.sql(change)
        assert caught.value.sqlstate == "55000"

    run(tmp_path, scenario)


async def taken(feed: AsyncIterator[Any], count: int) -> list[Any]:
    async with asyncio.timeout(30):
        return [json.loads((await anext(feed))[2]) for _ in range(count)]


def row(k: int, name: str) -> dict[str, Any]:
    return {"doc": None, "k": k, "name": name}


@pytest.mark.parametrize("locked", [False, True])
def test_messages_tell_the_row_before(tmp_path: Path, locked: bool) -> None:
    """Of a scan, live, in catch-up behind a cursor, and behind a schema change."""

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql(f"ALTER TABLE orders SET (changefeed_optimized = {locked})")
        feed = database.changefeed("orders", diff=True)
        assert await taken(feed, 1) == [{"after": row(1, "a"), "before": None}]
        rows = (await database.sql("SELECT cluster_logical_timestamp()")).fetchall()
        await database.sql("INSERT INTO orders VALUES (2, 'b', NULL)")
        await database.sql("UPDATE orders SET name = 'c' WHERE k = 2")
        await database.sql("DELETE FROM orders WHERE k = 1")
        expected = [
            {"after": row(2, "b"), "before": None},
            {"after": row(2, "c"), "before": row(2, "b")},
            {"after": None, "before": row(1, "a")},
        ]
        assert await taken(feed, 3) == expected
        late = database.changefeed("orders", diff=True, cursor=str(rows[0][0]))
        assert sorted(map(str, await taken(late, 3))) == sorted(map(str, expected))
        await database.sql("ALTER TABLE orders DROP COLUMN doc")
        assert await taken(feed, 1) == [
            {"after": {"k": 2, "name": "c"}, "before": row(2, "c")},
        ]
        await database.sql("UPDATE orders SET name = 'd' WHERE k = 2")
        assert await taken(feed, 1) == [
            {"after": {"k": 2, "name": "d"}, "before": {"k": 2, "name": "c"}},
        ]

    run(tmp_path, scenario)


def test_a_rewritten_table_tells_the_rows_before(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        feed = database.changefeed("orders", diff=True)
        await taken(feed, 1)
        await database.sql("ALTER TABLE orders ADD COLUMN twice INT AS (k * 2) STORED")
        (message,) = await taken(feed, 1)
        assert message == {"after": {**row(1, "a"), "twice": 2}, "before": row(1, "a")}

    run(tmp_path, scenario)
