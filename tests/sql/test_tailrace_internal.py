"""What the system tells of itself in tables."""

from __future__ import annotations

import asyncio

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node, sql_services

LEASES = (
    "SELECT table_name, version, newest_version, node_id, live FROM tailrace_internal.leases"
    " ORDER BY node_id, version"
)


def test_a_lease_is_seen_with_its_holder() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            assert await node.rows(LEASES) == []
            await node.sql("INSERT INTO t VALUES (1)")
            assert await node.rows(LEASES) == [("t", 1, 1, 1, True)]

    sim = Simulation(1)
    sim.run(scenario())


def test_virtual_tables_join_with_everything() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, name STRING)")
            await node.sql("INSERT INTO t VALUES (1, 't'), (2, 'other')")
            found = await node.rows(
                "SELECT t.k, l.version, l.live FROM t"
                " JOIN tailrace_internal.leases AS l ON l.table_name = t.name"
            )
            assert found == [(1, 1, True)]

    sim = Simulation(2)
    sim.run(scenario())


def test_nodes_are_their_living_sessions() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as first, sql_services(sim, first.store, 2) as second:
            for node in (first, second):
                rows = await node.rows(
                    "SELECT node_id, live FROM defaultdb.tailrace_internal.nodes ORDER BY 1"
                )
                assert rows == [(1, True), (2, True)]

    sim = Simulation(3)
    sim.run(scenario())


def test_a_waiting_schema_change_says_whom_it_waits_for() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as first, sql_services(sim, first.store, 2) as second:
            await first.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await second.sql("BEGIN; SELECT * FROM t")
            altering = asyncio.create_task(_lock(first))
            await asyncio.sleep(1)
            waits = (
                "SELECT waits_for, holder_node_id, holder_version, held_since < waiting_since"
                " FROM tailrace_internal.lease_waits"
            )
            assert await first.session().execute(waits)
            rows = (await first.session().execute(waits))[0].fetch_rows()
            assert rows == [("one version", 2, 1, True)]
            await second.sql("COMMIT")
            await altering
            assert (await first.session().execute(waits))[0].fetch_rows() == []

    sim = Simulation(4)
    sim.run(scenario())


async def _lock(node: SqlNode) -> None:
    await node.sql("ALTER TABLE t SET (changefeed_optimized = true)")


def test_virtual_tables_are_read_only_and_named() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as node:
            error = await node.error("DELETE FROM tailrace_internal.leases")
            assert error.sqlstate == "42501"
            error = await node.error("SELECT * FROM tailrace_internal.lease")
            assert error.sqlstate == "42P01"
            assert "leases" in str(error.hint)

    sim = Simulation(5)
    sim.run(scenario())
