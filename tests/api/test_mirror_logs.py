"""Mirrors that hold every change, alone or beside the rows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.errors import SQLError


async def feed(database: AsyncDatabase, statement: str) -> int:
    ((job_id,),) = (await database.sql(f"CREATE CHANGEFEED {statement}")).fetchall()
    assert isinstance(job_id, int)
    return job_id


async def read(database: AsyncDatabase, job_id: int, query: str) -> list[tuple[object, ...]]:
    await database.feed(job_id).wait_until(await database.node.store.now())
    found = await database.mirror("duckdb:///m.duckdb").sql(query)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_log_follows_everything_beside_its_mirror(tmp_path: Path) -> None:
    async def whole() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, total INT8)")
            await database.sql("CREATE TABLE lines (id INT8 PRIMARY KEY)")
            await database.sql("INSERT INTO orders VALUES (1, 10)")
            job_id = await feed(
                database, "FOR TABLE orders, lines INTO 'duckdb:///m.duckdb?mode=both'"
            )
            await database.sql("UPDATE orders SET total = 11 WHERE id = 1")
            await database.sql("ALTER TABLE orders ADD COLUMN note STRING DEFAULT 'n'")
            await database.sql(f"PAUSE JOB {job_id}")
            await database.node.jobs.wait(job_id, JobState.PAUSED, timeout=30)
            await database.sql("INSERT INTO orders VALUES (2, 20, 'x')")
            await database.sql("INSERT INTO lines VALUES (7)")
            await database.sql(f"RESUME JOB {job_id}")
            await database.sql("DELETE FROM orders WHERE id = 1")
            logged = await read(
                database,
                job_id,
                "SELECT operation, before, after FROM orders_log ORDER BY commit_timestamp",
            )
            shown = [
                (op, *(each and json.loads(str(each)) for each in rest)) for op, *rest in logged
            ]
            assert shown == [
                ("scan", None, {"id": 1, "total": 10}),
                ("update", {"id": 1, "total": 10}, {"id": 1, "total": 11}),
                ("insert", None, {"id": 2, "total": 20, "note": "x"}),
                ("delete", {"id": 1, "total": 11, "note": "n"}, None),
            ]
            assert await read(database, job_id, "FROM orders") == [(2, 20, "x")]
            assert await read(database, job_id, "SELECT key FROM lines_log") == [("[7]",)]
            assert (await database.sql(f"VERIFY CHANGEFEED {job_id}")).fetchall() == []

            await database.sql("TRUNCATE orders")
            await database.sql(f"ALTER CHANGEFEED {job_id} DROP lines")
            query = "SELECT operation FROM orders_log ORDER BY commit_timestamp DESC LIMIT 1"
            assert await read(database, job_id, query) == [("truncate",)]
            # Another feed has the same file for what nobody has of it.
            other = await feed(database, "FOR TABLE lines INTO 'duckdb:///m.duckdb?mode=log'")
            query = "SELECT operation, after FROM lines_log"
            assert await read(database, other, query) == [("scan", '{"id":7}')]
            assert (await database.sql(f"VERIFY CHANGEFEED {other}")).fetchall() == []

    asyncio.run(whole())


def test_parameters_that_exclude_each_other(tmp_path: Path) -> None:
    async def whole() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (id INT8 PRIMARY KEY)")
            uri = "duckdb:///m.duckdb?mode="
            for statement, code, why in (
                (f"FOR orders INTO '{uri}log&apply=transaction'", "22023", "exclude each other"),
                (f"FOR orders INTO '{uri}all'", "22023", "sink parameter mode takes no 'all'"),
                (f"INTO '{uri}log' AS SELECT id FROM orders", "0A000", "into a log of changes"),
            ):
                with pytest.raises(SQLError, match=why) as caught:
                    await feed(database, statement)
                assert caught.value.sqlstate == code

    asyncio.run(whole())
