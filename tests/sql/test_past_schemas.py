"""What a table was at a timestamp is what the catalog said then, whatever a node has on lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tailrace.catalog.rights.bootstrap import bootstrap
from tailrace.kvlayer.clock import format_timestamp
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode
from tests.harness.stores import open_store
from tests.simulation.storm_places import start_places


@asynccontextmanager
async def node_behind(sim: Simulation) -> AsyncIterator[tuple[SqlNode, SqlNode]]:
    """A node that has `t (k, v)` on lease and has not heard that `v` became `w` on the other."""
    store = await open_store(sim)
    await bootstrap(store)
    async with start_places(sim, store, 1, {}) as [home, away]:
        assert away.network is not None
        await home.node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
        await home.node.sql("INSERT INTO t VALUES (1, 10)")
        await away.node.sql("SELECT * FROM t WHERE k = 1")
        away.network.mute()
        renaming = asyncio.create_task(home.node.sql("ALTER TABLE t RENAME COLUMN v TO w"))
        await asyncio.sleep(0.2)
        assert not renaming.done(), "it waits for the lease of the node that has not heard"
        yield away.node, home.node
        away.network.heal()
        await renaming
    await store.close()


def test_as_of_reads_the_canonical_schema() -> None:
    """A lease on the version before is good for writing, and is not what the table was."""

    async def scenario() -> None:
        async with node_behind(sim) as (node, _):
            at = format_timestamp(await node.store.now())
            assert [c.name for c in (await node.sql("SELECT * FROM t WHERE k = 1")).columns] == [
                "k",
                "v",
            ]
            past = await node.sql(f"SELECT * FROM t AS OF SYSTEM TIME '{at}' WHERE k = 1")
            assert [column.name for column in past.columns] == ["k", "w"]
            assert past.fetch_rows() == [(1, 10)]

    sim = Simulation(1, time_limit=60.0)
    sim.run(scenario())


def test_transaction_in_the_past_reads_the_canonical_schema() -> None:
    async def scenario() -> None:
        async with node_behind(sim) as (node, _):
            at = format_timestamp(await node.store.now())
            await node.sql(f"BEGIN AS OF SYSTEM TIME '{at}'")
            past = await node.sql("SELECT * FROM t WHERE k = 1")
            assert [column.name for column in past.columns] == ["k", "w"]
            await node.sql("COMMIT")

    sim = Simulation(1, time_limit=60.0)
    sim.run(scenario())


def test_view_is_leased_beside_what_it_reads() -> None:
    """It reads a column that the table on lease does not have: so the table is looked at again."""

    async def scenario() -> None:
        async with node_behind(sim) as (behind, other):
            await other.session().execute("CREATE VIEW s AS SELECT w FROM t")
            assert (await behind.error("SELECT w FROM t")).sqlstate == "42703", "it has not heard"
            reader = behind.session()
            prepared = await reader.prepare("SELECT w FROM s")
            assert [column.name for column in await reader.describe(prepared)] == ["w"]

    sim = Simulation(1, time_limit=60.0)
    sim.run(scenario())


@asynccontextmanager
async def node_behind_of_two(sim: Simulation) -> AsyncIterator[tuple[SqlNode, SqlNode]]:
    """A deaf node that has `a` on lease and not `b`, while another changes both at once."""
    store = await open_store(sim)
    await bootstrap(store)
    async with start_places(sim, store, 1, {}) as [home, away]:
        assert away.network is not None
        for name in ("a", "b"):
            await home.node.sql(f"CREATE TABLE {name} (k INT8 PRIMARY KEY, v INT8)")
            await home.node.sql(f"INSERT INTO {name} VALUES (1, 10)")
        await away.node.sql(POINT.format("a"))
        away.network.mute()

        async def change_both() -> None:
            session = home.node.session()
            await session.execute("BEGIN")
            for name in ("a", "b"):
                await session.execute(f"ALTER TABLE {name} RENAME COLUMN v TO w")
            await session.execute("COMMIT")
            await session.close()

        changing = asyncio.create_task(change_both())
        await asyncio.sleep(0.2)
        yield home.node, away.node
        away.network.heal()
        await changing
    await store.close()


POINT = "SELECT * FROM {} WHERE k = 1"
BOTH = "SELECT a.*, b.* FROM a, b WHERE a.k = 1 AND b.k = 1"


async def columns_of(node: SqlNode, text: str) -> list[str]:
    return [column.name for column in (await node.sql(text)).columns]


def test_change_of_two_tables_is_seen_whole() -> None:
    """`b` is leased from the change on, and so `a` may not be what it was before."""

    async def scenario() -> None:
        async with node_behind_of_two(sim) as (_, away):
            assert await columns_of(away, POINT.format("a")) == ["k", "v"], "it has not heard"
            assert await columns_of(away, f"EXPLAIN {BOTH}")
            assert await columns_of(away, POINT.format("a")) == ["k", "w"], "it looked again"

    sim = Simulation(1, time_limit=60.0)
    sim.run(scenario())


def test_transaction_that_saw_half_of_a_change_begins_anew() -> None:
    async def scenario() -> None:
        async with node_behind_of_two(sim) as (_, away):
            await away.sql("BEGIN")
            assert await columns_of(away, POINT.format("a")) == ["k", "v"]
            error = await away.error(POINT.format("b"))
            assert error.sqlstate == "40001"
            await away.sql("ROLLBACK")

    sim = Simulation(1, time_limit=60.0)
    sim.run(scenario())
