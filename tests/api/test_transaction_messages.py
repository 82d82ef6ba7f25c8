"""Changefeeds WITH transactions: begin, rows and end of each, in the order of their commits."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.api.test_webhook_sink import FAST, orders, until
from tests.harness.webhook_receiver import WebhookReceiver

Told = tuple[str | None, Any]
"""A topic, None where the message is of no row, and the message."""


def transactions(
    told: Iterable[Told], joined: str | None = None
) -> tuple[list[list[Told]], list[Told]]:
    """The rows of each transaction, and what stands outside of all. Checks what frames them: a
    table that `joined` may come with its own part of what was told before."""
    found: list[list[Told]] = []
    outside: list[Told] = []
    open_id: str | None = None
    last = ""
    for topic, message in told:
        mark = message.get("transaction") if topic is None else None
        if mark is None:
            if topic is None or message["transaction"] is None:
                assert open_id is None, f"{message} within {open_id}"
                outside.append((topic, message))
            else:
                assert message["transaction"] == open_id, message
                found[-1].append((topic, message))
        elif mark["status"] == "BEGIN":
            assert open_id is None, mark
            assert mark["id"] > last or joined, mark
            open_id = mark["id"]
            found.append([])
        else:
            assert mark["id"] == open_id, mark
            assert mark["counts"] == Counter(topic for topic, _ in found[-1])
            assert mark["id"] > last or set(mark["counts"]) == {joined}, mark
            last, open_id = max(last, mark["id"]), None
    assert open_id is None
    return found, outside


async def tables(database: AsyncDatabase) -> None:
    await database.sql("CREATE TABLE debits (k INT PRIMARY KEY, amount INT)")
    await database.sql("CREATE TABLE credits (k INT PRIMARY KEY, amount INT)")
    await database.sql("INSERT INTO debits VALUES (0, 1)")


async def transfer(database: AsyncDatabase, k: int) -> None:
    await database.sql(
        f"BEGIN; INSERT INTO debits VALUES ({k}, {k}), ({-k}, {k});"
        f"INSERT INTO credits VALUES ({k}, {2 * k}); COMMIT"
    )


def test_a_stream_tells_whole_transactions(tmp_path: Path) -> None:
    """Whatever is committed beside a transaction stands before its begin or behind its end."""

    async def scenario() -> None:
        database = await aopen(tmp_path / "data")
        try:
            await tables(database)
            told: list[Told] = []
            feed = database.changefeed(
                "debits", "credits", transactions=True, resolved=True, updated=True
            )
            writes: asyncio.Task[None] | None = None
            async for topic, _, value in feed:
                assert isinstance(value, bytes | str)
                told.append((None if topic is None else str(topic), json.loads(value)))
                if writes is None:
                    writes = asyncio.create_task(write(database))
                rows = sum(topic is not None for topic, _ in told)
                if rows == 1 + 3 * 50 + 50 and "resolved" in told[-1][1]:
                    break
            found, outside = transactions(told)
        finally:
            await database.close()
        scanned = [topic for topic, _ in outside if topic is not None]
        assert scanned == ["debits"], "the scan's"
        assert len(found) == 100
        whole = [each for each in found if len(each) > 1]
        assert len(whole) == 50
        for each in whole:
            assert Counter(topic for topic, _ in each) == {"debits": 2, "credits": 1}
            assert {message["updated"] for _, message in each} == {each[0][1]["transaction"]}
            amounts = Counter[str | None]()
            for topic, message in each:
                amounts[topic] += message["after"]["amount"]
            assert amounts["debits"] == amounts["credits"]

    async def write(database: AsyncDatabase) -> None:
        for k in range(1, 51):
            await transfer(database, k)
            await database.sql(f"UPDATE debits SET amount = amount WHERE k = {k}")

    asyncio.run(scenario())


def test_a_webhook_is_told_whole_transactions_beside_a_table_that_joins(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            await tables(bench.database)
            await bench.sql("INSERT INTO credits SELECT -g, g FROM generate_series(1, 3000) g")
            created = await bench.sql(
                f"CREATE CHANGEFEED FOR debits INTO 'webhook-http://{receiver.address}' "
                f"WITH transactions, resolved, no_initial_scan, {FAST}"
            )
            ((job_id,),) = created.fetchall()
            assert isinstance(job_id, int)
            for k in range(1, 10):
                await transfer(bench.database, k)
            await bench.sql(f"ALTER CHANGEFEED {job_id} ADD credits WITH initial_scan")
            for k in range(10, 30):
                await transfer(bench.database, k)
            joined = {"topic": "credits", "key": [29]}
            await until(lambda: any(joined.items() <= each.items() for each in receiver.messages))
            await bench.caught_up(job_id)
            for k in range(30, 40):
                await transfer(bench.database, k)
            await bench.sql("ALTER TABLE debits ADD COLUMN note STRING DEFAULT 'x'")
            await bench.caught_up(job_id)
        found, outside = transactions(
            ((each.get("topic"), each) for each in receiver.messages if "resolved" not in each),
            joined="credits",
        )
        scanned = Counter(topic for topic, _ in outside)
        assert scanned.keys() == {"credits"}
        seen = {(topic, row["key"][0]) for each in found for topic, row in each} | {
            (topic, row["key"][0]) for topic, row in outside
        }
        keys = {("debits", k) for n in range(1, 40) for k in (n, -n)} | {
            ("credits", k) for k in (*range(-3000, 0), *range(1, 40))
        }
        assert seen >= keys
        for each in found[-11:-1]:
            assert Counter(topic for topic, _ in each) == {"debits": 2, "credits": 1}
        assert len(found[-1]) == 79, "the rows of the schema change"

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


@pytest.mark.parametrize(
    ("sink", "options", "why"),
    [
        ("file:///out", "transactions", "has no effect on a file changefeed"),
        ("duckdb:///m.duckdb", "transactions", "has no effect on a duckdb changefeed"),
        ("kafka://127.0.0.1:1", "transactions", "has no effect on a kafka changefeed"),
        ("webhook-http://127.0.0.1:1", "transactions, on_bad_row = 'pause'", "exclude each other"),
        ("webhook-http://127.0.0.1:1", "transactions, envelope = 'enriched'", "goes with format"),
        ("", "transactions, schema_events", "exclude each other"),
        ("", "transactions, envelope = 'key_only'", "goes with format"),
        ("", "transactions, initial_scan = 'only'", "exclude each other"),
    ],
)
def test_where_transactions_cannot_be_told_they_are_refused(
    tmp_path: Path, sink: str, options: str, why: str
) -> None:
    async def scenario() -> None:
        database = await aopen(tmp_path / "data")
        try:
            await tables(database)
            into = f"INTO '{sink}' " if sink else ""
            with pytest.raises(SQLError, match=why) as refused:
                await database.sql(f"CREATE CHANGEFEED FOR debits {into}WITH {options}")
            assert refused.value.sqlstate == "22023"
        finally:
            await database.close()

    asyncio.run(scenario())
