"""A full disk, as a SQL client sees it."""

from __future__ import annotations

import asyncio

from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.log.segment import SEGMENT_BYTES
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

VALUE_BYTES = 1024 * 1024


def test_full_disk_refuses_writes_by_its_own_code_until_there_is_room() -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            sim.disk.space_left = 0
            kept = 0
            insert = "INSERT INTO t VALUES ({}, '{}')"
            for k in range(2 * SEGMENT_BYTES // VALUE_BYTES):
                await asyncio.sleep(0.1)
                try:
                    await node.sql(insert.format(k, "x" * VALUE_BYTES))
                except SQLError as error:
                    assert error.sqlstate == "53100"
                    assert error.hint is not None
                    assert "Free space" in error.hint
                    break
                kept += 1
            assert 1 < kept < 2 * SEGMENT_BYTES // VALUE_BYTES
            assert await node.rows("SELECT count(*) FROM t") == [(kept,)]
            sim.disk.space_left = None
            await asyncio.sleep(1)
            await node.sql(insert.format(1000, "there is room"))
            assert await node.rows("SELECT count(*) FROM t") == [(kept + 1,)]

    sim = Simulation(5)
    sim.run(scenario(sim))
