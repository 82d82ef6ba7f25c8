"""Three rows that were changed by hand are found and mended in a mirror of a million."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tests.harness.by_hand import by_hand

ROWS = 1_000_000
LOADED_AT_ONCE = 50_000

pytestmark = pytest.mark.system


async def load(database: AsyncDatabase) -> None:
    for first in range(0, ROWS, LOADED_AT_ONCE):
        await database.sql(
            "INSERT INTO t SELECT i, 'row ' || i FROM generate_series($1, $2) AS g(i)",
            [first, first + LOADED_AT_ONCE - 1],
        )


async def change_by_hand(database: AsyncDatabase, folder: Path) -> None:
    async with by_hand(database, folder / "data" / "mirrors" / "m.duckdb") as cursor:
        base = cursor.execute("SELECT base_table FROM _tailrace.mirrors").fetchone()
        assert base is not None
        name = f'_tailrace."{base[0]}"'
        cursor.execute(f"UPDATE {name} SET c2 = 'by hand' WHERE c1 = 77")
        cursor.execute(f"DELETE FROM {name} WHERE c1 = 500000")
        cursor.execute(
            f"INSERT INTO {name} SELECT * REPLACE (2000000 AS c1) FROM {name} WHERE c1 = 999999"
        )


def test_three_rows_of_a_million(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await load(database)
            made = await database.sql("CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb'")
            job_id = made.fetchall()[0][0]
            assert isinstance(job_id, int)
            await database.sql("SELECT wait_for_changefeed($1)", [job_id])
            await change_by_hand(database, tmp_path)
            ended = asyncio.Event()
            writing = asyncio.create_task(_write(database, ended))
            found = (await database.sql(f"VERIFY CHANGEFEED {job_id} REPAIR")).fetchall()
            assert {str(key): str(what) for _, key, what in found} == {
                "k=77": "differs in v",
                "k=500000": "missing in the sink",
                "k=2000000": "not in the table",
            }
            assert (await database.sql(f"VERIFY CHANGEFEED {job_id}")).fetchall() == []
            ended.set()
            assert await writing > 0

    asyncio.run(scenario())


async def _write(database: AsyncDatabase, ended: asyncio.Event) -> int:
    """Rows that nobody has changed by hand, again and again; returns how many."""
    written = 0
    while not ended.is_set():
        await database.sql("UPSERT INTO t VALUES ($1, 'again')", [1_000 + written % 1_000])
        written += 1
    return written
