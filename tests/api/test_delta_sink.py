"""Changefeeds into Delta tables, through SQL: read back without delta-rs, over schema changes and
restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.harness import delta_reader


@asynccontextmanager
async def store(path: Path) -> AsyncIterator[AsyncDatabase]:
    database = await aopen(path / "data")
    try:
        yield database
    finally:
        await database.close()


async def create(database: AsyncDatabase, rest: str) -> int:
    ((job_id,),) = (await database.sql(f"CREATE CHANGEFEED FOR {rest}")).fetchall()
    assert isinstance(job_id, int)
    return job_id


async def caught_up(database: AsyncDatabase, job_id: int) -> None:
    async with asyncio.timeout(30):
        await database.feed(job_id).wait_until(await database.node.store.now())


def test_a_delta_table_has_every_change_over_schema_changes_and_restarts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING, tag STRING)")
            await database.sql("INSERT INTO orders VALUES (1, 'a', 'x')")
            job_id = await create(database, "orders INTO 'delta:///lake'")
            await caught_up(database, job_id)
            await database.sql("UPDATE orders SET name = 'b' WHERE k = 1")
            await database.sql("ALTER TABLE orders ADD COLUMN total INT")
            await database.sql("ALTER TABLE orders DROP COLUMN tag")
            await caught_up(database, job_id)
        async with store(tmp_path) as database:
            await database.sql("UPDATE orders SET total = 7 WHERE k = 1")
            await database.sql("DELETE FROM orders WHERE k = 1")
            await caught_up(database, job_id)
        rows = sorted(
            delta_reader.rows(tmp_path / "data" / "mirrors" / "lake"),
            key=lambda row: row["_commit_timestamp"],
        )
        shown = [(row["_op"], row["name"], row.get("tag"), row.get("total")) for row in rows]
        assert shown == [
            ("upsert", "a", "x", None),
            ("upsert", "b", "x", None),
            ("upsert", "b", None, None),  # the column that went: the row is shown again
            ("upsert", "b", None, 7),
            ("delete", None, None, None),
        ]

    asyncio.run(scenario())


def test_a_column_of_another_type_stops_the_feed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v INT)")
            await database.sql("INSERT INTO orders VALUES (1, 1)")
            every = "WITH min_checkpoint_frequency = '50ms'"
            job_id = await create(database, f"orders INTO 'delta:///lake' {every}")
            await caught_up(database, job_id)
            await database.sql("ALTER TABLE orders ALTER COLUMN v TYPE STRING USING v::STRING")
            async with asyncio.timeout(30):
                while "failed" not in (
                    told := str((await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())
                ):
                    await asyncio.sleep(0.05)
            assert "column v was" in told and "long" in told

    asyncio.run(scenario())


def test_a_scan_alone_is_one_commit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, v STRING)")
            await database.sql(
                "INSERT INTO orders SELECT i, 'v' FROM generate_series(1, 5000) g(i)"
            )
            job_id = await create(
                database, "orders INTO 'delta:///lake' WITH initial_scan = 'only'"
            )
            async with asyncio.timeout(30):
                while "succeeded" not in str(
                    (await database.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall()
                ):
                    await asyncio.sleep(0.02)
            (rows,) = delta_reader.commits(tmp_path / "data" / "mirrors" / "lake")
            assert sorted(row["k"] for row in rows) == list(range(1, 5001))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("rest", "sqlstate"),
    [
        ("orders INTO 'delta:////etc/lake'", "42501"),
        ("orders INTO 'delta://host/lake'", "22023"),
        ("orders INTO 'delta:///lake?mode=mirror'", "22023"),
        ("orders INTO 'delta:///lake' WITH updated", "22023"),
        ("orders, others INTO 'delta:///lake'", "0A000"),
        ("others INTO 'delta:///lake'", "42701"),
    ],
)
def test_what_cannot_be_a_delta_table_is_refused(tmp_path: Path, rest: str, sqlstate: str) -> None:
    async def scenario() -> None:
        async with store(tmp_path) as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            await database.sql('CREATE TABLE others ("_Op" INT PRIMARY KEY)')
            with pytest.raises(SQLError) as told:
                await create(database, rest)
            assert told.value.sqlstate == sqlstate

    asyncio.run(scenario())
