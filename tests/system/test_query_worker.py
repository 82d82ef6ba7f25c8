"""The query worker as a process: killed while it computes, and gone with its server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.harness.worker_pids import QUERIES, kill_worker, worker_pids

pytestmark = pytest.mark.system

ROWS = 10_000
QUERY = (
    "SELECT count(*), max(jsonb_build_object('n', d -> 'n') ->> 'n') FROM docs "
    """WHERE d @> '{"even": true}'"""
)
ANSWER = [(ROWS // 2, "9998")]


async def ask(database: AsyncDatabase, stop: asyncio.Event) -> int:
    """Asks until told to stop. Returns the number of errors."""
    errors = 0
    while not stop.is_set():
        try:
            found = await database.sql(QUERY)
        except SQLError as error:
            assert error.sqlstate == "58030", error
            assert "query worker" in str(error)
            errors += 1
        else:
            assert found.fetchall() == ANSWER
    return errors


def test_a_worker_that_is_killed_fails_what_it_computes_and_nothing_else(tmp_path: Path) -> None:
    random = Random(1)

    async def scenario() -> None:
        async with await aopen(tmp_path) as database:
            await database.sql("CREATE TABLE docs (id INT8 PRIMARY KEY, d JSONB)")
            await database.sql(
                "INSERT INTO docs SELECT g, jsonb_build_object('n', g, 'even', g % 2 = 0) "
                f"FROM generate_series(0, {ROWS - 1}) AS s (g)"
            )
            await database.sql("CREATE TABLE t (id INT8 PRIMARY KEY)")
            stop = asyncio.Event()
            asking = asyncio.create_task(ask(database, stop))
            kills, metrics = 5, database.node.store.metrics
            for kill in range(kills):
                while not metrics.get("sql_query_worker_alive"):
                    await asyncio.sleep(0.01)
                await asyncio.sleep(random.random() * 0.5)
                await kill_worker(of=QUERIES)
                await database.sql(f"INSERT INTO t VALUES ({kill})")
            stop.set()
            assert await asking <= kills
            assert (await database.sql(QUERY)).fetchall() == ANSWER
            assert metrics.get("sql_query_worker_deaths_total") == kills
            assert metrics.get("sql_query_worker_alive") == 1
            assert len(worker_pids(of=QUERIES)) == 1

    asyncio.run(scenario())
    assert worker_pids(of=QUERIES) == []
