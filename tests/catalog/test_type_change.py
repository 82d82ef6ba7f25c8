"""A change of a type waits for tables that others change, without burning the time meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.catalog.schema_change.type_change import TypeChanger
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def paused_change(node: SqlNode, statement: str) -> int:
    """Begins a schema change, and pauses its job under way."""
    change = asyncio.create_task(node.session().execute(statement))
    while not (jobs := node.registry.live()):
        await asyncio.sleep(0.0005)
    await node.registry.request_pause(jobs[0].id)
    await change
    return jobs[0].id


def test_a_paused_change_of_a_table_is_waited_for_at_leisure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = [0]
    step = TypeChanger._step

    async def counted(self: TypeChanger, type_id: int) -> bool:
        steps[0] += 1
        return await step(self, type_id)

    monkeypatch.setattr(TypeChanger, "_step", counted)

    async def scenario(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY, m mood)")
            await node.sql("INSERT INTO t VALUES (1, 'ok')")
            job_id = await paused_change(node, "ALTER TABLE t ADD COLUMN d INT8 AS (id * 2) STORED")
            altering = asyncio.create_task(
                node.session().execute("ALTER TYPE mood ADD VALUE 'glad'")
            )
            await asyncio.sleep(20)
            assert not altering.done()
            assert 1 <= steps[0] <= 25, steps
            await node.registry.request_resume(job_id)
            async with asyncio.timeout(20):
                await altering
            await node.sql("INSERT INTO t VALUES (2, 'glad')")

    sim = Simulation(1)
    sim.run(scenario(sim))
