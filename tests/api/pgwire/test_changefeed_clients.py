"""The statements of programs that read CockroachDB's changefeeds, as they send them: Redpanda
Connect's input `cockroachdb_changefeed` (over pgx) and Debezium's connector (over pgjdbc).

Neither is told that it speaks to another store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from struct import pack
from typing import Any

import psycopg
import pytest

from tests.harness.pg_door import PgDoor, WireClient, pg_door

STRING, BYTES = 25, 17

DEBEZIUM = """CREATE CHANGEFEED FOR TABLE "public"."orders" WITH envelope = 'enriched', \
enriched_properties = 'source', updated, diff, resolved = '1s', initial_scan = '{}'"""


@asynccontextmanager
async def connected(door: PgDoor) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    address = f"host=127.0.0.1 port={door.port} user=root dbname=defaultdb sslmode=disable"
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        yield connection


def at_door(work: Callable[[PgDoor, psycopg.AsyncConnection[Any]], Awaitable[None]]) -> None:
    async def main() -> None:
        async with pg_door() as door, connected(door) as client:
            await client.execute("SET CLUSTER SETTING kv.rangefeed.enabled = true;")
            await client.execute(
                "CREATE TABLE IF NOT EXISTS orders "
                "(id INT PRIMARY KEY, customer_name STRING NOT NULL, amount DECIMAL(10,2))"
            )
            await client.execute("INSERT INTO orders VALUES (1, 'Alice', 100.00), (2, 'Bob', 2.5)")
            await work(door, client)

    asyncio.run(main())


async def first_rows(door: PgDoor, text: str, count: int) -> list[tuple[Any, ...]]:
    """The first rows of a statement that is prepared, values in binary, as pgx asks for them."""
    async with connected(door) as client:
        cursor = client.cursor(binary=True)
        found = []
        async for row in cursor.stream(text):
            found.append(row)
            if len(found) == count:
                break
        assert cursor.description is not None
        columns = [(column.name, column.type_code) for column in cursor.description]
        assert columns == [("table", STRING), ("key", BYTES), ("value", BYTES)]
        await client.close()
    return found


def test_redpanda_connect_reads_from_its_stored_cursor() -> None:
    """It stores the resolved timestamp, and gives it between double quotes."""

    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        text = "EXPERIMENTAL CHANGEFEED FOR orders WITH UPDATED, RESOLVED"
        *rows, (no_table, no_key, mark) = await first_rows(door, text, 3)
        assert [(table, key) for table, key, _ in rows] == [("orders", b"[1]"), ("orders", b"[2]")]
        assert (no_table, no_key) == (None, None)
        cursor = json.loads(mark)["resolved"]
        await client.execute("UPDATE orders SET amount = 3 WHERE id = 2")
        [(table, key, value)] = await first_rows(door, f'{text}, CURSOR="{cursor}"', 1)
        assert (table, key) == ("orders", b"[2]")
        assert json.loads(value)["after"]["amount"] == 3

    at_door(work)


def test_debezium_finds_range_feeds_enabled() -> None:
    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        shown = await client.execute("SHOW CLUSTER SETTING kv.rangefeed.enabled")
        assert await shown.fetchall() == [("true",)]
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="always on"):
            await client.execute("SET CLUSTER SETTING kv.rangefeed.enabled = false")

    at_door(work)


def test_debezium_streams_a_feed_row_by_row_in_a_transaction() -> None:
    """pgjdbc with a fetch size of one: a portal that is suspended behind each row."""

    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        reader: WireClient = await door.client()
        await reader.query("SET autocommit_before_ddl = false")
        reader.raw(message(b"P", b"\0BEGIN\0\0\0") + message(b"B", b"\0\0\0\0\0\0\0\0"))
        reader.raw(message(b"E", b"\0" + pack("!i", 0)))
        reader.raw(message(b"P", b"\0" + DEBEZIUM.format("yes").encode() + b"\0\0\0"))
        reader.raw(message(b"B", b"C_1\0\0\0\0\0\0\0\1\0\1") + message(b"D", b"PC_1\0"))
        events = []
        for _ in range(3):
            reader.raw(message(b"E", b"C_1\0" + pack("!i", 1)) + message(b"S", b""))
            events += [body for kind, body in await reader.until_ready() if kind == b"D"]
        assert [b'"op":"c"' in event for event in events] == [True, True, False]
        assert b'"resolved"' in events[2]

    at_door(work)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + pack("!i", len(body) + 4) + body


def test_no_two_changes_have_one_moment() -> None:
    """Debezium's connector (3.5) takes changes of a table with one `ts_ns` for the same change."""

    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        await client.execute("INSERT INTO orders SELECT g, 'x', 0 FROM generate_series(3, 300) g")
        rows = await first_rows(door, DEBEZIUM.format("yes"), 300)
        assert len({json.loads(value)["ts_ns"] for _, _, value in rows}) == 300

    at_door(work)


def test_a_feed_is_a_statement_that_runs() -> None:
    """Others see it, may cancel it, and its time runs out, as with any other."""

    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        text = "EXPERIMENTAL CHANGEFEED FOR orders WITH no_initial_scan, resolved"
        async with connected(door) as reader:
            pid = reader.info.backend_pid
            with pytest.raises(psycopg.errors.QueryCanceled, match="due to user request"):
                stream = reader.cursor().stream(text)
                await anext(stream)
                found = await client.execute(
                    f"SELECT state, query FROM pg_stat_activity WHERE pid = {pid}"
                )
                assert await found.fetchall() == [("active", text)]
                await client.execute(f"SELECT pg_cancel_backend({pid})")
                async for _ in stream:
                    pass
            await reader.execute("SET statement_timeout = '0.1s'")
            with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
                async for _ in reader.cursor().stream(text):
                    pass

    at_door(work)


def test_a_feed_does_not_begin_behind_the_writes_of_its_own_transaction() -> None:
    """It would never be resolved past them."""

    async def work(door: PgDoor, client: psycopg.AsyncConnection[Any]) -> None:
        await client.execute("BEGIN")
        await client.execute("INSERT INTO orders VALUES (3, 'Carol', 1)")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="has read or written"):
            await client.execute("EXPERIMENTAL CHANGEFEED FOR orders")

    at_door(work)
