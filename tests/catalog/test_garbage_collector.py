"""Old versions go when their table's time to live has passed, and not before."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.store.descriptor_store import DescriptorStore
from tailrace.catalog.store.garbage_collector import GarbageCollector
from tailrace.kvlayer.clock import format_timestamp
from tailrace.kvlayer.keys import VERSION, table_span
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps
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
def test_each_table_lives_by_its_own_time(with_long_table: bool) -> None:
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
            assert removed > 0
            assert "garbage collection" in str(await node.error(query))
            if with_long_table:
                late = await written_twice(node, "long_lived")
                await asyncio.sleep(2 * MINUTE)
                await GarbageCollector(node.store, DescriptorStore(node.store)).collect()
                query = f"SELECT v FROM long_lived AS OF SYSTEM TIME '{late}'"
                assert await node.rows(query) == [("old",)]
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


def test_a_shorter_interval_counts_at_once() -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            await written_twice(node, "t")
            collector = GarbageCollector(node.store, DescriptorStore(node.store))
            collector.start()
            before = node.store.gc_threshold
            await asyncio.sleep(2 * MINUTE)
            assert node.store.gc_threshold == before, "an hour is the default"
            node.store.settings.set("kv.gc.interval", "30s")
            await asyncio.sleep(1)
            assert node.store.gc_threshold > before
            await collector.close()

    sim = Simulation(12)
    sim.run(scenario(sim))


def test_dropped_table_goes_when_its_time_is_over() -> None:
    """Until then it can be read as of before the drop; its name is free at once."""

    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            first = await node.sql("INSERT INTO t VALUES (1, 'kept')")
            assert first.commit_timestamp is not None
            at = format_timestamp(first.commit_timestamp)
            query = f"SELECT v FROM t AS OF SYSTEM TIME '{at}'"
            (table,) = [
                each
                for each in await DescriptorStore(node.store).all_at(node.store.clock.last)
                if each.name == "t"
            ]
            await node.sql("DROP TABLE t")
            collector = GarbageCollector(node.store, DescriptorStore(node.store))
            await asyncio.sleep(MINUTE / 2)
            await collector.collect()
            assert await node.rows(query) == [("kept",)]
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await asyncio.sleep(MINUTE)
            assert await collector.collect() > 0
            span = table_span(table.id)
            start = VERSION + span.start
            assert node.store.engine.first(start, VERSION + span.end) is None
            assert await collector.collect() == 0
            assert await node.rows("SELECT * FROM t") == []

    sim = Simulation(3)
    sim.run(scenario(sim))


def test_the_descriptor_of_a_dropped_table_goes_behind_its_data() -> None:
    """Not before them, not while it is leased; and a table of that name is another one."""

    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            descriptors = DescriptorStore(node.store)
            collector = GarbageCollector(node.store, descriptors)
            await node.sql("CREATE TABLE long_lived (k INT8 PRIMARY KEY)")
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            first = await node.sql("INSERT INTO t VALUES (1, 'kept')")
            assert first.commit_timestamp is not None
            tables = await descriptors.all_at(node.store.clock.last)
            (table,) = [each for each in tables if each.name == "t"]
            reader = node.services.leases
            held = await reader.acquire(table.id, first.commit_timestamp)
            dropping = asyncio.create_task(node.sql("DROP TABLE t"))
            await asyncio.sleep(2 * MINUTE)
            assert await collector.collect() > 0
            assert await descriptors.read_at(table.id, await node.store.now()) is not None
            held.release()
            await dropping
            await asyncio.sleep(1)
            await collector.collect()
            await collector.collect()
            now = await node.store.now()
            assert await descriptors.read_at(table.id, now) is None
            assert await descriptors.read_at(table.id, first.commit_timestamp) is not None
            versions = await descriptors.versions([table.id], first.commit_timestamp, now)
            assert versions[-1].dropped
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            assert await node.rows("SELECT * FROM t") == []
            assert "garbage collection" in str(
                await node.error(
                    "SELECT * FROM t AS OF SYSTEM TIME "
                    f"'{format_timestamp(first.commit_timestamp)}'"
                )
            )

    sim = Simulation(5)
    sim.run(scenario(sim))


def test_protected_data_of_a_dropped_table_stays() -> None:
    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
            await node.sql("ALTER TABLE t SET (gc.ttlseconds = 60)")
            await node.sql("INSERT INTO t VALUES (1, 'kept')")
            (table,) = [
                each
                for each in await DescriptorStore(node.store).all_at(node.store.clock.last)
                if each.name == "t"
            ]
            span = table_span(table.id)
            transaction = node.store.begin()
            await ProtectedTimestamps(node.store).protect(
                transaction, owner="a test", spans=[span], timestamp=await node.store.now()
            )
            await transaction.commit()
            await node.sql("DROP TABLE t")
            await asyncio.sleep(3 * MINUTE)
            await GarbageCollector(node.store, DescriptorStore(node.store)).collect()
            assert node.store.engine.first(VERSION + span.start, VERSION + span.end) is not None

    sim = Simulation(4)
    sim.run(scenario(sim))
