"""Temporary tables beside real feeds, and behind the end of a process that had some."""

from __future__ import annotations

import asyncio
from pathlib import Path

import tailrace


def test_a_feed_of_a_database_passes_over_them(tmp_path: Path) -> None:
    with tailrace.open(tmp_path / "data") as db:
        db.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
        ((job,),) = db.sql("CREATE CHANGEFEED FOR DATABASE defaultdb INTO 'duckdb:///m.duckdb'")
        assert isinstance(job, int)
        db.sql("CREATE TEMP TABLE mine (k INT8 PRIMARY KEY); INSERT INTO mine VALUES (1)")
        db.sql("CREATE TABLE later (k INT8 PRIMARY KEY); INSERT INTO later VALUES (1)")
        db.sql(f"SELECT wait_for_changefeed({job!s})")
        names = db.mirror("m.duckdb").sql("SHOW TABLES").column(0).to_pylist()
        assert names == ["later", "t"]


def test_a_store_that_was_not_closed_is_swept(tmp_path: Path) -> None:
    async def scenario() -> None:
        db = await tailrace.aopen(tmp_path / "data")
        await db.sql("CREATE TEMP TABLE mine (k INT8 PRIMARY KEY)")
        ((made,),) = await db.sql("SELECT schemaname FROM pg_tables WHERE tablename = 'mine'")
        assert isinstance(made, str)
        await db.node.close()  # as a process that dies: no session has been closed
        async with await tailrace.aopen(tmp_path / "data") as db:
            query = f"SELECT count(*) FROM pg_namespace WHERE nspname = '{made!s}'"
            while (await db.sql(query)).fetchall() != [(0,)]:
                await asyncio.sleep(0)

    asyncio.run(scenario())
