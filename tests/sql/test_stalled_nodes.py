"""A node that stood still for longer than its liveness session lives, in mid-transaction."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.leases.liveness import HEARTBEAT_INTERVAL, TTL
from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def lapse(node: SqlNode) -> None:
    """Waits until the node's session has ended, for it sends no heartbeat."""
    settings = node.store.settings
    settings.set(HEARTBEAT_INTERVAL.name, "1h")
    await asyncio.sleep(3 * settings.get(TTL))
    node.store.clock.now()


async def open_block(node: SqlNode) -> Session:
    await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
    session = node.session()
    await session.execute("BEGIN; INSERT INTO t VALUES (1, 1), (2, 2)")
    return session


def test_a_transaction_outlives_the_session_of_its_leases() -> None:
    """A \\copy of a large file was lost with 40001 where a machine had paused for half a minute."""
    sim = Simulation(1)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            session = await open_block(node)
            await lapse(node)
            await session.execute("COMMIT")
            assert await node.rows("SELECT k, v FROM t ORDER BY k") == [(1, 1), (2, 2)]

    sim.run(scenario())


@pytest.mark.parametrize("change", ["ALTER TABLE t RENAME COLUMN v TO w", "DROP TABLE t"])
def test_not_where_its_table_was_changed_meanwhile(change: str) -> None:
    sim = Simulation(2)

    async def scenario() -> None:
        async with sql_node(sim) as node:
            session = await open_block(node)
            await lapse(node)
            await node.sql(change)
            with pytest.raises(SQLError) as refused:
                await session.execute("COMMIT")
            assert refused.value.sqlstate == "40001"
            if "ALTER" in change:
                assert await node.rows("SELECT k, w FROM t") == []

    sim.run(scenario())
