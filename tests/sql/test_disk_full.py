"""A full disk, as a SQL client sees it."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from tailrace.catalog.leases.liveness import TTL
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.log.segment import SEGMENT_BYTES
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

VALUE_BYTES = 1024 * 1024


def insert(k: int, size: int) -> str:
    return f"INSERT INTO t VALUES ({k}, '{'x' * size}')"


async def fill(node: SqlNode, size: int = VALUE_BYTES) -> int:
    """Inserts rows of that size until one is refused. Returns how many there are."""
    for k in count(len(await node.rows("SELECT k FROM t"))):
        await asyncio.sleep(0.1)
        try:
            await node.sql(insert(k, size))
        except SQLError as error:
            assert error.sqlstate == "53100"
            assert error.hint is not None
            assert "Free space" in error.hint
            return k
        assert k * size < 2 * SEGMENT_BYTES, "the disk is never full"
    raise AssertionError


def test_full_disk_refuses_writes_by_its_own_code_until_there_is_room() -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            sim.disk.space_left = 0
            kept = await fill(node)
            assert kept > 1
            assert await node.rows("SELECT count(*) FROM t") == [(kept,)]
            sim.disk.space_left = None
            await asyncio.sleep(1)
            await node.sql(insert(1000, 10))
            assert await node.rows("SELECT count(*) FROM t") == [(kept + 1,)]

    sim = Simulation(5)
    sim.run(scenario(sim))


def test_full_disk_is_read_when_no_lease_can_be_written() -> None:
    """Also when the node's session has ended, and tables that nobody had read before."""

    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("CREATE TABLE unread (k INT8 PRIMARY KEY)")
            sim.disk.space_left = 0
            for size in (VALUE_BYTES, VALUE_BYTES // 16, VALUE_BYTES // 256, 64):
                kept = await fill(node, size)
            await asyncio.sleep(10 * TTL.default)
            assert node.liveness.incarnation.expiration < node.store.clock.last
            assert await node.rows("SELECT count(*) FROM t") == [(kept,)]
            await node.sql("BEGIN")
            assert await node.rows("SELECT count(*) FROM t JOIN unread ON t.k = unread.k") == [(0,)]
            await node.sql("COMMIT")
            with pytest.raises(SQLError) as refused:
                await node.sql(insert(1000, 1))
            assert refused.value.sqlstate == "53100"
            sim.disk.space_left = None
            await asyncio.sleep(1)
            await node.sql(insert(1000, 1))
            await asyncio.sleep(10 * TTL.default)
            assert node.liveness.incarnation.expiration > node.store.clock.last

    sim = Simulation(6)
    sim.run(scenario(sim))
