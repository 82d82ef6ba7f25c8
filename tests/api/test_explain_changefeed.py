"""EXPLAIN CHANGEFEED tells what a feed would do, shows its messages, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.insight import explanation

ROWS = 5_000
MIRROR = "'duckdb:///m.duckdb'"


def on_database(folder: Path, work: Callable[[AsyncDatabase], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await work(database)

    asyncio.run(whole())


async def facts(database: AsyncDatabase, statement: str) -> dict[str, str]:
    found = (await database.sql(f"EXPLAIN CHANGEFEED {statement}")).fetchall()
    return {str(name).rpartition("public.")[2]: f"{value!s}" for name, value in found}


async def messages(database: AsyncDatabase, statement: str) -> list[object]:
    found = (await database.sql(f"EXPLAIN CHANGEFEED {statement}")).fetchall()
    return [json.loads(bytes(value)) for _, _, value in found]  # type: ignore[arg-type]


def test_it_tells_spans_schema_feed_sink_and_scan(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql(
            "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, $1) AS g(i)", [ROWS]
        )
        told = await facts(database, f"FOR TABLE t INTO {MIRROR}")
        assert told["sink"].startswith("duckdb:///m.duckdb: progress in one transaction")
        assert told["t: span"] == "[/Table/100, /Table/101)"
        assert told["t: ranges"] == "1"
        assert told["t: schema feed"] == "leasing, by rangefeed"
        assert told["t: fast path"].startswith("not taken: the table is not locked")
        rows = int(told["t: initial scan"].split()[1].replace(",", ""))
        assert ROWS / 2 < rows < ROWS * 2
        assert (await database.sql("SHOW CHANGEFEED JOBS")).fetchall() == []
        assert not (tmp_path / "data" / "mirrors" / "m.duckdb").exists()

    on_database(tmp_path, scenario)


def test_the_fast_path_is_taken_on_a_locked_table_by_the_leasing_feed_alone(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("ALTER TABLE t SET (changefeed_optimized = true)")
        told = await facts(database, f"FOR TABLE t INTO {MIRROR}")
        assert told["t: fast path"].startswith("taken: version 2 is locked")
        told = await facts(database, "FOR TABLE t INTO 'null://' WITH schema_feed = 'polling'")
        assert told["t: fast path"].startswith("not taken: schema_feed = 'polling'")
        told = await facts(database, "FOR TABLE t WITH initial_scan = 'no'")
        assert told["t: initial scan"].startswith("none: changes above ")
        assert told["sink"].startswith("this connection")

    on_database(tmp_path, scenario)


def test_a_sample_is_what_the_feed_would_send(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        assert await messages(database, "FOR TABLE t WITH sample = 3") == []  # and it returns
        at = (await database.sql("SELECT cluster_logical_timestamp()")).fetchall()[0][0]
        await database.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        await database.sql("DELETE FROM t WHERE k = 2")
        scanned = await messages(database, f"FOR TABLE t INTO {MIRROR} WITH sample = 1")
        assert scanned == [{"after": {"k": 1, "v": "a"}}]
        live = await messages(database, f"FOR TABLE t WITH cursor = '{at!s}', sample = 10")
        assert len(live) == 4
        assert live[-1] == {"after": None}
        stamped = await messages(database, "FOR t WITH updated, sample = 1")
        assert set(stamped[0]) == {"after", "updated"}  # type: ignore[call-overload]
        records = await database.sql("SHOW CHANGEFEED JOBS")
        assert records.fetchall() == []

    on_database(tmp_path, scenario)


def test_it_is_refused_as_creation_is(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        async def state(statement: str) -> str:
            with pytest.raises(SQLError) as caught:
                await database.sql(statement)
            assert caught.value.sqlstate is not None
            return caught.value.sqlstate

        assert await state("EXPLAIN CHANGEFEED FOR TABLE nothing") == "42P01"
        assert await state("EXPLAIN CHANGEFEED FOR t INTO 'kafka9://h'") == "22023"
        assert await state("EXPLAIN CREATE CHANGEFEED FOR t WITH sample = 0") == "22023"
        assert await state("EXPLAIN CHANGEFEED FOR t WITH speed = 'high'") == "22023"
        columnar = "INTO 'file:///f' WITH format = 'parquet'"
        assert await state(f"EXPLAIN CHANGEFEED FOR t {columnar}, sample = 1") == "0A000"
        await database.sql(f"CREATE CHANGEFEED FOR t INTO {MIRROR}")
        creation = await state(f"CREATE CHANGEFEED FOR t INTO {MIRROR}")
        assert await state(f"EXPLAIN CHANGEFEED FOR t INTO {MIRROR}") == creation

    on_database(tmp_path, scenario)


def test_an_unknown_size_is_said_to_be_unknown() -> None:
    estimate = explanation.ScanEstimate(rows=None, exact=False, seconds=None)
    assert str(estimate) == "its size is known on the node that has the store"
