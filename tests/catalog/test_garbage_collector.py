"""Old versions go when every table's time to live has passed, and not before."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.descriptor_store import DescriptorStore
from tailrace.catalog.garbage_collector import GarbageCollector
from tailrace.kvlayer.clock import format_timestamp
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

MINUTE = 60.0


async def written_twice(node: SqlNode, table: str) -> str:
    """A row and its successor; the time at which the first was the newest."""
    first = await node.sql(f"UPSERT INTO {table} VALUES (1, 'old')")
    await node.sql(f"UPSERT INTO {table} VALUES (1, 'new')")
    assert first.commit_timestamp is not None
    return format_timestamp(first.commit_timestamp)


@pytest.mark.parametrize("with_long_table", [False, True])
def test_the_longest_time_to_live_counts(with_long_table: bool) -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            if with_long_table:
                await node.sql("CREATE TABLE long_lived (k INT8 PRIMARY KEY, v STRING)")
            at = await written_twice(node, "t")
            await asyncio.sleep(2 * MINUTE)
            removed = await GarbageCollector(node.store, DescriptorStore(node.store)).collect()
            query = f"SELECT v FROM t AS OF SYSTEM TIME '{at}'"
            if with_long_table:
                assert await node.rows(query) == [("old",)]
            else:
                assert removed > 0
                assert "garbage collection" in str(await node.error(query))
            assert await node.rows("SELECT v FROM t") == [("new",)]

    sim = Simulation(1)
    sim.run(scenario(sim))


def test_collection_runs_by_itself() -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("SET CLUSTER SETTING kv.gc.interval = '30s'")
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            await written_twice(node, "t")
            collector = GarbageCollector(node.store, DescriptorStore(node.store))
            collector.start()
            before = node.store.gc_threshold
            await asyncio.sleep(2 * MINUTE)
            assert node.store.gc_threshold > before
            await collector.close()

    sim = Simulation(2)
    sim.run(scenario(sim))
