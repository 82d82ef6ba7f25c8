"""A CDC query into a mirror in a real PostgreSQL."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import aopen
from tests.harness.postgres_process import PostgresProcess

pytestmark = pytest.mark.system


def test_a_mirror_in_postgres_holds_the_rows_that_match(tmp_path: Path) -> None:
    async def whole(postgres: PostgresProcess) -> None:
        async with await aopen(tmp_path / "data") as database:

            async def mirrored(job_id: int, query: str) -> list[tuple[Any, ...]]:
                async with asyncio.timeout(30):
                    now = await database.node.store.now()
                    await database.feed(job_id).wait_until(now)
                return await asyncio.to_thread(postgres.rows, query)

            await database.sql("CREATE TABLE orders (id INT8 PRIMARY KEY, total INT8, note STRING)")
            await database.sql(
                "INSERT INTO orders SELECT i, i FROM generate_series(1, 100) AS g(i)"
            )
            created = await database.sql(
                f"CREATE CHANGEFEED INTO '{postgres.uri()}' AS "
                "SELECT id, total * 2 AS twice FROM orders WHERE total > 98"
            )
            ((job_id,),) = created.fetchall()
            assert isinstance(job_id, int)
            select = "SELECT id, twice FROM orders ORDER BY id"
            assert await mirrored(job_id, select) == [(99, 198), (100, 200)]
            await database.sql("UPDATE orders SET total = 99 - total WHERE id IN (99, 100, 1)")
            await database.sql("ALTER TABLE orders DROP COLUMN note")
            await database.sql("INSERT INTO orders VALUES (101, 101)")
            assert await mirrored(job_id, select) == [(101, 202)]

    with PostgresProcess() as postgres:
        asyncio.run(whole(postgres))
